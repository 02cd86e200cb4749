"""Words of a table that run upwards or downwards, while its others run to the right: headings of narrow columns, and
names beside several rows.

Rows and columns are found without them, since a word on its side is as high as several lines.  Boxes are
(x0, y0, x1, y1) in pixels of the upright table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...images.boxes import Box
from ..documents import Word
from .boxes import HALF_SHARE, bounding_box, share
from .direction import quarters
from .grid import Cell
from .table import Table
from .text_lines import WORD_GAP
from .words import join

MAX_FAR = 1.5  # widths: a line farther above the first row, or beside the outer columns, is none of theirs
MIN_INSIDE = 0.9  # share of a line beside rows: what is longer stands in the page's margin


def split_directions(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """The words that run to the right, or may do so, and the lines of those that run upwards or downwards."""
    upright, lines = [], []
    for word in words:
        way = quarters(word.angle or 0.0)
        if way % 2 == 0:
            upright.append(word)
        elif lines and quarters(lines[-1][-1].angle or 0.0) == way and _go_on(lines[-1][-1].box, word.box):
            lines[-1].append(word)
        else:
            lines.append([word])
    return upright, [_line(of) for of in lines]


def _line(words: Sequence[Word]) -> Word:
    """One word of several."""
    if len(words) == 1:
        return words[0]
    doubt = next((word.doubt for word in words if word.doubt), None)
    confidence = min(word.confidence for word in words)
    return Word(join(words), bounding_box([word.box for word in words]), confidence, words[0].angle, doubt)


def _go_on(a: Box, b: Box) -> bool:
    """True if one word on its side follows another in their line."""
    gap = max(a[1], b[1]) - min(a[3], b[3])
    return (
        gap <= WORD_GAP * (a[2] - a[0])  # the height of a line is here its width
        and min(share(a[0], a[2], b[0], b[2]), share(b[0], b[2], a[0], a[2])) >= HALF_SHARE
    )


def with_turned_lines(table: Table, lines: Sequence[Word], words: Sequence[Word]) -> Table:
    """The table with `lines` from `split_directions`; words: those in its cells.

    Lines that end above the body are headings of the column that they stand over.  One beside a single row is in it.
    One beside several is a cell over all of them, in a column of its own if no word is above or below it; else it is
    in no cell.
    """
    if not table.cells or not lines:
        return table
    headings, beside = [], []
    for line in lines:
        (headings if _is_heading(table, line) else beside).append(line)
    table = _with_headings(table, headings)
    for line in sorted(beside, key=lambda one: one.box[1]):
        table = _with_line_beside(table, line, words)
    return table


def _rows_beside(table: Table, box: Box) -> list[int]:
    """The rows that a box is beside, by half of their height or of its own."""
    return [
        r
        for r, row in enumerate(table.row_boxes)
        if max(share(row[1], row[3], box[1], box[3]), share(box[1], box[3], row[1], row[3])) >= HALF_SHARE
    ]


def _is_heading(table: Table, line: Word) -> bool:
    """True for a line over a column whose end is above the first row of the body, and near the rows above that."""
    head = table.header_rows
    begin = table.row_boxes[head][1] if head < table.shape[0] else table.row_boxes[-1][3]
    x0, y0, x1, y1 = line.box
    within = share(x0, x1, table.box[0], table.box[2]) >= HALF_SHARE
    return (
        within
        and (y0 + y1) / 2 < begin
        and y1 - begin < HALF_SHARE * (x1 - x0)
        and table.box[1] - y1 < MAX_FAR * (x1 - x0)
    )


def _column_of(table: Table, box: Box) -> int:
    """The column that shares most of a box's width, or is nearest to it."""
    shared = [min(c[2], box[2]) - max(c[0], box[0]) for c in table.column_boxes]
    return int(np.argmax(shared))


def _with_headings(table: Table, lines: Sequence[Word]) -> Table:
    """The lines in the last row of the header, which becomes as high as they are; in a new one if there is none."""
    if not lines:
        return table
    top = min(line.box[1] for line in lines)
    if not table.header_rows:
        table = _with_row_above(table, top)
    row = table.header_rows - 1
    of_column: dict[int, list[Word]] = {}
    for line in lines:
        of_column.setdefault(_column_of(table, line.box), []).append(line)
    cells = [one for cell in table.cells for one in _split(cell, table, row)]
    for column, own in of_column.items():
        i = next(i for i, cell in enumerate(cells) if _covers(cell, row, column))
        cells[i] = _with_text(cells[i], own)
    if top >= table.box[1]:
        return replace(table, cells=tuple(cells))

    def raise_box(box: Box) -> Box:
        return box[0], min(box[1], top), box[2], box[3]

    return replace(
        table,
        cells=tuple(replace(cell, box=raise_box(cell.box)) if cell.row == 0 else cell for cell in cells),
        row_boxes=(raise_box(table.row_boxes[0]), *table.row_boxes[1:]),
        column_boxes=tuple(map(raise_box, table.column_boxes)),
        box=raise_box(table.box),
    )


def _split(cell: Cell, table: Table, row: int) -> list[Cell]:
    """An empty cell of a row that spans columns as one for each of them."""
    if cell.text or cell.column_span == 1 or not cell.row <= row < cell.row + cell.row_span:
        return [cell]
    columns = range(cell.column, cell.column + cell.column_span)
    x = [(table.column_boxes[c][0], table.column_boxes[c][2]) for c in columns]
    boxes = [(max(a, cell.box[0]), cell.box[1], min(b, cell.box[2]), cell.box[3]) for a, b in x]
    return [replace(cell, column=c, column_span=1, box=box) for c, box in zip(columns, boxes, strict=True)]


def _with_row_above(table: Table, top: float) -> Table:
    """The table with an empty header row above it."""
    x0, y0, x1, _ = table.box
    top = min(top, y0)
    new = [Cell(0, c, 1, 1, (box[0], top, box[2], y0), "", is_header=True) for c, box in enumerate(table.column_boxes)]
    return replace(
        table,
        cells=(*new, *(replace(cell, row=cell.row + 1) for cell in table.cells)),
        row_boxes=((x0, top, x1, y0), *table.row_boxes),
        header_rows=1,
    )


def _with_line_beside(table: Table, line: Word, words: Sequence[Word]) -> Table:
    """The table with a line on its side beside some of its rows."""
    x0, y0, x1, y1 = line.box
    far = max(table.box[0] - x1, x0 - table.box[2]) > MAX_FAR * (x1 - x0)
    rows = _rows_beside(table, line.box)
    if (
        far
        or share(y0, y1, table.box[1], table.box[3]) < MIN_INSIDE
        or not rows
        or rows[0] < table.header_rows <= rows[-1]
    ):
        return table
    column = _column_of(table, line.box)
    if len(own := _cells_at(table, rows, column)) == 1:
        more = tuple(_with_text(cell, [line]) if i == own[0] else cell for i, cell in enumerate(table.cells))
        return replace(table, cells=more)
    if any(table.cells[i].text for i in own):
        side = _free_side(table, line.box, column, words)
        if side is None:
            return table
        column += side
        table = _with_column(table, column, line.box)
        own = _cells_at(table, rows, column)
    cells = [table.cells[i] for i in own]
    if any(cell.column_span > 1 or not rows[0] <= cell.row <= rows[-1] - cell.row_span + 1 for cell in cells):
        return table
    one = replace(cells[0], row_span=rows[-1] + 1 - rows[0], box=bounding_box([cell.box for cell in cells]))
    others = [cell for i, cell in enumerate(table.cells) if i not in own]
    return replace(table, cells=(*others, _with_text(one, [line])))


def _cells_at(table: Table, rows: Sequence[int], column: int) -> list[int]:
    """The numbers of the cells in some rows of a column."""
    return [i for i, cell in enumerate(table.cells) if any(_covers(cell, r, column) for r in rows)]


def _free_side(table: Table, box: Box, column: int, words: Sequence[Word]) -> int | None:
    """0 if a box is to the left of all words of a column, 1 if it is to the right, None if it is between them."""
    x0, x1 = table.column_boxes[column][0], table.column_boxes[column][2]
    own = [word.box for word in words if share(word.box[0], word.box[2], x0, x1) >= HALF_SHARE]
    if all(box[2] <= other[0] for other in own):
        return 0
    return 1 if all(other[2] <= box[0] for other in own) else None


def _with_column(table: Table, at: int, box: Box) -> Table:
    """The table with an empty column as wide as a box, before column `at`; cells across that place become wider."""

    def part_of_box_beside(other: Box, is_before: bool) -> Box:
        """The part of a box of another column that is on its side of the new one."""
        x0, y0, x1, y1 = other
        return (x0, y0, max(x0, min(x1, box[0])), y1) if is_before else (min(x1, max(x0, box[2])), y0, x1, y1)

    cells, count = [], table.shape[1]
    for cell in table.cells:
        if cell.column_span == 1:
            cell = replace(cell, box=part_of_box_beside(cell.box, cell.column < at))
        if cell.column < at < cell.column + cell.column_span or cell.column_span == count > 1:
            cell = replace(cell, column_span=cell.column_span + 1)
        elif cell.column >= at:
            cell = replace(cell, column=cell.column + 1)
        cells.append(cell)
    taken = {
        r
        for cell in cells
        if cell.column <= at < cell.column + cell.column_span
        for r in range(cell.row, cell.row + cell.row_span)
    }
    _, y0, _, y1 = table.box
    for r, row in enumerate(table.row_boxes):
        if r not in taken:
            place = (box[0], row[1], box[2], row[3])
            cells.append(Cell(r, at, 1, 1, place, "", is_header=r < table.header_rows))
    columns = [part_of_box_beside(one, c < at) for c, one in enumerate(table.column_boxes)]
    columns.insert(at, (box[0], y0, box[2], y1))
    x0, x1 = min(table.box[0], box[0]), max(table.box[2], box[2])
    rows = tuple((x0, a, x1, b) for _, a, _, b in table.row_boxes)
    return replace(table, cells=tuple(cells), row_boxes=rows, column_boxes=tuple(columns), box=(x0, y0, x1, y1))


def _covers(cell: Cell, row: int, column: int) -> bool:
    return cell.row <= row < cell.row + cell.row_span and cell.column <= column < cell.column + cell.column_span


def _with_text(cell: Cell, lines: Sequence[Word]) -> Cell:
    """The cell with the text of lines on their side after its own."""
    text = " ".join(filter(None, (cell.text, join(lines))))
    return replace(cell, text=text, confidence=min(cell.confidence, *(line.confidence for line in lines)))
