"""README's table of GPU figures, from the files that the GPU script wrote, with the rows that lose, and that failed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo.errors import InputError

HEAD = ("", "zoo", "best peer", "zoo / peer, time", "share of the card's own")
VERSIONS = ("zoo", "torch", "triton", "transformers")
TABLES = ("models", "kernels")
UNITS = {"tflops": "TFLOP/s", "gb_per_second": "GB/s", "tokens_per_second": "tokens/s", "rows_per_second": "rows/s"}
FIELDS = ("stage", "rows", "not_run")  # of a file, beside its environment


def table(paths: Sequence[Path]) -> str:
    """Markdown: for each card and day what was measured with, a table of each stage, and what is missing."""
    if not paths:
        raise InputError("no files: expected those that python -m benchmarks.gpu wrote, benchmarks/results/gpu-*.json")
    found = [_read(path) for path in paths]
    lines: list[str] = []
    for stage in TABLES:
        for one in (one for one in found if one["stage"] == stage):
            lines += [f"**{stage.capitalize()}**, {_measured_with(one['environment'])}", ""]
            lines += _markdown(HEAD, [_cells(row) for row in one["rows"] if row.get("ratios")])
            lines += ["", *_missing(one), ""]
    for one in (one for one in found if one["stage"] not in TABLES):
        lines += [*_summary(one), *_missing(one), ""]
    return "\n".join(lines).rstrip()


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        device = found["environment"]["device"]
        if lacking := [name for name in FIELDS if name not in found]:
            raise KeyError(lacking[0])
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise InputError(f"{path} is no file that python -m benchmarks.gpu wrote: {type(e).__name__}: {e}") from None
    if device != "gpu":
        raise InputError(f"{path} was written on the {device}, where nothing is timed: expected a file of a GPU")
    return found


def _measured_with(facts: Mapping[str, Any]) -> str:
    """`2026-11-22 on one NVIDIA H100 80GB HBM3 (driver 580.1), Python 3.12.3, zoo 0.1, torch 2.11.0+cu130, ...`"""
    versions = ", ".join(f"{name} {facts['versions'][name]}" for name in VERSIONS if name in facts["versions"])
    return (
        f"{facts['date'][:10]} on one {facts['card']} (driver {facts['driver']}), Python {facts['python']}, {versions}"
    )


def _cells(row: Mapping[str, Any]) -> list[str]:
    """The row's peers are those who are not ours; the best is the fastest."""
    times = {name: ms for name, ms in row["times"].items() if ms}
    peers = [name for name in row["ratios"] if not name.startswith("zoo") and name in times]
    best = max(peers, key=lambda name: row["ratios"][name]["ratio"], default=None)
    share = f"{row['share']['zoo']:.0%} of {SHARES[row['share_of']]}" if "share" in row else ""
    if best is None:
        return [row["row"], _figure(row, "zoo"), "none takes these", "", share]
    ratio = row["ratios"][best]["ratio"]
    return [row["row"], _figure(row, "zoo"), f"{best}: {_figure(row, best)}", f"{ratio:.2f}", share]


SHARES = {"copy": "a copy", "bf16_tflops": "a product"}


def _figure(row: Mapping[str, Any], name: str) -> str:
    ms = row["times"][name]["median_ms"]
    time = f"{ms:.3g} ms" if ms >= 1 else f"{1e3 * ms:.3g} µs"
    unit = next((unit for unit in reversed(UNITS) if unit in row), None)  # what a user counts before what a card does
    if unit is None:
        return time
    rate = row[unit][name]
    return f"{time}, {rate:,.0f} {UNITS[unit]}" if rate >= 10 else f"{time}, {rate:.3g} {UNITS[unit]}"


def _summary(found: Mapping[str, Any]) -> list[str]:
    """What is no comparison, a line for each row."""
    lines = [f"**{found['stage'].capitalize()}**, {_measured_with(found['environment'])}", ""]
    for row in found["rows"]:
        if "error" in row:
            continue
        if "summary" in row:
            lines.append(f"- {row['row']}: {row['summary']}")
        else:
            lines += [f"- {row['row']}: {_figure(row, name)}" for name, ms in row.get("times", {}).items() if ms]
    return [*lines, ""]


def _missing(found: Mapping[str, Any]) -> list[str]:
    failed = [row for row in found["rows"] if "error" in row or "wrong" in row]
    wrong = [f"- {row['row']}: {row.get('error') or row['wrong']}" for row in failed]
    lines = ["Failed:", "", *wrong, ""] if wrong else []
    return [*lines, f"Out of time, not run: {', '.join(found['not_run'])}.", ""] if found["not_run"] else lines


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(head), line(["---", *["---:"] * (len(head) - 1)]), *map(line, rows)]
