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
from .outcome import Outcome
from .retrieval import measure_minilm
from .speech import WEIGHTS, measure_whisper


def measure_own(_folder: Path) -> Iterator[Outcome]:
    """The models that come with zoo, by `zoo parity`: stages that hold, results among them, of all."""
    for name in EMBEDDED_NAMES:
        stages = run(Case(name)).stages
        yield Outcome(f"{name}: stages that hold", sum(stage.holds for stage in stages), {"all": len(stages)}, ("all",))


ROWS: dict[str, tuple[str, Callable[[Path], Iterator[Outcome]]]] = {
    "gemma": ("Gemma 3 270M, GGUF Q4_K_M", measure_gemma),
    "whisper": ("Whisper base", measure_whisper),
    "minilm": ("all-MiniLM-L6-v2", measure_minilm),
    "stories": ("stories260k", measure_stories),
    "own": ("zoo's own", measure_own),
}
PACKAGES = [part.package for part in (*GEMMA_PARTS, *WEIGHTS)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the rows -> 0 if every figure is its peer's, or a row is skipped; 1 if one is not, 2 if a row failed."""
    options = _parser().parse_args(argv)
    if options.packages:
        print(" ".join(PACKAGES))
        return 0
    require()
    found: list[tuple[str, Outcome]] = []
    skipped, failed = {}, {}
    for row in options.rows or ROWS:
        label, measure = ROWS[row]
        try:
            for outcome in measure(options.material):
                found.append((label, outcome))
                print(_line(label, outcome), flush=True)
        except NotFoundError as e:
            skipped[label] = str(e)
            print(f"{label}: skipped, {e}", flush=True)
        except ZooError as e:
            failed[label] = " ".join(str(e).split())
            print(f"{label}: failed, {failed[label]}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(_document(found, skipped, failed), indent=1) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(markdown(found, {**skipped, **failed}), encoding="utf-8")
    return 2 if failed else int(not all(outcome.holds for _, outcome in found))


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
