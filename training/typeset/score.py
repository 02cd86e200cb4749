"""This script scores models, as zoo runs them, on held-out typeset pages.

`python -m training.typeset.score PAGES [--json FILE]`

Fonts, layouts and seeds of these pages are never shown in training. Every engine's pages count alike.

- detect: recall and precision at an IoU of 0.8, on pages as they are, and on tables that fill their picture; and how
  many of the pages without a table are left without one;
- structure: the right number of rows, of columns, and of both; rows of the header; GriTS-Con with the true words;
- reader: errors a character and lines without an error, and what is told apart badly most often.
"""

import argparse
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

import zoo
from training.detr import iou, middles
from training.text import distance
from training.text import score as text_score
from training.typeset import examples
from training.typeset.cache import Pages, Sheet
from training.typeset.marks import boxes
from zoo.apps.tables import Cell, Table, TableExtractor, Word
from zoo.apps.tables.grits import grits

Scores = dict[str, float]


def colour(image: Any) -> np.ndarray:
    return np.asarray(image.convert("RGB"))


def detect(find: Callable[..., Any], sheets: list[Sheet]) -> Scores:
    """Score a detector; `find` is the task Detect, or anything like it."""
    out: Scores = {}
    for how in ("page", "crop"):
        hit = true = found = empty = clean = 0
        for i, sheet in enumerate(sheets):
            if how == "crop" and not sheet.tables:
                continue
            image, truth = examples.seen(sheet, random.Random(f"score/{how}/{i}"), how)
            boxes = [d.box for d in find(colour(image), threshold=0.5) if d.label == "table"]
            true, found = true + len(truth), found + len(boxes)
            empty, clean = empty + (not len(truth)), clean + (not len(truth) and not boxes)
            pairs = iou(middles(boxes), middles(truth)) >= 0.8
            hit += int(pairs[linear_sum_assignment(-pairs.astype(float))].sum())
        out |= {f"{how}_recall": hit / max(1, true), f"{how}_precision": hit / max(1, found), f"{how}_tables": true}
        if how == "page":
            out |= {"empty_pages_left_alone": clean / max(1, empty), "empty_pages": empty, "pages": len(sheets)}
    return out


def truth_of(table: dict[str, Any]) -> Table:
    """Return a cached table as zoo's, with boxes on the page."""
    X, Y, heads = table["X"], table["Y"], table["heads"]
    cells = []
    for r, last, c, last_c, lines in table["cells"]:
        text = " ".join(line.text for line in lines)
        box = X[c], Y[r], X[last_c + 1], Y[last + 1]
        cells.append(Cell(r, c, last - r + 1, last_c - c + 1, box, text, is_header=r < heads))
    rows = tuple((X[0], a, X[-1], b) for a, b in itertools.pairwise(Y))
    columns = tuple((a, Y[0], b, Y[-1]) for a, b in itertools.pairwise(X))
    return Table(tuple(cells), rows, columns, (X[0], Y[0], X[-1], Y[-1]), header_rows=heads)


def words_of(table: dict[str, Any]) -> list[Word]:
    """Return the words of a table with their boxes."""
    out = []
    for *_, lines in table["cells"]:
        for text, (x0, y0, _, y1), ends in lines:
            starts, begin = [0.0, *ends], 0
            for word in text.split(" "):
                end = begin + len(word)
                if word:
                    out.append(Word(word, (x0 + starts[begin], y0, x0 + starts[end], y1)))
                begin = end + 1
    return out


def structure(folder: str, sheets: list[Sheet], count: int) -> Scores:
    """Score a structure model on tables of up to 25 rows and 12 columns, cut out as zoo cuts them."""
    extract = TableExtractor(folder, None)
    right, similar, seen = np.zeros(4), 0.0, 0
    for i, sheet in enumerate(sheets):
        for table in sheet.tables:
            R, C = len(table["Y"]) - 1, len(table["X"]) - 1
            if R > examples.ROWS or C > examples.COLUMNS or seen >= count:
                continue
            seen += 1
            x0, y0, x1, y1 = boxes(table)[0, 1:].tolist()
            m = 0.025 * max(x1 - x0, y1 - y0) * random.Random(f"score/{i}").uniform(1, 2.2)
            box = tuple(float(round(v)) for v in (x0 - m, y0 - m, x1 + m, y1 + m))
            words = [Word(w.text, _moved(w.box, box)) for w in words_of(table)]
            (found,) = extract(colour(examples.cut(sheet.image, box)), words) or [None]
            if found is None:
                continue
            counts = found.shape[0] == R, found.shape[1] == C
            right += [*counts, all(counts), found.header_rows == table["heads"]]
            similar += grits(truth_of(table), found, "con").f
    names = "rows_exact", "columns_exact", "both_exact", "header_rows_right"
    return {**dict(zip(names, (right / seen).tolist(), strict=True)), "grits_con": similar / seen, "tables": seen}


def _moved(box: tuple[float, ...], by: tuple[float, ...]) -> tuple[float, float, float, float]:
    return box[0] - by[0], box[1] - by[1], box[2] - by[0], box[3] - by[1]


def reader(folder: str, sheets: list[Sheet], count: int) -> dict[str, Any]:
    """Score a reader on `count` lines, a fourth of them small print."""
    read, lines = zoo.load(folder, task="read"), []
    for i in range(count):
        rng = random.Random(f"score/line/{i}")
        while True:
            sheet = rng.choice(sheets)
            of = examples.lines_of(sheet)
            line = examples.reader_line(sheet, rng.choice(of), rng, small=rng.random() < 0.5) if of else None
            if line is not None:
                lines.append(line)
                break
    found: list[str] = []
    for i in range(0, count, 50):
        found += [one.text for one in read([np.repeat(e.pixels[..., None], 3, 2) for e in lines[i : i + 50]])]
    wanted = [e.text for e in lines]
    numbers = [i for i, text in enumerate(wanted) if sum(c.isdigit() for c in text) > len(text) / 2]
    out: dict[str, Any] = dict(text_score(found, wanted))
    errors = sum(distance(found[i], wanted[i]) for i in numbers)
    out["numbers_character_error"] = errors / max(1, sum(len(wanted[i]) for i in numbers))
    pairs = (zip(f, w, strict=True) for f, w in zip(found, wanted, strict=True) if len(f) == len(w))
    confused = Counter(f"{b}>{a}" for pair in pairs for a, b in pair if a != b)
    out["confused"] = dict(confused.most_common(12))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.typeset.score", description=__doc__)
    parser.add_argument("pages", help="the folder that training.typeset.render wrote")
    parser.add_argument("--detect", default="zoo-table-detect", help="a checkpoint's name or folder")
    parser.add_argument("--structure", default="zoo-table-structure")
    parser.add_argument("--reader", default="zoo-read")
    parser.add_argument("--only", choices=("detect", "structure", "reader"), action="append")
    parser.add_argument("--count", type=int, default=240, help="of pages, and of tables; of lines four times as many")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where scores go, beside those that it has")
    args = parser.parse_args()
    sheets = Pages(args.pages, held_out=True).all(args.count)
    results: dict[str, Any] = {}
    if args.json and args.json.exists():
        results = json.loads(args.json.read_text(encoding="utf-8"))
    for what in args.only or ("detect", "structure", "reader"):
        if what == "detect":
            results[what] = detect(zoo.load(args.detect, task="detect"), sheets)
        elif what == "structure":
            results[what] = structure(args.structure, sheets, args.count)
        else:
            results[what] = reader(args.reader, sheets, 4 * args.count)
        results[what] = {k: round(v, 4) if isinstance(v, float) else v for k, v in results[what].items()}
        print(what, json.dumps(results[what], ensure_ascii=False), flush=True)
        if args.json:
            args.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
