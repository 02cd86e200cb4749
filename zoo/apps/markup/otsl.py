"""OTSL (Lysak et al. 2023, https://arxiv.org/abs/2305.03393): a table as its cells row by row, in five tags.

`<fcel>` begins a cell with text, `<ecel>` is one without, `<ched>`, `<rhed>` and `<srow>` are headers of columns, of
rows and of a section; `<lcel>` belongs to the cell on its left, `<ucel>` to the one above, `<xcel>` to both; `<nl>`
ends a row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...images.boxes import Box
from ..tables import Cell, Table
from ..tables.as_html import MIN_POSITIONS
from ..tables.grid import MAX_POSITIONS

TEXT_TAGS = ("fcel", "ched", "rhed", "srow")
CELL_TAGS = (*TEXT_TAGS, "ecel", "lcel", "ucel", "xcel")
_PIECES = re.compile(rf"<({'|'.join((*CELL_TAGS, 'nl'))})>([^<]*(?:<(?!(?:{'|'.join((*CELL_TAGS, 'nl'))})>)[^<]*)*)")
HAS_CELLS = re.compile(rf"<(?:{'|'.join(CELL_TAGS)})>")
# Of blocks within a cell, which are its text.
_BLOCK_TAG = re.compile(r"</?(?:doctag|text|paragraph|list_item|(?:un)?ordered_list|formula|inline|loc_\d+)>")
RAGGED_ROWS = "rows of different lengths"
TORN_SPAN = "a span without its cell"
TOO_LARGE = "more positions than a table may have, so that its last rows are left out"

Rows = list[list[tuple[str, str]]]  # the tag and the text of each cell


def table_of_otsl(text: str, box: Box | None = None) -> Table:
    """The table of OTSL tags, whose cells share the box evenly; by default each position is a unit.

    A model that is not held to the grammar writes what is no table: rows of different lengths are filled with empty
    cells, a span without its cell becomes an empty one, and the table has the doubt that says so.
    """
    return table_of_rows(_rows(text), box)


def text_beside_cells(text: str) -> str:
    """What OTSL has before its first cell, in the places of spans and between rows, where no cell takes it."""
    first = _PIECES.search(text)
    pieces = [text[: len(text) if first is None else first.start()]]
    pieces += [found[2] for found in _PIECES.finditer(text) if found[1] not in (*TEXT_TAGS, "ecel")]
    return " ".join(" ".join(pieces).split())


def table_of_rows(rows: Rows, box: Box | None = None) -> Table:
    """The table of cells as OTSL has them, of each row the tag and the text of each; see `table_of_otsl`."""
    doubts = list[str]()
    width = max(map(len, rows), default=0)
    most = min(MAX_POSITIONS, MIN_POSITIONS + sum(map(len, rows)))  # a short answer may claim millions
    if width * len(rows) > most:
        doubts.append(TOO_LARGE)
        rows, width = [row[:most] for row in rows[: most // width or 1]], min(width, most)
    if any(len(row) != width for row in rows):
        doubts.append(RAGGED_ROWS)
        rows = [[*row, *[("ecel", "")] * (width - len(row))] for row in rows]
    tags = [[tag for tag, _ in row] for row in rows]
    cells, taken = list[Cell](), [[False] * width for _ in rows]
    x0, y0, x1, y1 = box or (0.0, 0.0, float(width or 1), float(len(rows) or 1))
    xs = [x0 + (x1 - x0) * c / max(width, 1) for c in range(width + 1)]
    ys = [y0 + (y1 - y0) * r / max(len(rows), 1) for r in range(len(rows) + 1)]
    header = _header_rows(tags)
    for r, row in enumerate(rows):
        for c, (tag, content) in enumerate(row):
            if taken[r][c]:
                continue
            if tag in ("lcel", "ucel", "xcel"):
                doubts.append(TORN_SPAN)
            down, across = _span(tags, taken, r, c, header)
            for y in range(r, r + down):
                taken[y][c : c + across] = [True] * across
            own = (xs[c], ys[r], xs[c + across], ys[r + down])
            projected = tag == "srow" and r >= header
            cells.append(Cell(r, c, down, across, own, content, 1.0, r < header, projected))
    row_boxes = [(x0, ys[r], x1, ys[r + 1]) for r in range(len(rows))]
    column_boxes = [(xs[c], y0, xs[c + 1], y1) for c in range(width)]
    found = tuple(dict.fromkeys(doubts))
    return Table(tuple(cells), tuple(row_boxes), tuple(column_boxes), (x0, y0, x1, y1), 1.0, header, found)


def _rows(text: str) -> Rows:
    """The rows of cells, up to one more than a table may have."""
    rows: Rows = [[]]
    count = 0
    for found in _PIECES.finditer(text):
        if found[1] == "nl":
            rows.append([])
        else:
            count += 1
            if count > MAX_POSITIONS:
                break
            content = _BLOCK_TAG.sub("", found[2]).strip() if found[1] in (*TEXT_TAGS, "ecel") else ""
            rows[-1].append(("fcel" if content and found[1] == "ecel" else found[1], content))
    return [row for row in rows if row]


def _header_rows(tags: Sequence[Sequence[str]]) -> int:
    """The rows at the top of column headers, cells that span into them counted."""
    count = 0
    for row in tags:
        if "ched" not in row or any(tag in ("fcel", "rhed", "srow") for tag in row[1:]):
            break
        count += 1
    return count


def _span(
    tags: Sequence[Sequence[str]], taken: Sequence[Sequence[bool]], r: int, c: int, header: int
) -> tuple[int, int]:
    """The rows and columns of the cell at a place, by the tags that follow on its right and below; no cell reaches
    across the line below the header.
    """
    across, down = 1, 1
    while c + across < len(tags[r]) and tags[r][c + across] == "lcel" and not taken[r][c + across]:
        across += 1
    last = header if r < header else len(tags)
    while r + down < last:
        below, free = tags[r + down][c : c + across], not any(taken[r + down][c : c + across])
        if not free or below[0] != "ucel" or any(tag not in ("xcel", "ucel") for tag in below[1:]):
            break
        down += 1
    return down, across
