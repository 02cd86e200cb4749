"""Results for people and for programs: terminal lines, JSON, Markdown."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import zoo

from .cases import Case, short_name
from .choices import OVERLAP, SAME_BOX, SAME_PIXELS
from .compare import BY_FLOAT64, FEW_CHOICES, Multiple, Stage, Tolerance
from .reference import versions
from .run import Result

COLOURS = {"green": "32", "red": "31", "yellow": "33", "bold": "1", "dim": "2"}
STAGE_HEAD = ("stage", "rel L2", "max abs", "of scale", "1 - cosine", "top-1", "worst in", "note")
LOW_HEAD = ("stage", "rel L2", "reference", "of scale", "1 - cosine", "top-1", "reference", "worst in", "note")
CASE_HEAD = ("checkpoint", "read as", "rel L2", "of scale", "top-1", "verdict")
FILE_HEAD = ("checkpoint", "file", "bytes", "sha256")
MARKUP = re.compile(r"[\\`*_\[\]|~#!$@]")  # GitHub's Markdown
TURNING = re.compile(r"[\u202a-\u202e\u2066-\u2069]")  # turn around the letters that follow


class TerminalReport:
    """Lines for a terminal, coloured only where one is looking."""

    def __init__(self, cases: Sequence[Case]):
        self.stream = sys.stdout
        self.colours = self.stream.isatty() and "NO_COLOR" not in os.environ
        self.widths = (max([len(short_name(case)) for case in cases] + [10]), 37, 8, 8, 6, 0)

    def head(self) -> None:
        self.write(self._row(CASE_HEAD), "bold")

    def case(self, result: Result, detailed: bool) -> None:
        """One line for the case, and one for each stage where they are asked for or do not hold."""
        colour = "green" if result.holds else "yellow" if result.error else "red"
        self.write(self._row(case_cells(result)), colour)
        if result.stages and (detailed or not result.holds):
            head, *cells = _stage_rows(result)
            rows = [(*head[:-1], ""), *cells]
            widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
            for row, stage in zip(rows, (None, *result.stages), strict=True):
                numbers = [c.rjust(w) for c, w in zip(row[1:-2], widths[1:-2], strict=True)]
                line = "  ".join(["   ", row[0].ljust(widths[0]), *numbers, row[-2].ljust(widths[-2]), row[-1]])
                self.write(line.rstrip(), "dim" if stage is None or stage.holds else "red")

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
    """All results, as an object for JSON."""
    own = {"python": platform.python_version(), "zoo": zoo.__version__, "numpy": np.__version__}
    return {
        "command": command,
        "holds": bool(results) and all(result.holds for result in results),
        "versions": {**own, **versions()},
        "machine": machine(),
        "cases": [_case_object(result) for result in results],
    }


def write_json(path: Path, results: Sequence[Result], command: str) -> None:
    path.write_text(json.dumps(_finite(document(results, command)), indent=2, allow_nan=False) + "\n", encoding="utf-8")


def write_markdown(path: Path, results: Sequence[Result], command: str) -> None:
    path.write_text(markdown(document(results, command), results), encoding="utf-8")


def markdown(facts: dict[str, Any], results: Sequence[Result]) -> str:
    """A page for a CI summary: the table of cases, the stages of those that diverge, and how to reproduce it."""
    lines = [f"## Parity with transformers: {verdict(results)}", "", *_table(CASE_HEAD, map(case_cells, results))]
    for result in results:
        if result.stages and (not result.holds or len(results) == 1):
            lines += ["", f"### {escape(short_name(result.case))}: {escape(verdict_of(result))}", ""]
            head, *rows = _stage_rows(result)
            lines += _table(head, rows)
    lines += ["", "<details><summary>Files, versions, machine</summary>", ""]
    lines += [*_table(FILE_HEAD, [row for result in results for row in _file_rows(result)]), ""]
    lines += [f"- {name} {escape(value)}" for name, value in facts["versions"].items() if value]
    lines += [f"- {name}: {escape(str(value))}" for name, value in facts["machine"].items()]
    lines += [f"- {escape(rule)}" for rule in rules_of(results)]
    return "\n".join([*lines, "", _code(facts["command"]), "", "</details>", ""])


def rules_of(results: Sequence[Result]) -> list[str]:
    """The limits of each rule that was applied."""
    rules = dict.fromkeys((r.dtype, r.tolerance) for r in results if r.tolerance)
    return [_in_low(dtype, rule) if isinstance(rule, Multiple) else _in_full(dtype, rule) for dtype, rule in rules]


def _in_full(dtype: str, rule: Tolerance) -> str:
    return (
        f"In {dtype} a model holds if every stage does: the difference between zoo and transformers may be at most "
        f"{_power(rule.relative_l2)} of the stage’s own size (relative L2, of root mean squares), and nowhere more "
        f"than {_power(rule.max_abs)} of it. A stage beyond that is held against transformers in float64: zoo’s error "
        f"may be at most {BY_FLOAT64.times:g} times that of transformers in {dtype}, and {BY_FLOAT64.largest:g} times "
        "for a single value. Token ids, prepared pixels, written texts and labels of objects must be "
        f"the same; so must {100 * SAME_PIXELS:g} % of a segmentation’s pixels, and boxes to {_power(SAME_BOX)} of "
        "the image."
    )


def _in_low(dtype: str, rule: Multiple) -> str:
    return (
        f"In {dtype} no two programs agree to the last bit, so both are compared with transformers in float32: a model "
        f"holds if at every stage zoo’s error is at most {rule.times:g} times the error that transformers itself makes "
        f"in {dtype} (which counts as {_power(rule.least)} where it is less). Choices, such as the largest logit or a "
        f"pixel’s label, may differ from float32’s {rule.times:g} times as often as transformers’ own, and "
        f"{100 * rule.spare:g} % of all besides; of the rows that are written token after token, {rule.times:g} times "
        f"as many and {100 * rule.spare_texts:g} % of all besides, since after one other token all that follows is "
        f"another text. These shares are rounded up to whole ones, of {FEW_CHOICES.start} to "
        f"{FEW_CHOICES.stop - 1} choices to two. An object is the same with the same label and a box "
        f"that shares more than {100 * OVERLAP:g} % of what both cover. Token ids and prepared pixels must be the same."
    )


def _power(value: float) -> str:
    return format_small(value).replace(".0e", "e").replace("-", "\N{NON-BREAKING HYPHEN}")


def _file_rows(result: Result) -> list[tuple[str, str, str, str]]:
    """A row for each weight file, and the fingerprint of all files of the checkpoint, which `zoo lock` writes too."""
    name = short_name(result.case)
    rows = [(name, file.name, f"{file.size:,}", file.sha256) for file in result.files]
    demanded = f", as demanded by {result.lock_file}" if result.lock_file else ""
    return rows + [(name, f"(fingerprint of all files{demanded})", "", result.lock or "")] * bool(result.lock)


def escape(text: str) -> str:
    """The text on one line, as Markdown that shows it and nothing else."""
    plain = html.escape(TURNING.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split())), quote=False)
    return MARKUP.sub(lambda found: "\\" + found[0], plain)


def _code(text: str) -> str:
    """The text on one line, as a code span of Markdown: between more backticks than are in it."""
    line = TURNING.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))
    fence = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    space = " " * ("`" in line)
    return f"{fence}{space}{line}{space}{fence}"


def machine() -> dict[str, Any]:
    """The processor, how many cores this process may use, the system, NumPy's BLAS, and the GPU if there is one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts: dict[str, Any] = {"processor": _processor(), "cores": cores, "system": platform.platform()}
    numpy: Any = np.show_config(mode="dicts")
    blas = numpy.get("Build Dependencies", {}).get("blas", {})
    facts["blas"] = f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    torch: Any = sys.modules.get("torch")  # which nothing is known of that has not been used
    if torch is not None and torch.cuda.is_available():
        facts["gpu"] = torch.cuda.get_device_name()
    return facts


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def verdict_of(result: Result) -> str:
    if result.error:
        return f"not run: {result.error}"
    return "holds" if result.holds else f"DIVERGES at {result.first_divergence}"


class Worst(NamedTuple):
    """The worst figures over all stages of a case that have some: NaN, or None for top1, where none has."""

    relative_l2: float
    of_scale: float
    top1: float | None


def worst_figures(result: Result) -> Worst:
    numeric = [stage for stage in result.stages if stage.scale == stage.scale]
    relative = max((s.relative_l2 for s in numeric if s.relative_l2 == s.relative_l2), default=math.nan)
    largest = max((of_scale(s) for s in numeric), default=math.nan)
    return Worst(relative, largest, min((s.top1 for s in numeric if s.top1 is not None), default=None))


def case_cells(result: Result) -> tuple[str, ...]:
    name, cls, figures = short_name(result.case), result.architecture, worst_figures(result)
    of = format_small(figures.of_scale)
    return name, cls, format_small(figures.relative_l2), of, share(figures.top1), verdict_of(result)


def _stage_rows(result: Result) -> list[tuple[str, ...]]:
    """The head of a table of stages, and a row for each; in low precision the reference's own figures beside zoo's."""
    low = isinstance(result.tolerance, Multiple)
    return [LOW_HEAD if low else STAGE_HEAD, *(_stage_cells(stage, low) for stage in result.stages)]


def _stage_cells(stage: Stage, low: bool) -> tuple[str, ...]:
    note = "; ".join(filter(None, ["" if stage.holds else "<- does not hold", stage.note]))
    return stage.name, *figures(stage, low, format_small), stage.batch, note


def figures(stage: Stage, low: bool, text: Callable[[float], str]) -> tuple[str, ...]:
    """The columns of figures; in low precision with the reference's own."""
    second = stage.reference_error if low else stage.max_abs
    numbers = stage.relative_l2, math.nan if second is None else second, of_scale(stage), max(1 - stage.cosine, 0.0)
    return (*map(text, numbers), share(stage.top1), *[share(stage.reference_top1)] * low)


def of_scale(stage: Stage) -> float:
    return stage.max_abs / stage.scale if stage.scale else stage.max_abs


def format_small(value: float) -> str:
    return "" if value != value else f"{value:.1e}"


def share(value: float | None) -> str:
    if value is None:
        return ""
    return "100 %" if value == 1 else f"{min(100 * value, 99.9):.1f} %"


def _case_object(result: Result) -> dict[str, Any]:
    plain = dataclasses.asdict(dataclasses.replace(result, exhibits=()))
    del plain["exhibits"]  # which are for people
    case = plain.pop("case")
    plain["files"] = [file._asdict() for file in result.files]
    plain["tolerance"] = result.tolerance._asdict() if result.tolerance else None
    return {
        "name": case["name"],
        "size": case["size"],
        "holds": result.holds,
        "diverged": result.first_divergence,
        **plain,
    }


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
        return "| " + " | ".join(map(escape, cells)) + " |"

    return [line(head), line(["---"] * len(head)), *map(line, rows)]
