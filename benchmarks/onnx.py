"""zoo's own ONNX graphs against torch.onnx's export of transformers, both by ONNX Runtime, and against transformers.

    python -m benchmarks.onnx                         # all rows; writes benchmarks/results/onnx-<processor>-<date>.json
    python -m benchmarks.onnx --quick                 # the first row of each, nothing written
    python -m benchmarks.onnx --models bert-base --rounds 20 --threads 2 --json out.json

float32, one run, same weights and inputs, as in `benchmarks.cpu`.  In each round every contender opens its graph or
checkpoint in a process of its own, and is timed on each row; outputs are compared before times are given.  A ratio is
the median over the rounds of zoo's time / the peer's.  "nodes" counts what a graph has; "load" is the time of a session
of it.  torch.onnx writes the Table Transformer for one size of image alone, zoo for any.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import checkpoints, harness
from .cpu import BATCHES, SHAPES, TABLE_SIZES, TOLERANCE, pixels, tokens

MODELS = ("bert-base", "vit-base", "table-structure")
TARGETS = {"torch.onnx": 1.0, "transformers": 0.85}
CONTENDERS = ("zoo", "torch.onnx", "transformers")
Graph = Callable[..., Any]
CHILD = """
import json, sys
from pathlib import Path
from benchmarks.onnx import measure
who, model, cache, place, threads, clock, rows = sys.argv[1:]
print(json.dumps(measure(who, model, Path(cache), Path(place), int(threads), clock, json.loads(rows))))
"""


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    environment = harness.start(args)
    rounds, results = args.rounds or 3, []
    for model in args.models:
        folder = _folder(model, args.cache)
        _exported(model, folder)
        results += _compared(model, rounds, args, environment["threads"])
    harness.print_rows(results, rounds)
    harness.finish("onnx", args, {"environment": environment, "rounds": rounds, "rows": results})
    return 0 if all("times" in row for row in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("onnx", __doc__, quick="only the first row of each model")
    known = (*MODELS, "bert-tiny", "vit-tiny")
    parser.add_argument("--models", nargs="+", choices=known, default=MODELS, metavar="NAME", help=", ".join(known))
    return parser


def _compared(model: str, rounds: int, args: argparse.Namespace, threads: int) -> list[dict[str, Any]]:
    """The rows of a model."""
    import numpy as np

    runs: dict[str, list[Any]] = {name: [] for name in CONTENDERS}
    outputs: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        for name in harness.in_turns(CONTENDERS, rounds):
            of = (str(args.cache), place, str(threads), args.clock, json.dumps(1 if args.quick else None))
            runs[name].append(harness.run_python(CHILD, name, model, *of))
            count = len(runs[name][0]["seconds"])
            outputs[name] = [np.load(Path(place) / f"{i}.npy") for i in range(count)]
    graphs = {name: runs[name][0]["graph"] for name in CONTENDERS[:2]}
    print(*(f"{model}, {name}: {found}" for name, found in graphs.items()), sep="\n", flush=True)
    results = []
    for i, row in enumerate(runs["zoo"][0]["seconds"]):
        calls = {name: (lambda x=of[i]: x) for name, of in outputs.items()}
        found: dict[str, Any] = {"row": row, "differences": harness.differences(calls), "graphs": graphs}
        if max(found["differences"].values()) > TOLERANCE:
            print(f"{row}: no time is given, since outputs differ: {found['differences']}", flush=True)
        else:
            seconds = {name: [run["seconds"][row] for run in of] for name, of in runs.items()}
            found |= harness.compare(seconds, TARGETS)
        results.append(found)
    return results


def measure(
    who: str, model: str, cache: Path, place: Path, threads: int, clock: str, count: int | None
) -> dict[str, Any]:
    """The seconds of a contender on the first `count` rows of a model; its outputs go to files in `place`."""
    import numpy as np

    call, graph, rows = _contender(who, model, cache, threads)
    seconds = {}
    for i, (name, arrays) in enumerate(list(rows.items())[:count]):
        np.save(place / f"{i}.npy", call(*arrays))
        seconds[name] = harness.alone(partial(call, *arrays), clock)
    return {"seconds": seconds, "graph": graph}


def _folder(model: str, cache: Path) -> Path:
    from . import table_peers

    return (
        checkpoints.of_spec(table_peers.SPEC, cache, "full")
        if model in TABLE_SIZES
        else (checkpoints.random_checkpoint(model, cache))
    )


def _exported(model: str, folder: Path) -> Path:
    """transformers' model as torch.onnx writes it, on first use."""
    from . import peers, table_peers

    return table_peers.exported(folder, *TABLE_SIZES[model][0]) if model in TABLE_SIZES else peers.exported(folder)


def _contender(who: str, model: str, cache: Path, threads: int) -> tuple[Graph, dict[str, float], dict[str, Any]]:
    """A contender's call, figures of its graph, and the arguments of the call for each row."""
    folder, example = _folder(model, cache), tokens(2, 7)
    if model in TABLE_SIZES:
        size = TABLE_SIZES[model][0]
        example, work = (pixels(1, 96, 64)[0],), {f"{model} {size[0]}x{size[1]}": pixels(1, *size)}
    elif model.startswith("vit"):
        example, work = (pixels(2)[0],), {f"{model} batch {batch}": pixels(batch) for batch in BATCHES}
    else:
        work = {f"{model} {rows}x{length}": tokens(rows, length) for rows, length in SHAPES}
    if who == "transformers":
        return _transformers(model, folder, threads), {}, work
    if who == "zoo":  # takes images with channels last, which come first
        return *_traced(folder, threads, example), {name: arrays[: len(example)] for name, arrays in work.items()}
    run, about = _session(_exported(model, folder), threads)
    names = ("pixel_values",) if len(example) == 1 else ("input_ids", "attention_mask")
    return lambda *arrays: run(dict(zip(names, arrays[-len(names) :], strict=True))), about, work


def _transformers(model: str, folder: Path, threads: int) -> Graph:
    import torch

    from . import peers, table_peers

    torch.set_num_threads(threads)
    found = table_peers.detectors(folder)[""] if model in TABLE_SIZES else peers.encoders(folder, threads)
    return found["transformers"]


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
