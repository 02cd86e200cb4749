"""The card's own ceilings, and which config is fastest for each kernel.

The tables in zoo's kernels say which configs are used; what wins here is written there by hand.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from .. import harness
from .kernels import Make, problems
from .measure import TIMES, Bench, BenchRow, opened, rated, reason, relative_l2, take_turns, turn_of

WORKERS, FINAL, SHARE = 16, 6, 0.5  # processes that compile; configs timed in turns; the compiling's share of the time


def ceilings(bench: Bench) -> list[BenchRow]:
    """A large copy and large products: the shares of all other stages refer to them."""
    dtypes = {"bf16": "bfloat16", "fp16": "float16"}
    return [
        BenchRow("copy", partial(_copy, bench)),
        *(BenchRow(f"{name} product", partial(_product, bench, dtype)) for name, dtype in dtypes.items()),
    ]


def _copy(bench: Bench) -> dict[str, Any]:
    x = torch.randint(-128, 127, (1 << (16 if bench.tiny else 32),), dtype=torch.int8, device=bench.device)
    y = torch.empty_like(x)
    return rated(bench, take_turns(bench, {"torch": lambda: y.copy_(x)}), bytes=2 * x.numel())


def _product(bench: Bench, dtype: str) -> dict[str, Any]:
    """A product of random matrices: on zeros a card is faster."""
    size = 64 if bench.tiny else 8192
    a, b = (bench.normal(size, size, dtype=dtype, seed=seed) for seed in (1, 2))
    return rated(bench, take_turns(bench, {"torch": lambda: a @ b}), flops=2 * size**3)


def rank_rows(bench: Bench) -> list[BenchRow]:
    return [BenchRow(f"rank {name}", partial(_rank, bench, make)) for name, make in problems(bench.tiny).items()]


def _rank(bench: Bench, make: Make) -> dict[str, Any]:
    """Each candidate's time, or why it has none; the table's choice and the fastest in turns."""
    p = make(bench)
    if not p.candidates:
        return {"summary": "there is nothing to choose"}
    candidates, wanted = (p.candidates[:2] if bench.tiny else p.candidates), None
    refused, calls, quick = {}, {}, {}
    for config in candidates:
        try:
            output = p.ours(config=config)
            bench.synchronize()
            wanted = output if wanted is None else wanted
            if not relative_l2(output, wanted) <= TIMES * p.unit:
                raise ValueError(f"its result differs by {relative_l2(output, wanted):.1e} from the table's choice")
            calls[repr(config)] = partial(p.timed or p.ours, config=config)
            if not bench.interpreted:
                quick[repr(config)] = turn_of(bench, calls[repr(config)], 5)()
        except Exception as e:
            if "CUDA error" in str(e) or config == candidates[0]:
                raise
            refused[repr(config)] = reason(e)
    table = repr(candidates[0])
    final = dict.fromkeys((table, *sorted(calls, key=lambda config: quick.get(config, 0))[:FINAL]))
    times = take_turns(bench, {config: calls[config] for config in final}, rounds=3)
    ms = {config: 1e3 * statistics.median(t) for config, t in times.items() if t}
    found = {"table": table, "candidates": {c: 1e3 * t for c, t in quick.items()}, "refused": refused, "ms": ms}
    if not ms:
        return {**found, "best": None, "summary": f"{len(calls)} candidates agree, none is timed"}
    best = min(ms, key=lambda config: ms[config])
    says = (
        "the table's own" if best == table else f"{ms[best] / ms[table]:.2f} of the table's {table}, {ms[table]:.4g} ms"
    )
    return {**found, "best": best, "summary": f"{best}, {ms[best]:.4g} ms: {says}"}


def compile_ahead(bench: Bench, wanted: Sequence[str]) -> None:
    """Run every candidate of some rows once, in many processes: all find what they compile in Triton's cache."""
    tasks = [(bench.tiny, bench.folder, name, i, WORKERS) for name in wanted for i in range(WORKERS)]
    end = time.monotonic() + SHARE * bench.left()
    with multiprocessing.get_context("spawn").Pool(min(WORKERS, harness.available_cores())) as pool:
        results = pool.imap_unordered(_compile, tasks)
        try:
            for _ in tasks:
                results.next(timeout=max(0.0, end - time.monotonic()))
        except multiprocessing.TimeoutError:
            print("rank: not all candidates could be compiled ahead", flush=True)


def _compile(task: tuple[bool, Path, str, int, int]) -> None:
    tiny, folder, name, first, step = task
    with opened(tiny, folder) as bench:
        p = problems(tiny)[name](bench)
        for config in p.candidates[first::step]:
            try:
                p.ours(config=config)
                bench.synchronize()
            except Exception as e:  # `_rank` will meet it again
                if "CUDA error" in str(e):
                    time.sleep(3600)  # this process is of no more use; the pool ends it
