"""Tables beside each other that were found as one.

Boxes are (x0, y0, x1, y1) in pixels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...images.boxes import Box
from ...images.lines import spans
from .cell_borders import ink_of_part
from .table import Table

MIN_ROWS = 4  # rows of tables beside each other, at least
RULE_SHARES = (
    0.7,
    0.95,
)  # of a table's height, and width: a line of pixels with so much ink is a rule down, or across it


def part_repeated_header(table: Table, page: np.ndarray) -> list[Table]:
    """The tables that a table consists of: its first row repeats the same texts, "Age, Number, Age, ...".

    A table with a rule from side to side of its place on the page (H, W, 3) uint8, and none down it, is one.
    """
    R, C = table.shape
    if R < MIN_ROWS or any(cell.origin != "model" for cell in table.cells):
        return [table]
    first = table.rows(repeat=False)[0]
    for wide in range(2, C // 2 + 1):
        names = first[:wide]
        if C % wide or not all(names) or len(set(names)) < wide or names * (C // wide) != first:
            continue
        if _is_ruled(page, table.box, 1) and not _is_ruled(page, table.box, 0):
            return [table]
        starts = range(0, C, wide)
        if any(cell.column // wide != (cell.column + cell.column_span - 1) // wide for cell in table.cells):
            return [table]
        if any(char.isalpha() for name in names for char in name):
            return [_columns(table, start, start + wide) for start in starts]
    return [table]


def _is_ruled(page: np.ndarray, box: Box, axis: int) -> bool:
    """Return True for a rule across (axis 1) or down (0) the whole of a place."""
    x0, y0, x1, y1 = (max(0, round(v)) for v in box)
    ink = ink_of_part(page[y0:y1, x0:x1])
    return bool(ink.size and (ink.mean(axis) >= RULE_SHARES[axis]).any())


def _columns(table: Table, start: int, end: int) -> Table:
    """The table of some columns, without the rows below its last text."""
    cells = [cell for cell in table.cells if start <= cell.column < end]
    last = max(cell.row + cell.row_span for cell in cells if cell.text)
    while end_of := [cell.row + cell.row_span for cell in cells if cell.row < last < cell.row + cell.row_span]:
        last = max(end_of)
    cells = [replace(cell, column=cell.column - start) for cell in cells if cell.row + cell.row_span <= last]
    columns = table.column_boxes[start:end]
    x0, x1 = columns[0][0], columns[-1][2]
    rows = tuple((x0, y0, x1, y1) for _, y0, _, y1 in table.row_boxes[:last])
    columns = tuple((a, y0, b, rows[-1][3]) for a, y0, b, _ in columns)
    box = (x0, table.box[1], x1, rows[-1][3])
    return replace(table, cells=tuple(cells), row_boxes=rows, column_boxes=columns, box=box)


def rules_across(pixels: np.ndarray, box: Box) -> list[float]:
    """The places (y) of the rules across the width of a table, from the top; they may be a little above its box."""
    x0, y0, x1, y1 = (max(0, round(v)) for v in box)
    top = max(0, y0 - (y1 - y0) // 4)
    ink = ink_of_part(pixels[top:y1, x0:x1])
    return [float(top + a) for a, _ in spans(ink.mean(1) >= RULE_SHARES[1])] if ink.size else []
