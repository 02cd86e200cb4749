"""Put trained models into the package: export to zoo/data, score, write the scores into cards and docs.

`python -m training.ship [reader|structure|detect ...] [--runs DIR] [--scale F] [--beside]`: of all three, or of those
that are named; the others' weights stay as they are. Then whole pages are read with all of them, and README shows what
they make of the page that comes with zoo.
"""

import argparse
import contextlib
import io
import json
import os
from pathlib import Path
from unittest import mock

from training import evaluate
from training.export import SCORES, TITLES, export_run
from zoo.apps.cli import main as zoo
from zoo.apps.documents import EXAMPLE
from zoo.apps.tables import TableExtractor, draw_tables

ROOT = Path(__file__).parent.parent
DATA, DOCS, README = ROOT / "zoo" / "data", ROOT / "docs" / "training.md", ROOT / "README.md"
CELLS = ROOT / "docs" / "page-cells.png"
PAGES = ROOT / "training" / "pages_scores.json"
COUNTS = {"reader": 2000, "structure": 500, "detect": 500, "pages": 200}
# What is counted, how it is said, and what is wanted of it.
MEASURES = {
    "character_error": ("character error", "<= 0.015"),
    "exact_lines": ("lines without an error", ">= 0.90"),
    "rows_exact": ("the right number of rows", ""),
    "columns_exact": ("of columns", ""),
    "both_exact": ("of both", ">= 0.90"),
    "header_rows_right": ("of header rows", ">= 0.95"),
    "grits_con": ("GriTS-Con", ">= 0.95"),
    "recall": ("recall at IoU 0.8", ">= 0.97"),
    "precision": ("precision", ">= 0.97"),
}
BEGIN, END = "<!-- scores: written by training.ship -->", "<!-- end of scores -->"


def folder(what: str) -> Path:
    """The folder of a model in the package."""
    return DATA / TITLES[what]


def table() -> str:
    """The scores of all of them, in Markdown."""
    rows = ["| | held-out fonts and layouts | reached | wanted |", "|---|---|---|---|"]
    named = {**{title: folder(what) / SCORES for what, title in TITLES.items()}, "whole pages": PAGES}
    for title, path in named.items():
        scores = json.loads(path.read_text(encoding="utf-8"))
        (unit,) = {"lines", "tables", "pages"} & set(scores) - ({"tables"} if "pages" in scores else set())
        for name, value in scores.items():
            if name in MEASURES:
                said, wanted = MEASURES[name]
                wanted = ">= 0.90" if path == PAGES and name == "grits_con" else wanted
                rows.append(f"| {title}, {scores[unit]} {unit} | {said} | {value:.4f} | {wanted} |")
    return "\n".join(rows)


def between(text: str, begin: str, end: str, new: str) -> str:
    """A page of docs with other lines between two comments."""
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{new}\n{end}{rest.partition(end)[2]}"


def with_scores(text: str) -> str:
    """A page of docs with the scores as they are now."""
    return between(text, BEGIN, END, table())


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed() -> str:
    """The output of `zoo table` in a terminal, for the page that comes with zoo."""
    out = _Terminal()
    plain = mock.patch.dict(os.environ, {"NO_COLOR": "1", "COLUMNS": "100"})
    with plain, contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
        status = zoo(["table", str(EXAMPLE)])
    return (
        out.getvalue().rstrip("\n") if status == 0 else err.getvalue().replace(str(EXAMPLE), EXAMPLE.name).rstrip("\n")
    )


def with_output(text: str) -> str:
    """README with that."""
    return between(text, "<!-- printed: by training.ship -->", "<!-- end of it -->", f"```\n{printed()}\n```")


def present() -> None:
    """Write scores and output into docs and README."""
    DOCS.write_text(with_scores(DOCS.read_text(encoding="utf-8")), encoding="utf-8")
    README.write_text(with_output(README.read_text(encoding="utf-8")), encoding="utf-8")
    draw_tables(EXAMPLE, TableExtractor()(EXAMPLE)).quantize(32).save(CELLS, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.ship", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="WHAT", help="reader, structure, detect (all three)")
    parser.add_argument("--runs", default="runs", help="the folder with a run's folder for each (runs)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of pictures to score on (1)")
    parser.add_argument("--beside", action="store_true", help="the mean of each run and of what lies in zoo/data")
    parser.add_argument("--score-only", action="store_true", help="the weights are left as they lie in zoo/data")
    args = parser.parse_args()
    if unknown := set(args.what) - set(TITLES):
        parser.error(f"{', '.join(unknown)}: expected {', '.join(TITLES)}")
    counts = {k: max(1, round(n * args.scale)) for k, n in COUNTS.items()}
    for what in args.what or TITLES:
        if not args.score_only:
            export_run(what, Path(args.runs) / what, folder(what), folder(what) if args.beside else None)
        print(what, evaluate.shown(evaluate.score_folder(what, folder(what), counts[what])), flush=True)
    scores = evaluate.whole(*(str(folder(what)) for what in TITLES), count=counts["pages"])
    PAGES.write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
    print("pages", evaluate.shown(scores))
    present()


if __name__ == "__main__":
    main()
