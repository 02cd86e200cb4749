"""What models compute between products, and products of one row, against torch's own functions and torch.compile.

Shapes: M rows, D or F features; the figures are bytes that must be read and written, as a share of what a copy reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..gpu_measure import UNIT, Bench, Case, compare
from ..gpu_report import Row

EPS = 1e-5
DTYPE = "bfloat16"
WIDTH = 2  # bytes of an element
Make = Callable[..., Case]


def rows(bench: Bench) -> list[Row]:
    """What matters most first."""
    return [Row(name, 6, partial(_compared, bench, make, size)) for name, make, size in cases(bench.tiny)]


def _compared(bench: Bench, make: Make, size: tuple[int, ...]) -> dict[str, Any]:
    return compare(bench, make(bench, *size))


def cases(tiny: bool) -> list[tuple[str, Make, tuple[int, ...]]]:
    sizes: list[tuple[str, Make, list[tuple[int, ...]], list[tuple[int, ...]]]] = [
        ("RMS norm", rms_norm, [(16384, 4096), (16384, 2048), (1, 4096)], [(3, 40)]),
        ("add + RMS norm", add_rms_norm, [(16384, 4096), (1, 4096)], [(3, 40)]),
        ("layer norm", layer_norm, [(16384, 4096), (16384, 768), (197, 768)], [(3, 40)]),
        ("layer norm of a sum", layer_norm_of_sum, [(16384, 4096), (32768, 768), (128, 768)], [(3, 40)]),
        ("add + layer norm", add_layer_norm, [(16384, 4096)], [(3, 40)]),
        (
            "product of one row",
            gemv,
            [(28672, 4096), (4096, 14336), (6144, 4096), (4096, 4096), (128256, 4096), (16384, 2048), (2048, 8192)],
            [(24, 48)],
        ),
        ("gated silu", glu, [(16384, 14336), (1, 14336)], [(3, 24)]),
        ("bias + gelu", bias_gelu, [(32768, 3072), (16384, 16384)], [(3, 24)]),
        ("product + bias + gelu", linear_gelu, [(8192, 768, 3072)], [(16, 32, 48)]),
        ("rope", rope, [(4, 4096, 32, 128)], [(1, 5, 2, 16)]),
        ("rope into a cache", rope_write, [(1, 1, 32, 8, 128), (1, 2048, 32, 8, 128)], [(2, 1, 4, 2, 16)]),
        ("softmax", softmax, [(16384, 4096), (151296, 197)], [(3, 40)]),
    ]
    chosen = [(name, make, small if tiny else full) for name, make, full, small in sizes]
    first = [(name, make, size) for name, make, of in chosen for size in of[:1]]
    rest = [(name, make, size) for name, make, of in chosen for size in of[1:]]
    return [(f"{name} {' x '.join(map(str, size))}", make, size) for name, make, size in (*first, *rest)]


def _case(
    bench: Bench,
    ours: Callable[[], Any],
    call: Callable[..., Any],
    inputs: tuple[Any, ...],
    values: float = 0,
    reference: Callable[[], Any] | None = None,
    **more: Any,
) -> Case:
    """call: torch's, of the inputs; in float64 it is the reference, if none is named.

    values: how many are read and written.
    """
    theirs = lambda: call(*inputs)
    calls = {"zoo": ours, "torch": theirs, "torch.compile": bench.compiled(theirs)}
    exact = reference or (lambda: call(*(x.double() for x in inputs)))
    return Case(calls, exact, UNIT[DTYPE], bytes=WIDTH * values, **more)


def normed(bench: Bench, M: int, D: int) -> tuple[Any, Any, Any, Any]:
    """x, residual (M, D), weight, bias (D,)."""
    x, residual = bench.normal(M, D, seed=1), bench.normal(M, D, seed=2)
    return x, residual, 1 + bench.normal(D, seed=3, scale=0.1), bench.normal(D, seed=4, scale=0.1)


def layer_norm(bench: Bench, M: int, D: int) -> Case:
    from zoo.engines.triton import norm

    x, _, weight, bias = normed(bench, M, D)
    ours = lambda: norm.layer_norm(x, weight, bias, EPS)
    return _case(bench, ours, _layer_norm, (x, weight, bias), 2 * M * D)


def layer_norm_of_sum(bench: Bench, M: int, D: int) -> Case:
    from zoo.engines.triton import norm

    inputs = x, residual, weight, bias = normed(bench, M, D)
    ours = lambda: norm.layer_norm(x, weight, bias, EPS, residual)
    theirs = lambda x, residual, weight, bias: _layer_norm(x + residual, weight, bias)
    return _case(bench, ours, theirs, inputs, 3 * M * D)


def add_layer_norm(bench: Bench, M: int, D: int) -> Case:
    from zoo.engines.triton import norm

    inputs = normed(bench, M, D)
    return _case(bench, lambda: norm.add_layer_norm(*inputs, EPS), _added(_layer_norm), inputs, 4 * M * D)


def rms_norm(bench: Bench, M: int, D: int) -> Case:
    from zoo.engines.triton import norm

    x, _, weight, _ = normed(bench, M, D)
    return _case(bench, lambda: norm.rms_norm(x, weight, EPS), _rms_norm, (x, weight), 2 * M * D)


def add_rms_norm(bench: Bench, M: int, D: int) -> Case:
    from zoo.engines.triton import norm

    inputs = normed(bench, M, D)[:3]
    return _case(bench, lambda: norm.add_rms_norm(*inputs, EPS), _added(_rms_norm), inputs, 4 * M * D)


def _layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    import torch.nn.functional as F

    return F.layer_norm(x, x.shape[-1:], weight, bias, EPS)


def _rms_norm(x: Any, weight: Any) -> Any:
    import torch.nn.functional as F

    return F.rms_norm(x, x.shape[-1:], weight, EPS)


def _added(norm: Callable[..., Any]) -> Callable[..., Any]:
    """The norm of x + residual, and the sum."""

    def call(x: Any, residual: Any, *parameters: Any) -> Any:
        total = x + residual
        return norm(total, *parameters), total

    return call


def softmax(bench: Bench, M: int, D: int) -> Case:
    from zoo.engines.triton.softmax import softmax as ours

    x = bench.normal(M, D, seed=1, scale=3)
    return _case(bench, lambda: ours(x), lambda x: x.softmax(-1), (x,), 2 * M * D)


def bias_gelu(bench: Bench, M: int, D: int) -> Case:
    """In place: it is checked on a copy, and timed on one array again and again."""
    import torch.nn.functional as F

    from zoo.engines.triton.activations import bias_act_

    x, bias = bench.normal(M, D, seed=1), bench.normal(D, seed=2)
    used = x.clone()
    ours, timed = (lambda: bias_act_(x.clone(), bias, "gelu")), {"zoo": lambda: bias_act_(used, bias, "gelu")}
    return _case(bench, ours, lambda x, bias: F.gelu(x + bias), (x, bias), 2 * M * D, timed=timed)


def linear_gelu(bench: Bench, M: int, D: int, F_: int) -> Case:
    """The first half of an MLP, as models call it: product, bias and activation."""
    import torch.nn.functional as F

    from zoo import ops

    inputs = bench.normal(M, D, seed=1), bench.normal(F_, D, seed=2, scale=D**-0.5), bench.normal(F_, seed=3)
    theirs = lambda x, weight, bias: F.gelu(F.linear(x, weight, bias))
    return _case(bench, lambda: ops.linear(*inputs, "gelu"), theirs, inputs, flops=2 * M * D * F_)


def glu(bench: Bench, M: int, F_: int) -> Case:
    import torch.nn.functional as F

    from zoo.engines.triton.activations import glu as ours

    def theirs(x: Any) -> Any:
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up

    x = bench.normal(M, 2 * F_, seed=1)
    return _case(bench, lambda: ours(x, "silu"), theirs, (x,), 3 * M * F_)


def gemv(bench: Bench, outputs: int, inputs: int) -> Case:
    """One row through a matrix: a token of a decoder.  torch's is cuBLAS."""
    import torch.nn.functional as F

    from zoo.engines.triton.gemv import gemv as ours

    x, weight = bench.normal(1, inputs, seed=1), bench.normal(outputs, inputs, seed=2, scale=inputs**-0.5)
    return Case(
        {"zoo": lambda: ours(x, weight, None, None, None), "torch": lambda: F.linear(x, weight)},
        lambda: F.linear(x.double(), weight.double()),
        UNIT[DTYPE],
        bytes=WIDTH * (outputs * inputs + outputs + inputs),
    )


def _turned(x: Any, cos: Any, sin: Any) -> Any:
    """As transformers does it.  x (B, T, H, K), cos and sin (1, T, K)."""
    import torch

    a, b = x.chunk(2, -1)
    return x * cos[:, :, None] + torch.cat((-b, a), -1) * sin[:, :, None]


def angles(bench: Bench, T: int, K: int) -> tuple[Any, Any]:
    """cos and sin (1, T, K / 2) in float32."""
    import torch

    at = torch.arange(T, device=bench.device, dtype=torch.float32)[None, :, None]
    angles = at * 10000.0 ** (-torch.arange(0, K, 2, device=bench.device, dtype=torch.float32) / K)
    return angles.cos(), angles.sin()


def _double(turn: tuple[Any, Any], like: Any) -> tuple[Any, Any]:
    """The same (1, T, K), as transformers has them, in the dtype of `like`."""
    import torch

    cos, sin = (torch.cat((x, x), -1).to(like.dtype) for x in turn)
    return cos, sin


def rope(bench: Bench, B: int, T: int, H: int, K: int) -> Case:
    from zoo.engines.triton.rope import rope as ours

    x, turn = bench.normal(B, T, H, K, seed=1), angles(bench, T, K)
    wide = _double(turn, x)
    exact = lambda: _turned(x.double(), *_double(turn, x.double()))
    return _case(bench, lambda: ours(x, *turn), _turned, (x, *wide), 2 * B * T * H * K, exact)


def rope_write(bench: Bench, B: int, T: int, H: int, G: int, K: int) -> Case:
    """q and k turned, k and v put into a cache."""
    import torch

    from zoo.engines.triton.rope import rope_write_

    q = bench.normal(B, T, H, K, seed=1)
    k, v = (bench.normal(B, T, G, K, seed=seed) for seed in (2, 3))
    before, turn = 3, angles(bench, T, K)
    wide = _double(turn, q)
    start = torch.full((B,), before, dtype=torch.int64, device=bench.device)
    at = torch.arange(before, before + T, device=bench.device)
    keys, values, their_keys, their_values = (k.new_zeros(B, T + 8, G, K) for _ in range(4))

    def ours() -> Any:
        turned = rope_write_(q, k, v, *turn, keys, values, start)
        return turned, keys[:, before : before + T], values[:, before : before + T]

    def theirs() -> Any:
        their_keys.index_copy_(1, at, _turned(k, *wide))
        their_values.index_copy_(1, at, v)
        return _turned(q, *wide), their_keys[:, before : before + T], their_values[:, before : before + T]

    def reference() -> Any:
        cos, sin = _double(turn, q.double())
        return _turned(q.double(), cos, sin), _turned(k.double(), cos, sin), v

    return _case(bench, ours, theirs, (), 2 * B * T * K * (H + 2 * G), reference)
