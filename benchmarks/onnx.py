"""zoo's own ONNX graphs against torch.onnx's export of transformers, both by ONNX Runtime, and against transformers.

    python -m benchmarks.onnx                         # all rows; writes benchmarks/results/onnx-<processor>-<date>.json
    python -m benchmarks.onnx --quick                 # the first row of each, 3 rounds, nothing written
    python -m benchmarks.onnx --models bert-base --rounds 20 --threads 2 --json out.json

float32, one run, same weights and inputs, as in `benchmarks.cpu`: outputs are compared before anything is timed, and a
ratio is the median over the rounds of zoo's time / the peer's.  "nodes" counts what a graph has; "load" is the time of
a session of it.  torch.onnx writes the Table Transformer for one size of image alone, zoo for any.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import checkpoints, harness
from .cpu import BATCHES, SHAPES, TABLE_SIZES, TOLERANCE, Row, differences, pixels, tokens

MODELS = ("bert-base", "vit-base", "table-structure")
TARGETS = {"torch.onnx": 1.0, "transformers": 0.85}
Graph = Callable[..., Any]


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    threads = harness.take_threads(args.threads)
    import torch

    torch.set_num_threads(threads)
    environment = harness.environment(threads, args.clock)
    print(harness.summary(environment), flush=True)
    rounds, results = args.rounds or (3 if args.quick else 9), []
    for model in args.models:
        rows, graphs = _rows(model, args.cache, threads)
        print(*(f"{model}, {name}: {found}" for name, found in graphs.items()), sep="\n", flush=True)
        for row in rows[:1] if args.quick else rows:
            errors = differences(row.calls)
            if max(errors.values()) > TOLERANCE:
                print(f"{row.name}: not timed, since outputs differ: {errors}", flush=True)
                return 1
            found = harness.compare(harness.take_turns(row.calls, rounds, args.clock), row.targets)
            results.append({"row": row.name, "graphs": graphs, "differences": errors, **found})
            shown = ", ".join(f"/ {peer} {harness.show_ratio(r)}" for peer, r in found["ratios"].items())
            times = ", ".join(f"{name} {t['median_ms']:.1f} ({t['min_ms']:.1f})" for name, t in found["times"].items())
            print(f"{row.name}: {shown}; ms: {times}", flush=True)
    path = args.json or (None if args.quick else harness.dated("onnx", environment))
    if path:
        harness.write(path, {"environment": environment, "rounds": rounds, "rows": results})
        print(f"written to {path}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("onnx", __doc__, quick="only the first row of each model, 3 rounds")
    known = (*MODELS, "bert-tiny", "vit-tiny")
    parser.add_argument("--models", nargs="+", choices=known, default=MODELS, metavar="NAME", help=", ".join(known))
    return parser


def _rows(model: str, cache: Path, threads: int) -> tuple[list[Row], dict[str, Any]]:
    """The rows of a model, and what there is to say of each graph."""
    from . import image_peers, peers, table_peers

    peer: Any
    if model in TABLE_SIZES:
        size = TABLE_SIZES[model][0]
        folder = table_peers.checkpoint(cache, "full")
        path, peer = table_peers.exported(folder, *size), table_peers.detectors(folder)[""]["transformers"]
        example, work = (pixels(1, 96, 64)[0],), {f"{size[0]}x{size[1]}": pixels(1, *size)}
    elif model.startswith("vit"):
        folder = checkpoints.random_checkpoint(model, cache)
        path, peer = image_peers.exported(folder), image_peers.encoders(folder, threads)["transformers"]
        example, work = (pixels(2)[0],), {f"batch {batch}": pixels(batch) for batch in BATCHES}
    else:
        folder = checkpoints.random_checkpoint(model, cache)
        path, peer = peers.exported(folder), peers.encoders(folder, threads)["transformers"]
        example, work = tokens(2, 7), {f"{rows}x{length}": tokens(rows, length) for rows, length in SHAPES}
    ours, of_ours = _traced(folder, threads, example)
    theirs, of_theirs = _session(path, threads)
    rows = []
    for name, arrays in work.items():
        if len(example) == 1:  # images with channels last, and first
            own, given = arrays[:1], {"pixel_values": arrays[1]}
        else:
            own, given = arrays, dict(zip(("input_ids", "attention_mask"), arrays, strict=True))
        calls = {
            "zoo": partial(ours, *own),
            "torch.onnx": partial(theirs, given),
            "transformers": partial(peer, *arrays),
        }
        rows.append(Row(f"{model} {name}", calls, TARGETS))
    return rows, {"zoo": of_ours, "torch.onnx": of_theirs}


def _traced(folder: Path, threads: int, example: Sequence[Any]) -> tuple[Graph, dict[str, float]]:
    """zoo's graph of a checkpoint, from what a user passes to the first output."""
    import zoo
    from zoo.engines.onnx.trace import trace
    from zoo.inputs import ImageModel

    model: Any = zoo.load_model(folder)
    door = model.pixels if isinstance(model, ImageModel) else model.tokens
    begin = time.perf_counter()
    traced = trace(model.forward, door(*example))
    path = folder / "zoo.engines.onnx"
    traced.save(path)
    seconds = time.perf_counter() - begin
    run, about = _session(path, threads)
    return lambda *arrays: run(traced.signature.feed(door(*arrays))), {"seconds to export": round(seconds, 2), **about}


def _session(path: Path, threads: int) -> tuple[Graph, dict[str, float]]:
    import onnx

    from .peers import onnx_session

    nodes = len(onnx.load(str(path), load_external_data=False).graph.node)
    begin = time.perf_counter()
    session = onnx_session(path, threads)
    about = {"nodes": nodes, "seconds to load": round(time.perf_counter() - begin, 2)}
    return lambda given: session.run(None, given)[0], about


if __name__ == "__main__":
    raise SystemExit(main())
