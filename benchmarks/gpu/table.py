"""README's table of GPU figures, from the files that the GPU script wrote, with the rows that lose, and that failed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo.errors import InputError

HEAD = ("", "zoo", "best peer", "zoo / peer, time", "share of the card's own")
VERSIONS = ("zoo", "torch", "triton", "transformers")
UNITS = {"tflops": "TFLOP/s", "gb_per_second": "GB/s", "tokens_per_second": "tokens/s", "rows_per_second": "rows/s"}
SHARES = {"copy": "a copy", "bf16_tflops": "a product"}


def table(paths: Sequence[Path]) -> str:
    """Markdown: for each file what was measured with, a table of its comparisons, and what is missing."""
    if not paths:
        raise InputError("no files: expected those that python -m benchmarks.gpu wrote, benchmarks/results/gpu-*.json")
    return "\n\n".join(map(_section, paths))


def _section(path: Path) -> str:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        facts, rows, not_run, stage = (found[name] for name in ("environment", "rows", "not_run", "stage"))
        device = facts["device"]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise InputError(f"{path} is no file that python -m benchmarks.gpu wrote: {type(e).__name__}: {e}") from None
    if device != "gpu":
        raise InputError(f"{path} was written on the {device}, where nothing is timed: expected a file of a GPU")
    versions = ", ".join(f"{name} {facts['versions'][name]}" for name in VERSIONS if name in facts["versions"])
    card = f"{facts['card']} (driver {facts['driver']}), Python {facts['python']}"
    lines = [f"**{stage.capitalize()}**, {facts['date'][:10]} on one {card}, {versions}", ""]
    if any("checkpoints" in row for row in rows):
        return "\n".join([*lines, *_verdicts(rows)])
    compared = [_cells(row) for row in rows if row.get("ratios")]
    cells = [HEAD, ("---", *["---:"] * (len(HEAD) - 1)), *compared] if compared else []
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells]
    failed = {row["row"]: row.get("error") or row.get("wrong") for row in rows if "error" in row or "wrong" in row}
    for row in rows:
        if row["row"] not in failed and not row.get("ratios"):
            figures = [row["summary"]] if "summary" in row else [_figure(row, name) for name in row.get("times", {})]
            lines.append(f"- {row['row']}: {', '.join(figures)}")
    lines += ["", "Failed:", "", *(f"- {name}: {why}" for name, why in failed.items())] if failed else []
    lines += ["", f"Out of time, not run: {', '.join(not_run)}."] if not_run else []
    return "\n".join(lines)


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The number of checkpoints in parity in each element type, and the reasons for the others."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["row"].split()[1].rstrip(","), {}).update(row.get("checkpoints", {}))
    lines, why = [], dict[str, str]()
    for dtype, of in found.items():
        held = [one for one in of.values() if one["holds"]]
        line = f"- {dtype}: {len(held)} of {len(of)} in parity, within {max(one['relative_l2'] for one in held):.1e}"
        theirs = [one["theirs"] for one in held if "theirs" in one]
        lines.append(f"{line}, {max(theirs):.2f} times transformers' own error" if theirs else line)
        why |= {
            name: one.get("error") or f"differs at {one['diverged']}" for name, one in of.items() if not one["holds"]
        }
    return [
        *lines,
        "",
        "Not in parity, or not run:",
        "",
        *(f"- {name}: {' '.join(text.split())[:160]}" for name, text in why.items()),
    ]


def _cells(row: Mapping[str, Any]) -> list[str]:
    """The best peer is the fastest of those that are not ours."""
    peers = [name for name in row["ratios"] if not name.startswith("zoo")]
    best = max(peers, key=lambda name: row["ratios"][name]["ratio"], default=None)
    share = f"{row['share']['zoo']:.0%} of {SHARES[row['share_of']]}" if "share" in row else ""
    if best is None:
        return [row["row"], _figure(row, "zoo"), "none takes these", "", share]
    ratio = f"{row['ratios'][best]['ratio']:.2f}"
    return [row["row"], _figure(row, "zoo"), f"{best}: {_figure(row, best)}", ratio, share]


def _figure(row: Mapping[str, Any], name: str) -> str:
    ms = row["times"][name]["median_ms"]
    time = f"{ms:.3g} ms" if ms >= 1 else f"{1e3 * ms:.3g} µs"
    rates = [(row[unit][name], word) for unit, word in UNITS.items() if unit in row]
    if not rates:
        return time
    rate, word = rates[-1]  # what a user counts, before what a card does
    return f"{time}, {rate:,.0f} {word}" if rate >= 10 else f"{time}, {rate:.3g} {word}"
