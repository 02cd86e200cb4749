"""Scores of an exported checkpoint, as zoo runs it on NumPy, on fonts and layouts that training never showed.

`python -m training.evaluate reader|structure|detect FOLDER [--count N]`, and for all three together
`python -m training.evaluate pages READER STRUCTURE DETECT [--count N]`.
"""

import argparse
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

import zoo
from training import lines, pages, tables
from training.detr import iou, middles
from training.export import SCORES, card
from training.text import score
from zoo.apps.tables import Cell, Table, TableExtractor, Word
from zoo.apps.tables.grits import grits
from zoo.images.boxes import Box

Scores = dict[str, float]


def rng_of(i: int) -> random.Random:
    """Other pictures than those that are looked at while training."""
    return random.Random(f"evaluation/{i}")


def reader(folder: str, count: int) -> Scores:
    read, found, wanted = zoo.load(folder, task="read"), [], []
    for i in range(0, count, 50):
        part = [lines.line(rng_of(j), held_out=True) for j in range(i, min(count, i + 50))]
        pictures = [np.repeat(e.pixels[..., None], 3, 2) for e in part]
        found += [one.text for one in read(pictures)]
        wanted += [e.text for e in part]
    return score(found, wanted)


def truth(table: tables.Table) -> Table:
    """As zoo's: boxes of the table's own picture."""
    boxes = {k: table.boxes[table.boxes[:, 0] == k, 1:] for k in (tables.TABLE, tables.ROW, tables.COLUMN)}
    rows, columns = boxes[tables.ROW], boxes[tables.COLUMN]
    cells = []
    for cell in table.cells:
        p = cell.place
        box = columns[p.column, 0], rows[p.row, 1], columns[p.last_column, 2], rows[p.last_row, 3]
        cells.append(
            Cell(
                *(p.row, p.column, p.last_row - p.row + 1, p.last_column - p.column + 1),
                tuple(float(v) for v in box),  # type: ignore[arg-type]
                " ".join(cell.lines),
                is_header=p.row < table.heads,
            )
        )
    as_boxes = [tuple(tuple(float(v) for v in box) for box in b) for b in (rows, columns)]
    return Table(tuple(cells), *as_boxes, tuple(map(float, boxes[tables.TABLE][0])), header_rows=table.heads)  # type: ignore[arg-type]


def structure(folder: str, count: int) -> Scores:
    extract = TableExtractor(folder, None)
    right = np.zeros(4)
    similar = 0.0
    for i in range(count):
        rng = rng_of(i)
        table = tables.table(rng, held_out=True)
        words = [Word(word, box) for cell in table.cells for word, box in table.words(cell)]
        picture = np.asarray(lines.degrade(table.image, rng))
        (found,) = extract(picture, words) or [None]
        if found is None:
            continue
        counts = found.shape[0] == table.rows, found.shape[1] == table.columns
        right += [*counts, all(counts), found.header_rows == table.heads]
        similar += grits(truth(table), found, "con").f
    names = "rows_exact", "columns_exact", "both_exact", "header_rows_right"
    return {**dict(zip(names, right / count, strict=True)), "grits_con": similar / count, "tables": count}


def found_on_pages(find: Callable[[np.ndarray], Sequence[Box]], count: int) -> Scores:
    """Recall and precision at an IoU of 0.8 of what is found, over the tables of all pages."""
    hit = true = guessed = 0
    for i in range(count):
        rng = rng_of(i)
        page = pages.page(rng, held_out=True)
        found = find(np.asarray(lines.degrade(page.image, rng)))
        pairs = iou(middles(found), middles([p.box for p in page.placed])) >= 0.8
        hit += int(pairs[linear_sum_assignment(-pairs.astype(float))].sum())
        true, guessed = true + len(page.placed), guessed + len(found)
    return {"recall": hit / max(1, true), "precision": hit / max(1, guessed), "pages": count}


def detect(folder: str, count: int) -> Scores:
    find = zoo.load(folder, task="detect")
    return found_on_pages(lambda page: [d.box for d in find(page, threshold=0.5)], count)


def whole(reader: str, structure: str, detect: str, count: int) -> Scores:
    """From pages to tables: the GriTS-Con of each true table with the one found there, 0 where none is.

    recall, precision: of the boxes of tables, as rows and columns reach, on the pages that `detect` is scored on.
    """
    extract = TableExtractor(structure, detect, reader=zoo.load(reader, task="read"))
    similar, tables_seen = 0.0, 0
    for i in range(count):
        page = pages.page(rng_of(i), held_out=True, columns=8, rows=15, least=1)
        found = extract(np.asarray(page.image))
        pairs = iou(middles([t.box for t in found]), middles([p.box for p in page.placed]))
        for a, b in zip(*linear_sum_assignment(-pairs), strict=True):
            if pairs[a, b] > 0.5:
                similar += grits(truth(page.placed[b].table), found[a], "con").f
        tables_seen += len(page.placed)
    extract.reader = None
    boxes = found_on_pages(lambda page: [t.box for t in extract(page)], count)
    return {"grits_con": similar / tables_seen, **boxes, "tables": tables_seen}


def score_folder(what: str, folder: Path, count: int) -> Scores:
    """The scores of reader, structure or detect, written into its folder and its card."""
    scores = {"reader": reader, "structure": structure, "detect": detect}[what](str(folder), count)
    (folder / SCORES).write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
    card(folder)
    return scores


def shown(scores: Scores) -> str:
    return json.dumps({k: round(float(v), 4) for k, v in scores.items()})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.evaluate", description=__doc__)
    parser.add_argument("what", choices=("reader", "structure", "detect", "pages"))
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--count", type=int, default=500)
    args = parser.parse_args()
    if args.what == "pages":
        print(shown(whole(*args.folders, count=args.count)))
    else:
        print(shown(score_folder(args.what, Path(args.folders[0]), args.count)))


if __name__ == "__main__":
    main()
