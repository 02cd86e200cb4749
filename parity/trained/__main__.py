"""The suite: `python -m parity.trained MATERIAL` runs every row, and says which cannot be run and what they need."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from zoo.checkpoint.names import EMBEDDED_NAMES
from zoo.errors import NotFoundError, ZooError

from ..cases import Case
from ..reference import require, versions
from ..report import machine
from ..run import run
from .language_models import GEMMA_PARTS, measure_gemma, measure_stories
from .ocr import measure_ocr
from .outcome import Missing, Outcome
from .retrieval import MPNET_PARTS, measure_minilm, measure_mpnet
from .speech import WEIGHTS, measure_whisper


def measure_own(_folder: Path) -> Iterator[Outcome]:
    """The models that come with zoo, by `zoo parity`: stages that hold, results among them, of all."""
    for name in EMBEDDED_NAMES:
        stages = run(Case(name)).stages
        yield Outcome(f"{name}: stages that hold", sum(stage.holds for stage in stages), {"all": len(stages)}, ("all",))


ROWS: dict[str, tuple[str, Callable[[Path], Iterator[Outcome | Missing]]]] = {
    "gemma": ("Gemma 3 270M, GGUF Q4_K_M", measure_gemma),
    "whisper": ("Whisper base", measure_whisper),
    "minilm": ("all-MiniLM-L6-v2", measure_minilm),
    "mpnet": ("all-mpnet-base-v2", measure_mpnet),
    "ocr": ("PP-OCRv6 small", measure_ocr),
    "stories": ("stories260k", measure_stories),
    "own": ("zoo's own", measure_own),
}
PACKAGES = [part.package for part in (*GEMMA_PARTS, *WEIGHTS, *MPNET_PARTS)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the rows -> 0 if every figure is its peer's, 1 if one is not, 2 if a row failed, 3 if one was skipped."""
    options = _parser().parse_args(argv)
    if options.packages:
        print(" ".join(PACKAGES))
        return 0
    require()
    found: list[tuple[str, Outcome]] = []
    skipped, failed = {}, {}
    for row in options.rows or ROWS:
        label, measure = ROWS[row]
        for outcome in _outcomes(measure, options.material):
            if isinstance(outcome, Outcome):
                found.append((label, outcome))
                print(_line(label, outcome), flush=True)
                continue
            part = ": ".join(filter(None, (label, outcome.measure)))
            kind, which = ("skipped", skipped) if isinstance(outcome.error, NotFoundError) else ("failed", failed)
            which[part] = " ".join(str(outcome.error).split())
            print(f"{part}: {kind}, {which[part]}", file=sys.stderr if kind == "failed" else sys.stdout, flush=True)
    if options.json:
        options.json.write_text(json.dumps(_document(found, skipped, failed), indent=1) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(markdown(found, {**skipped, **failed}), encoding="utf-8")
    if failed:
        return 2
    return 1 if not all(outcome.holds for _, outcome in found) else 3 * bool(skipped)


def _outcomes(measure: Callable[[Path], Iterator[Outcome | Missing]], folder: Path) -> Iterator[Outcome | Missing]:
    """What a row yields, and its error, which ends that row alone."""
    try:
        yield from measure(folder)
    except ZooError as e:
        yield Missing("", e)


def markdown(found: Sequence[tuple[str, Outcome]], others: dict[str, str]) -> str:
    """The table of figures, and of the rows that have none."""
    lines = ["| checkpoint | figure | zoo | others, the same weights |", "|---|---|---|---|"]
    for label, outcome in found:
        peers = ", ".join(f"{name} {_number(value)}" for name, value in outcome.peers.items())
        lines.append(f"| {label} | {outcome.measure} | {_number(outcome.zoo)} | {peers} |")
    lines += [f"| {label} | not run: {why} | | |" for label, why in others.items()]
    return "\n".join([*lines, ""])


def _line(label: str, outcome: Outcome) -> str:
    peers = ", ".join(f"{name} {_number(value)}" for name, value in outcome.peers.items())
    return f"{label}: {outcome.measure}: zoo {_number(outcome.zoo)}, {peers}{'' if outcome.holds else '  DIFFERS'}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.5g}"


def _document(found: Sequence[tuple[str, Outcome]], skipped: dict[str, str], failed: dict[str, str]) -> dict[str, Any]:
    rows = [{"checkpoint": label, **outcome._asdict(), "holds": outcome.holds} for label, outcome in found]
    return {"rows": rows, "skipped": skipped, "failed": failed, "versions": versions(), "machine": machine()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m parity.trained", None, "End results of trained weights, beside peers.")
    add = parser.add_argument
    add("material", nargs="?", type=Path, default=Path("."), help="the folder with packages, where files are kept, too")
    add("--rows", nargs="+", choices=ROWS, help="some of the rows")
    add("--packages", action="store_true", help="print the packages that have the weights")
    add("--json", type=Path, metavar="FILE", help="write all figures")
    add("--markdown", type=Path, metavar="FILE", help="write the table")
    return parser


if __name__ == "__main__":
    sys.exit(main())
