"""docs/performance.md: for each job, zoo's best and worst row beside other libraries, by processor and engine.

`benchmarks.pages` writes it.  It is made of the same files as the page of all measurements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Result = Mapping[str, Any]

HEAD = """\
# Performance

<!-- Made by `python -m benchmarks.pages` from benchmarks/results/*.json: do not edit. -->

How long zoo takes relative to other libraries, for each job: the best row and the worst that were measured, by kind
of processor and by engine. A number is zoo's time over the other library's: **below 1 zoo is faster**. Both sides
computed with the same weights and inputs, in turns.
[measurements.md](measurements.md) has every row, with dates and versions.

Rows "by CPU" count the seconds of the CPU with one thread, since other programs ran there too; the others are wall time
with two threads. [onnx.md](onnx.md) tells how to choose an engine.
"""
END = """\
## Elsewhere

- How many cells of a table are right, beside other libraries: [tables.md](tables.md#comparison-with-other-libraries).
- `zoo serve`: [requests a second](measurements.md#serving), [several chats at once](measurements.md#streams).
- Start and memory of a process: [from a new process to a first output](measurements.md#start-and-memory).
- On a GPU: [gpu.md](gpu.md), and [all rows](measurements.md#on-a-gpu).
"""

# Title -> the names of its rows, by a pattern; the first that matches counts.
JOBS = {
    "Sentences": r"(?i)minilm|mpnet",
    "Speech": r"of sound|whisper|wav2vec|hubert|wavlm",
    "Texts: classes, tags, vectors": r"bert|electra|nomic|gte|\d tokens$",
    "Tables": r"table",
    "Writing texts": r"written|more$|^(decode|prefill) ",
    "Pictures": r"",
}
ORDER = ("Sentences", "Texts: classes, tags, vectors", "Pictures", "Tables", "Speech", "Writing texts")
# Kind of result -> the engine that zoo had.
ENGINES = {
    "cpu": "NumPy",
    "table": "NumPy",
    "sentences": "ONNX Runtime",
    "families": "ONNX Runtime",
    "whisper": "ONNX Runtime",
    "onnx": "ONNX Runtime",
    "openvino": "OpenVINO, bfloat16",
    "onnx_int8": "ONNX Runtime, int8",
    "quantised": "ONNX Runtime",
}


class Comparison(NamedTuple):
    """zoo and a peer on one row."""

    job: str
    where: tuple[str, str]  # processor and engine
    row: str
    peer: str
    ratio: float


def page(results: Mapping[str, Result]) -> str:
    """The page of results by their files' names."""
    found = [one for name, result in results.items() for one in _comparisons(name, result)]
    parts = [HEAD]
    for job in ORDER:
        mine = [one for one in found if one.job == job]
        if not mine:
            continue
        lines = ["| processor | zoo on | best | | worst | |", "| --- | --- | --- | ---: | --- | ---: |"]
        for where in sorted({one.where for one in mine}):
            here = sorted((one for one in mine if one.where == where), key=lambda one: one.ratio)
            cells = (f"{one.row} / {one.peer} | {_ratio(one.ratio)}" for one in (here[0], here[-1]))
            lines.append(f"| {' | '.join((*where, *cells))} |")
        faster = sum(round(one.ratio, 2) < 1 for one in mine)
        said = f"zoo is faster in {faster} of {len(mine)} comparisons."
        parts.append(f"## {job}\n\n" + "\n".join(lines) + f"\n\n{said}\n")
    return "\n".join([*parts, END])


def _comparisons(name: str, result: Result) -> Iterator[Comparison]:
    kind = name.partition("-")[0]
    if kind not in ENGINES:
        return
    where = processor(result["environment"]), ENGINES[kind]
    if kind == "quantised":
        for one in result["ratios"]:
            if one["ours"].startswith("zoo") and not one["theirs"].startswith("zoo"):
                engine = "ONNX Runtime" if "onnx" in one["ours"] else "NumPy"
                row = f"{one['what']}, {_without_engine(one['ours'])}"
                yield Comparison(_job(row), (where[0], engine), row, one["theirs"], one["ratio"])
        return
    for row in result["rows"]:
        for peer, found in row.get("ratios", {}).items():
            if not peer.startswith("zoo"):
                yield Comparison(_job(row["row"]), where, row["row"], peer, found["ratio"])


def processor(environment: Mapping[str, Any]) -> str:
    """What decides on speed: the maker, and the widest products that the processor has."""
    cpu = environment["cpu"]
    maker = "AMD" if "AMD" in cpu else "Intel" if "Intel" in cpu else cpu
    features = {"amx": "AMX", "avx512": "AVX-512", "avx2": "AVX2"}
    widest = next((shown for feature, shown in features.items() if feature in cpu), "")
    return ", ".join(filter(None, [maker, widest, "by CPU" if environment.get("clock") == "cpu" else ""]))


def _job(row: str) -> str:
    return next(job for job, pattern in JOBS.items() if re.search(pattern, row))


def _without_engine(ours: str) -> str:
    return re.sub(r"^zoo (onnx )?", "", ours)


def _ratio(value: float) -> str:
    return f"**{value:.2f}**" if round(value, 2) < 1 else f"{value:.2f}"
