"""Tables of real pages with their objects and words handed over: the answer, for tests of what is made of it.

Boxes are (x0, y0, x1, y1) in pixels of the sample's picture, y downwards.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zoo.apps.tables import Cell, Table, Word
from zoo.apps.tables.boxes import bounding_box
from zoo.images.boxes import Box, Detection

DATA = Path(__file__).parent.parent / "tests" / "data" / "tables"
JITTER = 1.2  # pixels by which objects that are made of the truth are off


@dataclass(frozen=True, eq=False)
class Sample:
    """A table, what was detected in it, and what it is."""

    name: str
    size: tuple[float, float]  # (width, height) of the picture
    place: Box  # what a detector of tables says
    objects: Sequence[Detection]
    words: Sequence[Word]
    true: Table  # boxes meet in the middle of the gaps between texts
    picture: Path | None
    detected: bool  # by Table Transformer; else made of the truth


def samples(pictures: Path | None = None) -> Iterator[Sample]:
    """The samples of tests/data/tables.  pictures: a folder with PubTabNet's pictures, which are not with zoo."""
    seen = json.loads((DATA / "seen.json").read_text(encoding="utf-8"))
    for name, truth in seen.items():
        yield _detected(name, truth)
    for line in (DATA / "pubtabnet.jsonl").read_text(encoding="utf-8").splitlines():
        yield annotated(json.loads(line), pictures)


def _detected(name: str, truth: Mapping[str, Any]) -> Sample:
    """A table whose objects Table Transformer detected, and whose text a person transcribed."""
    data = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    width, height = data.get("crop_size") or data["image_size"]
    left, top = data.get("padding", (0, 0))[:2]

    def moved(box: Sequence[float]) -> Box:
        return box[0] - left, box[1] - top, box[2] - left, box[3] - top

    rows = truth["rows"]
    spans = {(r, c): (rs, cs) for r, c, rs, cs in truth["spans"]}
    texts = {(r, c): moved(box) for r, c, *box in truth["boxes"]}
    cells = []
    under = {
        (r + i, c + j) for (r, c), (rs, cs) in spans.items() for i in range(rs) for j in range(cs) if (i, j) != (0, 0)
    }
    for r, row in enumerate(rows):
        for c, text in enumerate(row):
            if (r, c) not in under:
                cells.append((r, c, *spans.get((r, c), (1, 1)), text, texts.get((r, c))))
    size = float(width - 2 * left), float(height - 2 * top)
    return Sample(
        name,
        size,
        (0.0, 0.0, *size),
        [Detection(label, score, moved(box)) for label, score, box in data["objects"]],
        [Word(word["text"].replace("\ufffe", "-"), moved(word["box"])) for word in data["words"]],
        _table(cells, truth["header_rows"]),
        DATA / f"{name}.png",
        True,
    )


def annotated(data: Mapping[str, Any], pictures: Path | None = None) -> Sample:
    """A table of PubTabNet, with objects made of its annotations, each off by up to JITTER."""
    bare = Table.from_html(f"<table>{data['structure']}</table>")
    cells = [
        (cell.row, cell.column, cell.row_span, cell.column_span, " ".join(text.split()), box and tuple(box))
        for cell, (text, box) in zip(bare.cells, data["cells"], strict=True)
    ]
    true = _table(cells, bare.header_rows)
    rng = random.Random(data["filename"])

    def moved(label: str, box: Box) -> Detection:
        x0, y0, x1, y1 = (v + rng.uniform(-JITTER, JITTER) for v in box)
        return Detection(label, rng.uniform(0.9, 1), (x0, y0, x1, y1))

    objects = [moved("table", true.box), *(moved("table row", box) for box in true.row_boxes)]
    objects += [moved("table column", box) for box in true.column_boxes]
    if true.header_rows:
        objects.append(moved("table column header", bounding_box(true.row_boxes[: true.header_rows])))
    for cell in true.cells:
        if cell.row_span * cell.column_span > 1:
            across = cell.column_span == true.shape[1]
            objects.append(moved("table projected row header" if across else "table spanning cell", cell.box))
    picture = None if pictures is None else pictures / data["filename"]
    edges = bounding_box([true.box, *(box for *_, box in cells if box)])
    size = edges[2] + 4, edges[3] + 4
    if picture is not None:
        from PIL import Image

        with Image.open(picture) as image:
            size = float(image.width), float(image.height)
    words = [word for *_, text, box in cells if box for word in _spread(text, box)]
    return Sample(data["filename"].removesuffix(".png"), size, true.box, objects, words, true, picture, False)


def _spread(text: str, box: Box) -> Iterator[Word]:
    """The words of a cell over the box of its text: as many lines as are 10 pixels high."""
    texts, (x0, y0, x1, y1) = text.split(), box
    if not texts:
        return
    lines = min(len(texts), max(1, round((y1 - y0) / 10)))
    of_line = -(-len(texts) // lines)
    height = (y1 - y0) / lines
    for i in range(0, len(texts), of_line):
        row = texts[i : i + of_line]
        letter = (x1 - x0) / max(len(" ".join(texts[j : j + of_line])) for j in range(0, len(texts), of_line))
        x, y = x0, y0 + i // of_line * height
        for one in row:
            yield Word(one, (x, y, x + letter * len(one), y + 0.9 * height))
            x += letter * (len(one) + 1)


def _table(cells: Sequence[tuple[Any, ...]], header_rows: int) -> Table:
    """A Table of cells (row, column, row span, column span, text, box of the text or None)."""
    rows, columns = _lanes(cells, 1), _lanes(cells, 0)
    x0, x1, y0, y1 = columns[0][0], columns[-1][1], rows[0][0], rows[-1][1]

    def place(r: int, c: int, rs: int, cs: int) -> Box:
        return columns[c][0], rows[r][0], columns[c + cs - 1][1], rows[r + rs - 1][1]

    return Table(
        tuple(
            Cell(r, c, rs, cs, place(r, c, rs, cs), text, is_header=r < header_rows) for r, c, rs, cs, text, _ in cells
        ),
        tuple((x0, a, x1, b) for a, b in rows),
        tuple((a, y0, b, y1) for a, b in columns),
        (x0, y0, x1, y1),
        header_rows=header_rows,
    )


def _lanes(cells: Sequence[tuple[Any, ...]], axis: int) -> list[tuple[float, float]]:
    """Rows (1) or columns (0) around the texts of cells that span none, meeting in the middle of each gap."""
    ends: dict[int, list[float]] = {}
    for row, column, row_span, column_span, _, box in cells:
        at, span = (row, row_span) if axis else (column, column_span)
        if box and span == 1:
            one = ends.setdefault(at, [box[axis], box[axis + 2]])
            one[:] = min(one[0], box[axis]), max(one[1], box[axis + 2])
    in_order = [ends[i] for i in range(len(ends))]
    lines = [in_order[0][0], *((a[1] + b[0]) / 2 for a, b in itertools.pairwise(in_order)), in_order[-1][1]]
    return list(itertools.pairwise(lines))
