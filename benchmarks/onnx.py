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
from .cpu import BATCHES, SHAPES, TABLE_SIZES, TOLERANCE, pixels, tokens
from .harness import Row

MODELS = ("bert-base", "vit-base", "table-structure")
TARGETS = {"torch.onnx": 1.0, "transformers": 0.85}
Graph = Callable[..., Any]


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    environment = harness.start(args)
    rounds, results = args.rounds or (3 if args.quick else 9), []
    for model in args.models:
        rows, graphs = _rows(model, args.cache, environment["threads"])
        print(*(f"{model}, {name}: {found}" for name, found in graphs.items()), sep="\n", flush=True)
        found = harness.measure(rows[: 1 if args.quick else None], rounds, args.clock, TOLERANCE, "transformers")
        results += [{**row, "graphs": graphs} for row in found]
    harness.print_rows(results, rounds)
    harness.finish("onnx", args, {"environment": environment, "rounds": rounds, "rows": results})
    return 0 if all("times" in row for row in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("onnx", __doc__, quick="only the first row of each model, 3 rounds")
    known = (*MODELS, "bert-tiny", "vit-tiny")
    parser.add_argument("--models", nargs="+", choices=known, default=MODELS, metavar="NAME", help=", ".join(known))
    return parser


def _rows(model: str, cache: Path, threads: int) -> tuple[list[Row], dict[str, Any]]:
    """The rows of a model, and the nodes and seconds of each graph."""
    from . import peers, table_peers

    if model in TABLE_SIZES:
        size = TABLE_SIZES[model][0]
        folder = checkpoints.of_spec(table_peers.SPEC, cache, "full")
        path, peer = table_peers.exported(folder, *size), table_peers.detectors(folder)[""]["transformers"]
        example, work = (pixels(1, 96, 64)[0],), {f"{size[0]}x{size[1]}": pixels(1, *size)}
    else:
        folder = checkpoints.random_checkpoint(model, cache)
        path, peer = peers.exported(folder), peers.encoders(folder, threads)["transformers"]
        if model.startswith("vit"):
            example, work = (pixels(2)[0],), {f"batch {batch}": pixels(batch) for batch in BATCHES}
        else:
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
    """zoo's graph of a checkpoint: from the arguments of a call to its first output."""
    import zoo
    from zoo.engines.onnx.trace import trace
    from zoo.inputs import ImageModel

    model: Any = zoo.load_model(folder)
    check = model.pixels if isinstance(model, ImageModel) else model.tokens
    begin = time.perf_counter()
    traced = trace(model.forward, check(*example), masks=False, on_cpu=True)
    path = folder / "zoo.engines.onnx"
    traced.save(path)
    seconds = time.perf_counter() - begin
    run, about = _session(path, threads)
    return lambda *arrays: run(traced.signature.feed(check(*arrays))), {"seconds to export": round(seconds, 2), **about}


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
