"""Which config is fastest for each kernel: all candidates are compiled by many processes, checked and timed.

The tables in zoo/ops/on_torch/kernels say what is used; here they are ranked, and what wins is written by hand.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .. import harness
from ..gpu_measure import TIMES, UNIT, Bench, opened, reason, relative_l2, take_turns, turn_of
from ..gpu_report import Report, Row, run_rows
from . import attention, between, packed
from .attention import Shape

WORKERS = 16
TOGETHER = 4  # candidates that a worker compiles in one go
FINAL = 6  # that are timed in turns
SHARE = 0.5  # of the stage's time, at most for compiling


class Ranked(NamedTuple):
    """candidates: the table's own choice first.  call: the kernel with one of them.  timed: in place of call."""

    candidates: Sequence[Any]
    call: Callable[[Any], Any]
    unit: float
    timed: Callable[[Any], Any] | None = None


# (row, number of the candidate) -> why it cannot be used, empty if it can
Compiled = dict[tuple[str, int], str]
LATE = "not compiled in time"

_broken = False


def run(bench: Bench, report: Report) -> None:
    wanted = [row.name for row in rows(bench) if bench.only.search(row.name) and row.name not in report.done]
    ahead = None
    if bench.clock.left() > 0:
        begin = time.monotonic()
        ahead = compiled(bench, wanted)
        print(f"rank: compiled for {time.monotonic() - begin:.0f} s", flush=True)
    run_rows(bench, report, rows(bench, ahead))


def rows(bench: Bench, ahead: Compiled | None = None) -> list[Row]:
    """ahead: what was compiled; None for a list of rows that nobody runs."""
    return [Row(name, 4, partial(rank, bench, name, make, ahead)) for name, make in cases(bench.tiny).items()]


def rank(bench: Bench, name: str, make: Callable[[Bench], Ranked], ahead: Compiled | None) -> dict[str, Any]:
    """Each candidate's time, or why it has none; the table's choice and the fastest in turns."""
    ranked = make(bench)
    table, wanted = ranked.candidates[0], None
    refused, calls, quick = {}, {}, {}
    for i, config in enumerate(ranked.candidates):
        known = "" if ahead is None or i == 0 else ahead.get((name, i), LATE)
        if known or bench.clock.left() < 0:
            refused[repr(config)] = known or "out of time"
            continue
        try:
            output = ranked.call(config)
            bench.synchronize()
            wanted = output if wanted is None else wanted
            if not relative_l2(output, wanted) <= TIMES * ranked.unit:
                raise ValueError(f"its result differs by {relative_l2(output, wanted):.1e} from the table's choice")
            calls[repr(config)] = partial(ranked.timed or ranked.call, config)
            if not bench.interpreted:
                quick[repr(config)] = turn_of(bench, calls[repr(config)], 5)()
        except Exception as e:
            if "CUDA error" in str(e) or config == table:
                raise
            refused[repr(config)] = reason(e)
    chosen = sorted(calls, key=lambda config: quick.get(config, 0))[:FINAL]
    final = {config: calls[config] for config in dict.fromkeys((repr(table), *chosen))}
    ms = {config: 1e3 * statistics.median(t) for config, t in take_turns(bench, final, 3).items() if t}
    found = {"table": repr(table), "candidates": {c: 1e3 * t for c, t in quick.items()}, "refused": refused}
    if not ms:
        return {**found, "best": None, "times": ms, "summary": f"{len(calls)} candidates agree, none is timed"}
    best = min(ms, key=lambda config: ms[config])
    ratio, of_table = ms[best] / ms[repr(table)], f"{table!r}, {ms[repr(table)]:.4g} ms"
    says = "the table's own" if best == repr(table) else f"{ratio:.2f} of the table's {of_table}"
    return {**found, "best": best, "times": ms, "gain": ratio, "summary": f"{best}, {ms[best]:.4g} ms: {says}"}


# Compiling ahead: what one process compiles, all find in Triton's cache


def compiled(bench: Bench, wanted: Sequence[str]) -> Compiled:
    """Run every candidate of the rows once, in many processes -> which can be used, as far as there was time."""
    todo = []
    for name in wanted:
        count = len(cases(bench.tiny)[name](bench).candidates)
        todo += [(name, list(range(i, min(i + TOGETHER, count)))) for i in range(0, count, TOGETHER)]
        bench.free()
    end, found = time.monotonic() + SHARE * bench.clock.left(), {}
    workers = min(WORKERS, harness.available_cores(), len(todo))
    if not workers:
        return found
    tasks = [(bench.tiny, bench.folder, name, which) for name, which in todo]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:  # which kills what still runs at the end
        results = pool.imap_unordered(compile_some, tasks)
        try:
            for _ in tasks:
                found.update(results.next(timeout=max(0.0, end - time.monotonic())))
        except multiprocessing.TimeoutError:
            print("rank: not all candidates could be compiled ahead", flush=True)
    return found


def compile_some(task: tuple[bool, Path, str, Sequence[int]]) -> Compiled:
    """In a process of its own, which takes no more once it has broken its CUDA context: all else would seem to fail."""
    global _broken
    if _broken:
        time.sleep(3600)  # until the pool ends
    (tiny, folder, name, which), found = task, {}
    with opened(tiny, 1, folder) as bench:
        ranked = cases(tiny)[name](bench)
        for i in which:
            try:
                ranked.call(ranked.candidates[i])
                bench.synchronize()
                found[name, i] = ""
            except Exception as e:
                found[name, i] = reason(e)
                _broken = "CUDA error" in str(e)
                if _broken:
                    break
    return found


# What is ranked: one shape for each entry of a table that a model needs

WHOLE = [
    Shape(8, 2048, 2048, 32, 32, 64),
    Shape(8, 2048, 2048, 16, 16, 128),
    Shape(8, 2048, 2048, 32, 32, 64, "causal"),
    Shape(8, 2048, 2048, 16, 16, 128, "causal"),
    Shape(64, 197, 197, 12, 12, 64),
    Shape(64, 197, 197, 12, 12, 64, "bias"),
    Shape(64, 512, 512, 12, 12, 64, "mask"),
    Shape(8, 2048, 2048, 16, 16, 128, "bias"),
    Shape(1, 512, 512, 32, 8, 128, "causal"),
    Shape(8, 2048, 2048, 16, 16, 80),
    Shape(32, 512, 512, 32, 32, 64, dtype="float32"),
]
DECODE = [
    Shape(1, 1, 2048, 32, 8, 128),
    Shape(1, 1, 8192, 32, 8, 128),
    Shape(8, 1, 2048, 32, 8, 128),
    Shape(1, 1, 2048, 32, 8, 64),
    Shape(1, 1, 578, 16, 16, 64),
]
GEMV = [(28672, 4096), (4096, 14336), (6144, 4096), (4096, 4096), (128256, 4096), (16384, 2048), (2048, 2048)]
NORMS = [(16384, 4096), (16384, 2048), (32768, 768), (16384, 8192), (1, 4096)]


def cases(tiny: bool) -> dict[str, Callable[[Bench], Ranked]]:
    """Name of a row -> what makes it; what matters most first."""
    out: dict[str, Callable[[Bench], Ranked]] = {}
    for s in attention.decode_shapes(True)[:1] if tiny else DECODE:
        out[f"decode {s.name}"] = partial(_decode, s)
    for s in attention.shapes(True)[:2] if tiny else WHOLE:
        out[f"attention {s.name}"] = partial(_attention, s)
    for size in [(24, 48)] if tiny else GEMV:
        out[f"product of one row {size[0]} x {size[1]}"] = partial(_gemv, *size)
    for name, kind, size in packed.cases(tiny):
        if size[0] <= 512:  # the same tile as for more
            out[name] = partial(_packed, kind, size)
    for size in [(3, 40)] if tiny else NORMS:
        out[f"RMS norm {size[0]} x {size[1]}"] = partial(_rms_norm, *size)
    for size in [(3, 40)] if tiny else [(32768, 768), (16384, 4096)]:
        out[f"layer norm of a sum {size[0]} x {size[1]}"] = partial(_layer_norm_of_sum, *size)
    for size in [(3, 40)] if tiny else [(151296, 197), (16384, 4096)]:
        out[f"softmax {size[0]} x {size[1]}"] = partial(_softmax, *size)
    out["bias + gelu"] = partial(_bias_gelu, *((3, 24) if tiny else (32768, 3072)))
    out["gated silu"] = partial(_glu, *((3, 24) if tiny else (16384, 14336)))
    for size in [(1, 5, 2, 16)] if tiny else [(4, 4096, 32, 128), (1, 1, 32, 128)]:
        out[f"rope {' x '.join(map(str, size))}"] = partial(_rope, *size)
    return out


def _ranked(bench: Bench, candidates: Sequence[Any], call: Callable[[Any], Any], dtype: str = between.DTYPE) -> Ranked:
    return Ranked(candidates[:2] if bench.tiny else candidates, call, UNIT[dtype])


def _attention(s: Shape, bench: Bench) -> Ranked:
    from zoo.engines.triton.attention import attention as kernel
    from zoo.engines.triton.configs import attention_candidates

    inputs = attention.whole_inputs(bench, s)
    q, k, _, start, _, bias, _ = inputs
    found = attention_candidates(q, k, start is not None, bias is not None)
    return _ranked(bench, found, lambda config: kernel(*inputs, config=config), s.dtype)


def _decode(s: Shape, bench: Bench) -> Ranked:
    from zoo.engines.triton.configs import decode_candidates
    from zoo.engines.triton.decode import decode_attention

    inputs = attention.decode_inputs(bench, s)
    found = decode_candidates(*inputs[:2])
    return _ranked(bench, found, lambda config: decode_attention(*inputs, config=config), s.dtype)


def _gemv(outputs: int, inputs: int, bench: Bench) -> Ranked:
    from zoo.engines.triton import gemv

    x, weight = bench.normal(1, inputs, seed=1), bench.normal(outputs, inputs, seed=2, scale=inputs**-0.5)
    return _ranked(bench, gemv.gemv_candidates(weight), lambda config: gemv.gemv(x, weight, config=config))


def _packed(kind: str, size: packed.Size, bench: Bench) -> Ranked:
    from zoo.engines.triton import packed_dot, packed_gemv

    M, outputs, inputs = size
    x, fields = bench.normal(M, inputs, seed=1), packed.matrix(bench, kind, outputs, inputs).arrays
    if M == 1:
        found = packed_gemv.packed_gemv_candidates(x, outputs)
        return _ranked(bench, found, lambda config: packed_gemv.packed_gemv(x, kind, fields, config=config))
    found = packed_dot.packed_dot_candidates(x, kind, outputs)
    return _ranked(bench, found, lambda config: packed_dot.packed_dot(x, kind, fields, config=config))


def _rms_norm(M: int, D: int, bench: Bench) -> Ranked:
    from zoo.engines.triton import norm, rows

    x, _, weight, _ = between.normed(bench, M, D)
    return _ranked(bench, rows.row_candidates(x), lambda config: norm.rms_norm(x, weight, between.EPS, config=config))


def _layer_norm_of_sum(M: int, D: int, bench: Bench) -> Ranked:
    from zoo.engines.triton import norm, rows

    x, residual, weight, bias = between.normed(bench, M, D)
    return _ranked(
        bench,
        rows.row_candidates(x),
        lambda config: norm.layer_norm(x, weight, bias, between.EPS, residual, config=config),
    )


def _softmax(M: int, D: int, bench: Bench) -> Ranked:
    from zoo.engines.triton import rows
    from zoo.engines.triton.softmax import softmax

    x = bench.normal(M, D, seed=1, scale=3)
    return _ranked(bench, rows.row_candidates(x), lambda config: softmax(x, config=config))


def _bias_gelu(M: int, D: int, bench: Bench) -> Ranked:
    """In place: checked on a copy, timed on one array again and again."""
    from zoo.engines.triton import activations

    x, bias = bench.normal(M, D, seed=1), bench.normal(D, seed=2)
    used = x.clone()
    ranked = _ranked(
        bench,
        activations.point_candidates(x),
        lambda config: activations.bias_act_(x.clone(), bias, "gelu", config=config),
    )
    return ranked._replace(timed=lambda config: activations.bias_act_(used, bias, "gelu", config=config))


def _glu(M: int, features: int, bench: Bench) -> Ranked:
    from zoo.engines.triton import activations

    x = bench.normal(M, 2 * features, seed=1)
    found = activations.point_candidates(x[:, :features])
    return _ranked(bench, found, lambda config: activations.glu(x, "silu", config=config))


def _rope(B: int, T: int, H: int, K: int, bench: Bench) -> Ranked:
    from zoo.engines.triton import rope

    x, angles = bench.normal(B, T, H, K, seed=1), between.angles(bench, T, K)
    return _ranked(bench, rope.rope_candidates(x), lambda config: rope.rope(x, *angles, config=config))
