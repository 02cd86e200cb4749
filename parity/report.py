"""Results for people and for programs: terminal lines, JSON, Markdown."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import zoo

from .cases import Case, short_name
from .compare import Stage
from .reference import versions
from .run import Result

COLOURS = {"green": "32", "red": "31", "yellow": "33", "bold": "1", "dim": "2"}
STAGE_HEAD = ("stage", "rel L2", "max abs", "of scale", "1 - cosine", "top-1", "worst in", "")
CASE_HEAD = ("checkpoint", "read as", "rel L2", "of scale", "top-1", "verdict")


class Terminal:
    """Lines for a terminal, coloured only where one is looking."""

    def __init__(self, cases: Sequence[Case], stream: Any = None):
        self.stream = sys.stdout if stream is None else stream
        self.colours = self.stream.isatty() and "NO_COLOR" not in os.environ
        self.widths = (max([len(short_name(case)) for case in cases] + [10]), 37, 8, 8, 6, 0)

    def head(self) -> None:
        self.write(self._row(CASE_HEAD), "bold")

    def case(self, result: Result, detailed: bool) -> None:
        """One line for the case, and one for each stage where they are asked for or do not hold."""
        colour = "green" if result.holds else "yellow" if result.error else "red"
        self.write(self._row(_case_cells(result)), colour)
        if result.stages and (detailed or not result.holds):
            rows = [STAGE_HEAD, *(_stage_cells(stage) for stage in result.stages)]
            widths = [max(len(row[i]) for row in rows) for i in range(len(STAGE_HEAD))]
            for row, stage in zip(rows, (None, *result.stages), strict=True):
                cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:6], widths[1:6], strict=True))]
                line = "  ".join(["   ", *cells, row[6].ljust(widths[6]), row[7]]).rstrip()
                self.write(line, "dim" if stage is None or stage.holds else "red")

    def summary(self, results: Sequence[Result]) -> None:
        self.write(verdict(results), "green" if all(r.holds for r in results) else "red")

    def write(self, line: str, colour: str) -> None:
        print(f"\x1b[{COLOURS[colour]}m{line}\x1b[0m" if self.colours else line, file=self.stream, flush=True)

    def _row(self, cells: Sequence[str]) -> str:
        left = [cell.ljust(width) for cell, width in zip(cells[:2], self.widths, strict=False)]
        right = [cell.rjust(width) for cell, width in zip(cells[2:5], self.widths[2:], strict=False)]
        return "  ".join([*left, *right, cells[5]]).rstrip()


def verdict(results: Sequence[Result]) -> str:
    """The last line: how many of the cases hold."""
    held = sum(result.holds for result in results)
    failed = sum(result.error is not None for result in results)
    diverged = len(results) - held - failed
    parts = [f"{held} of {len(results)} hold"]
    parts += [f"{diverged} diverge{'s' * (diverged == 1)}"] * bool(diverged)
    parts += [f"{failed} could not be run"] * bool(failed)
    return ", ".join(parts)


def document(results: Sequence[Result], command: str) -> dict[str, Any]:
    """Everything that is known, as an object for JSON."""
    return {
        "command": command,
        "holds": bool(results) and all(result.holds for result in results),
        "versions": {
            "python": platform.python_version(),
            "zoo": zoo.__version__,
            "numpy": np.__version__,
            **versions(),
        },
        "machine": machine(),
        "cases": [_case_object(result) for result in results],
    }


def write_json(path: Path, results: Sequence[Result], command: str) -> None:
    path.write_text(json.dumps(_finite(document(results, command)), indent=2, allow_nan=False) + "\n", encoding="utf-8")


def write_markdown(path: Path, results: Sequence[Result], command: str) -> None:
    path.write_text(markdown(document(results, command), results), encoding="utf-8")


def markdown(facts: dict[str, Any], results: Sequence[Result]) -> str:
    """A page for a CI summary: the table of cases, the stages of those that diverge, and how to reproduce it."""
    lines = [f"## Parity with transformers: {verdict(results)}", "", *_table(CASE_HEAD, map(_case_cells, results))]
    for result in results:
        if result.stages and (not result.holds or len(results) == 1):
            lines += ["", f"### {short_name(result.case)}: {_verdict_of(result)}", ""]
            lines += _table((*STAGE_HEAD[:-1], "note"), map(_stage_cells, result.stages))
    lines += ["", "<details><summary>Files, versions, machine</summary>", ""]
    rows = [(short_name(r.case), f.name, f"{f.size:,}", f"`{f.sha256}`") for r in results for f in r.files]
    lines += [*_table(("checkpoint", "file", "bytes", "sha256"), rows), ""]
    lines += [f"- {name} {value}" for name, value in facts["versions"].items() if value]
    lines += [f"- {name}: {value}" for name, value in facts["machine"].items()]
    tolerances = dict.fromkeys((r.backend, r.dtype, r.tolerance) for r in results if r.tolerance)
    for backend, dtype, tolerance in tolerances:
        lines.append(
            f"- {dtype} on {backend} holds with relative L2 <= {tolerance.relative_l2:g} and max abs <= "
            f"{tolerance.max_abs:g} of the stage's scale (root mean square), at every stage"
        )
    return "\n".join([*lines, "", f"`{facts['command']}`", "", "</details>", ""])


def machine() -> dict[str, Any]:
    """The processor, how many cores this process may use, the system, and NumPy's BLAS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts = {"processor": _processor(), "cores": cores, "system": platform.platform()}
    numpy: Any = np.show_config(mode="dicts")
    blas = numpy.get("Build Dependencies", {}).get("blas", {})
    return {**facts, "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()}


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _verdict_of(result: Result) -> str:
    if result.error:
        return f"not run: {result.error}"
    return "holds" if result.holds else f"DIVERGES at {result.diverged}"


def _case_cells(result: Result) -> tuple[str, ...]:
    numeric = [stage for stage in result.stages if stage.scale == stage.scale]
    relative = max((s.relative_l2 for s in numeric), default=math.nan)
    of_scale = max((_of_scale(s) for s in numeric), default=math.nan)
    tops = [s.top1 for s in numeric if s.top1 is not None]
    name, cls = short_name(result.case), result.architecture
    return name, cls, _small(relative), _small(of_scale), _share(min(tops, default=None)), _verdict_of(result)


def _stage_cells(stage: Stage) -> tuple[str, ...]:
    figures = (stage.relative_l2, stage.max_abs, _of_scale(stage), max(0.0, 1 - stage.cosine))
    note = "; ".join(filter(None, ["" if stage.holds else "<- does not hold", stage.note]))
    return stage.name, *map(_small, figures), _share(stage.top1), stage.batch, note


def _of_scale(stage: Stage) -> float:
    return stage.max_abs / stage.scale if stage.scale else stage.max_abs


def _small(value: float) -> str:
    return "" if value != value else f"{value:.1e}"


def _share(value: float | None) -> str:
    if value is None:
        return ""
    return "100 %" if value == 1 else f"{min(100 * value, 99.9):.1f} %"


def _case_object(result: Result) -> dict[str, Any]:
    plain = dataclasses.asdict(result)
    case = plain.pop("case")
    plain["files"] = [file._asdict() for file in result.files]
    plain["tolerance"] = result.tolerance._asdict() if result.tolerance else None
    return {"name": case["name"], "size": case["size"], "holds": result.holds, "diverged": result.diverged, **plain}


def _finite(value: Any) -> Any:
    """The same with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _finite(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(child) for child in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(head: Sequence[str], rows: Any) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(head), line(["---"] * len(head)), *map(line, rows)]
