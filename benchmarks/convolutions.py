"""Convolutions on the CPU against torch's, at the sizes of ResNet-18 on an image of 1000 x 700, and the whole of it.

    python -m benchmarks.convolutions                 # writes benchmarks/results/convolutions-<processor>-<date>.json
    python -m benchmarks.convolutions --quick         # one round, nothing written
    python -m benchmarks.convolutions --rounds 20 --size 224 224 --json out.json

float32.  torch gets both of its memory orders, with bias and without activation, as zoo does; a ratio is to the faster
of the two.  For the whole network, "torch" is the sequence of its functions with the norms folded and activations in
place, and "transformers" its eager ResNetModel.  Outputs are compared before anything is timed.  GFLOP/s count the
multiplications and additions of the definition, of which zoo needs fewer.  The exit status is 1 only if outputs
disagree.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from . import harness
from .harness import Row

TARGETS = {"torch": 1.0, "transformers": 0.8}  # of the whole network
TOLERANCE = 1e-5  # largest difference, relative to the largest output
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # width, and stride of the first block


class ConvShape(NamedTuple):
    """A convolution of Y x X pixels, and how often ResNet-18 has it."""

    name: str
    Y: int
    X: int
    C: int
    D: int
    kernel: int
    stride: int
    times: int

    @property
    def gflop(self) -> float:
        return 2e-9 * _half(self.Y, self.stride) * _half(self.X, self.stride) * self.C * self.D * self.kernel**2


def shapes(Y: int, X: int) -> list[ConvShape]:
    """The convolutions of ResNet-18, from the image on."""
    out = [ConvShape("stem 7x7/2", Y, X, 3, 64, 7, 2, 1)]
    Y, X, C = _half(_half(Y, 2), 2), _half(_half(X, 2), 2), 64
    for D, stride in STAGES:
        if stride > 1:
            out.append(ConvShape(f"3x3/2 {C} to {D}", Y, X, C, D, 3, 2, 1))
            out.append(ConvShape(f"1x1/2 {C} to {D}", Y, X, C, D, 1, 2, 1))
        Y, X, C = _half(Y, stride), _half(X, stride), D
        out.append(ConvShape(f"3x3 {D}", Y, X, D, D, 3, 1, 4 if stride == 1 else 3))
    return out


def _half(size: int, stride: int) -> int:
    return -(-size // stride)


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    environment = harness.start(args)
    import torch

    rounds, every = args.rounds or (1 if args.quick else 9), shapes(*args.size)

    def rows() -> Iterator[Row]:
        for shape in every:
            yield Row(shape.name, convolutions(shape))
        yield Row("max pool 3x3/2", pools(*(_half(n, 2) for n in args.size)))
        yield Row("ResNet-18", networks(*args.size), TARGETS)

    with torch.inference_mode():
        results = harness.measure(rows(), rounds, args.clock, TOLERANCE, "torch")
    work = {shape.name: (shape.times, shape.gflop) for shape in every}
    work |= {"max pool 3x3/2": (1, 0.0), "ResNet-18": (1, sum(s.times * s.gflop for s in every))}
    for row in results:
        row["count"], row["gflop"] = work[row["row"]]
    print(f"\nmilliseconds: median (minimum) of {rounds} rounds; zoo's time / the faster of torch's; GFLOP/s")
    print(_table([row for row in results if "times" in row]))
    for peer, found in results[-1].get("ratios", {}).items():
        print(f"ResNet-18, zoo / {peer}: {harness.show_ratio(found)}")
    result = {"environment": environment, "rounds": rounds, "size": args.size, "rows": results}
    harness.finish("convolutions", args, result)
    return 0 if all("times" in row for row in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("convolutions", __doc__, quick="one round, nothing written", cache=False)
    parser.add_argument("--size", type=int, nargs=2, default=(1000, 700), metavar=("Y", "X"), help="of the image")
    return parser


def convolutions(shape: ConvShape) -> dict[str, Callable[[], Any]]:
    """One convolution with bias, its weight prepared as a model's is."""
    import numpy as np
    import torch

    from zoo import ops

    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, shape.Y, shape.X, shape.C), np.float32)
    weight = rng.standard_normal((shape.D, shape.C, shape.kernel, shape.kernel), np.float32)
    weight /= np.float32(shape.C**0.5 * shape.kernel)
    bias, ones, zeros = rng.standard_normal(shape.D, np.float32), np.ones(shape.D), np.zeros(shape.D)
    ours, _ = ops.fold_norm(weight, bias, ones, zeros, zeros, ones, 0.0)
    prepared = ops.prepare_conv(ours, shape.stride)
    size = (shape.stride, shape.kernel // 2)
    calls: dict[str, Callable[[], Any]] = {
        "zoo": lambda: _first(ops.conv2d(x, ours, bias, *size, prepared=prepared)),
    }
    for name, order in _orders(torch).items():
        planes, w = (torch.from_numpy(a).contiguous(memory_format=order) for a in (_first(x), weight))
        b = torch.from_numpy(bias)
        calls[name] = lambda planes=planes, w=w, b=b: torch.nn.functional.conv2d(planes, w, b, *size)
    return calls


def pools(Y: int, X: int) -> dict[str, Callable[[], Any]]:
    import numpy as np
    import torch

    from zoo import ops

    x = np.random.default_rng(0).standard_normal((1, Y, X, 64), np.float32)
    calls: dict[str, Callable[[], Any]] = {"zoo": lambda: _first(ops.max_pool2d(x, 3, 2, 1))}
    for name, order in _orders(torch).items():
        planes = torch.from_numpy(_first(x)).contiguous(memory_format=order)
        calls[name] = lambda planes=planes: torch.nn.functional.max_pool2d(planes, 3, 2, 1)
    return calls


def networks(Y: int, X: int) -> dict[str, Callable[[], Any]]:
    """ResNet-18 with random weights, the same for all."""
    import numpy as np
    import torch
    from transformers import ResNetConfig, ResNetModel

    from zoo.models.resnet import ResNetModel as OurModel

    torch.manual_seed(0)
    fields = {"hidden_sizes": [D for D, _ in STAGES], "depths": [2] * len(STAGES), "layer_type": "basic"}
    theirs = ResNetModel(ResNetConfig(**fields)).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = OurModel.from_pretrained(folder)
    x = np.random.default_rng(0).standard_normal((1, Y, X, 3), np.float32)
    first = torch.from_numpy(_first(x)).contiguous()
    calls: dict[str, Callable[[], Any]] = {
        "zoo": lambda: _first(ours(x).last_hidden_state),
        "transformers": lambda: theirs(first).last_hidden_state,
    }
    for name, order in _orders(torch).items():
        planes = first.contiguous(memory_format=order)
        network = _torch_network(theirs, order)
        calls[name] = lambda network=network, planes=planes: network(planes)
    return calls


def _torch_network(model: Any, order: Any) -> Callable[[Any], Any]:
    import torch
    import torch.nn.functional as F
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    def folded(layer: Any) -> Callable[[Any], Any]:
        conv = fuse_conv_bn_eval(layer.convolution, layer.normalization).to(memory_format=order)
        return lambda x: F.conv2d(x, conv.weight, conv.bias, conv.stride, conv.padding)

    stem = folded(model.embedder.embedder)
    blocks = [
        (*map(folded, block.layer), None if isinstance(block.shortcut, torch.nn.Identity) else folded(block.shortcut))
        for stage in model.encoder.stages
        for block in stage.layers
    ]

    def network(x: Any) -> Any:
        x = F.max_pool2d(F.relu_(stem(x)), 3, 2, 1)
        for first, second, shortcut in blocks:
            residual = shortcut(x) if shortcut else x
            x = F.relu_(second(F.relu_(first(x))).add_(residual))
        return x

    return network


def _orders(torch: Any) -> dict[str, Any]:
    return {"torch": torch.contiguous_format, "torch channels_last": torch.channels_last}


def _first(x: Any) -> Any:
    """The same with channels first."""
    return x.transpose(0, 3, 1, 2)


def _table(rows: list[dict[str, Any]]) -> str:
    names = ["zoo", "torch", "torch channels_last", "transformers"]
    lines = []
    for row in rows:
        times = row["times"]
        best = min(("torch", "torch channels_last"), key=lambda name: times[name]["median_ms"])
        cells = [f"{times[n]['median_ms']:.1f} ({times[n]['min_ms']:.1f})" if n in times else "" for n in names]
        rates = [f"{1e3 * row['gflop'] / times[n]['median_ms']:.0f}" if row["gflop"] else "" for n in ("zoo", best)]
        count = f"{row['count']} x " if row["count"] > 1 else ""
        lines.append([count + row["row"], *cells, harness.show_ratio(row["ratios"][best]).split(" <=")[0], *rates])
    return harness.table(["", *names, "ratio", "zoo GFLOP/s", "torch GFLOP/s"], lines)


if __name__ == "__main__":
    raise SystemExit(main())
