"""Flattening a table: one header row, and headings that become part of the names of the rows below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .boxes import bounding_box
from .grid import Cell, G, Grid

SEPARATOR = " / "  # between the names of two levels


def flat_header(table: Grid) -> list[str]:
    """C texts: the distinct texts of the header above each column, from the top down, joined by " / "."""
    above = table.grid()[: table.header_rows]
    columns = [[row[c].text for row in above] for c in range(table.shape[1])]
    return [SEPARATOR.join(text for text in dict.fromkeys(texts) if text) for texts in columns]


def unique_names(names: Sequence[str]) -> list[str]:
    """Names made unique: one that occurs again gets a number, "a (2)", and an empty one becomes "column 3"."""
    found: dict[str, None] = {}
    count: Counter[str] = Counter()
    for i, name in enumerate(names, 1):
        name = name or f"column {i}"
        count[name] += 1
        while (unique := name if count[name] == 1 else f"{name} ({count[name]})") in found:
            count[name] += 1
        found[unique] = None
    return list(found)


def flatten(table: G) -> G:
    """The table with one header row, and without projected row headers, such as "Assets" across the table.

    A column's name joins the header's texts from the top down, "Revenue / 2023".  A row's name, in the first column,
    begins with the heading above it, "Assets / Cash", or with all of several headings that follow each other.  A
    heading with no row below it stays a row, with its other columns empty.
    """
    rows = list(range(min(table.header_rows, 1)))
    grid = table.grid()
    stack: list[int] = []
    above: dict[int, list[int]] = {}  # row -> the headings above it
    fresh = False  # a row under the headings of the stack was seen
    for r in range(table.header_rows, table.shape[0]):
        if _is_heading(grid[r]):
            stack = [r] if fresh else [*stack, r]
            fresh = False
            continue
        above[r], fresh = stack, True
    bare = set() if fresh else set(stack)  # the last headings, if no row follows them
    rows += [r for r in range(table.header_rows, table.shape[0]) if r in above or r in bare]
    if rows == list(range(table.shape[0])) and not any(above.values()):
        return table
    place = {row: i for i, row in enumerate(rows)}
    alone = {place[row] for row in bare}
    cells = _header(table) if table.header_rows else []
    for cell in table.cells:
        if cell.row >= table.header_rows and cell.row in place:
            names = [grid[r][0].text for r in above.get(cell.row, ())] if cell.column == 0 else []
            text = SEPARATOR.join(name for name in [*names, cell.text] if name)
            cell = replace(cell, row=place[cell.row], text=text)
            if cell.row in alone:  # a heading without rows: its text in the first column, the other columns empty
                span, cell = cell.column_span, replace(cell, column_span=1, is_projected_row_header=False)
                cells += [replace(cell, column=c, text="") for c in range(1, span)]
            cells.append(cell)
    boxes = [table.row_boxes[r] for r in rows]
    if table.header_rows:
        boxes[0] = bounding_box(table.row_boxes[: table.header_rows])
    pages = getattr(table, "row_pages", ())
    more: dict[str, Any] = {"row_pages": tuple(pages[r] for r in rows)} if pages else {}
    return replace(table, cells=tuple(cells), row_boxes=tuple(boxes), header_rows=min(table.header_rows, 1), **more)


def _is_heading(row: Sequence[Cell]) -> bool:
    alone = all(cell.row_span == 1 and not (cell.text and cell.column) for cell in row)
    return bool(row) and row[0].is_projected_row_header and alone


def _header(table: Grid) -> list[Cell]:
    found, above = [], table.grid()[: table.header_rows]
    x0, y0, x1, y1 = bounding_box(table.row_boxes[: table.header_rows])
    for c, name in enumerate(flat_header(table)):
        box = table.column_boxes[c]
        both = max(x0, box[0]), max(y0, box[1]), min(x1, box[2]), min(y1, box[3])
        box = both if both[0] <= both[2] and both[1] <= both[3] else box
        confidence = min(row[c].confidence for row in above)
        doubts = tuple(dict.fromkeys(reason for row in above for reason in row[c].doubts))
        found.append(Cell(0, c, 1, 1, box, name, confidence, True, doubts=doubts))
    return found
