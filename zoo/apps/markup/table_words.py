"""A model's table beside the words of its page: cells that the two disagree about are doubtful.

Boxes are (x0, y0, x1, y1) in pixels of the page.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from ...images.boxes import Box
from ..tables import Cell, Table, Word
from ..tables.boxes import HALF_SHARE, bounding_box, inside
from ..tables.doubts import add_doubts

OTHER_TEXT, LEFT_OUT = "the page's words say something else", "it leaves out words of the page"
OTHER_ROW, OTHER_COLUMN = "its words are in another row", "its words are in another column"
MIN_CELLS = 2  # cells with words of a row or a column: fewer do not say where it is

Ranges = dict[int, tuple[float, float]]


def with_words(table: Table, words: Sequence[Word], is_placed: bool = True) -> Table:
    """The table, whose cells are around their words.

    Cells are doubtful whose text is not among the words, whose words lie in another row or column than their own, and
    where there are words of no cell, which are the table's `outside`.
    is_placed: False if the table may be anywhere on the page; its place is then that of its words.
    """
    near = [word for word in words if not is_placed or inside(word.box, table.box) >= HALF_SHARE]
    if not near:  # a picture of a table has nothing to be compared with
        return table
    known, rest = _match(table.cells, near)
    if not is_placed:
        if own := [word for words_of_cell in known for word in words_of_cell or ()]:
            table = fit_table(table, _bounds(own))
        rest = [word for word in rest if inside(word.box, table.box) >= HALF_SHARE]
    cells, of_cells = list(table.cells), defaultdict[str, list[int]](list)
    for i, cell in enumerate(cells):
        if (own := known[i]) is None:
            of_cells[OTHER_TEXT].append(i)
        elif own:
            cells[i] = replace(cell, box=_bounds(own))
    found = [(i, cells[i]) for i, own in enumerate(known) if own]
    (columns, of_cells[OTHER_COLUMN]), (rows, of_cells[OTHER_ROW]) = _lines(found, 0), _lines(found, 1)
    table = replace(table, cells=tuple(cells), outside=tuple(rest))
    numbers, grid = {(cell.row, cell.column): i for i, cell in enumerate(table.cells)}, table.grid()
    for word in rest:
        row, column = _line_at(word.box, rows, 1), _line_at(word.box, columns, 0)
        if row is not None and column is not None:
            cell = grid[row][column]
            of_cells[LEFT_OUT].append(numbers[cell.row, cell.column])
    return add_doubts(table, of_cells)


def fit_table(table: Table, box: Box) -> Table:
    """The table in another place, its cells, rows and columns with it."""
    (x0, y0, x1, y1), (left, top, right, bottom) = box, table.box
    across, down = (x1 - x0) / max(right - left, 1e-9), (y1 - y0) / max(bottom - top, 1e-9)

    def fit(of: Box) -> Box:
        a, b, c, d = of
        return x0 + (a - left) * across, y0 + (b - top) * down, x0 + (c - left) * across, y0 + (d - top) * down

    return replace(
        table,
        cells=tuple(replace(cell, box=fit(cell.box)) for cell in table.cells),
        row_boxes=tuple(map(fit, table.row_boxes)),
        column_boxes=tuple(map(fit, table.column_boxes)),
        box=fit(table.box),
    )


def _match(cells: Sequence[Cell], words: Sequence[Word]) -> tuple[list[list[Word] | None], list[Word]]:
    """The words of each cell, None where its text is not among them, and the words of no cell.

    Of equal words a cell has those that are nearest to its row and column, which texts that are there once show.  What
    the page writes apart, or together, is the same text.
    """
    free: dict[str, list[Word]] = defaultdict(list)
    for word in sorted(words, key=lambda one: (one.box[1] + one.box[3], one.box[0])):
        for part in _normal(word.text).split():
            free[part].append(word)
    parts = [_normal(cell.text).split() for cell in cells]
    asked = Counter(part for own in parts for part in own)
    found: list[list[Word] | None] = [None] * len(cells)
    once = [i for i, own in enumerate(parts) if all(asked[part] == len(free[part]) == 1 for part in own)]
    for i in once:
        found[i] = [free[part].pop() for part in parts[i]]
    known = [(i, replace(cells[i], box=_bounds(own))) for i in once if (own := found[i])]
    columns, rows = (_lines(known, axis, 1)[0] for axis in (0, 1))
    for i in sorted({*range(len(cells))} - {*once}):
        cell, counts = cells[i], Counter(parts[i])
        if any(len(free[part]) < count for part, count in counts.items()):
            continue
        own = found[i] = list[Word]()
        for part in parts[i]:
            gaps = [
                _gap(word.box, columns.get(cell.column), 0) + _gap(word.box, rows.get(cell.row), 1)
                for word in free[part]
            ]
            own.append(free[part].pop(gaps.index(min(gaps))))
    used = {id(word) for own in found for word in own or ()}
    rest = [(_normal(word.text).replace(" ", ""), word) for word in words if id(word) not in used]
    for i, cell in enumerate(cells):
        if found[i] is None and (run := _run_of(_normal(cell.text).replace(" ", ""), rest)):
            found[i] = [word for _, word in rest[run]]
            del rest[run]
    return found, [word for _, word in rest]


def _bounds(words: Sequence[Word]) -> Box:
    return bounding_box([word.box for word in words])


def _gap(box: Box, line: tuple[float, float] | None, axis: int) -> float:
    """How far a box is from a row or a column; 0 where it overlaps it, or where that is not known."""
    return 0.0 if line is None else max(0.0, line[0] - box[axis + 2], box[axis] - line[1])


def _run_of(text: str, words: Sequence[tuple[str, Word]]) -> slice | None:
    """Where words one after the other have the characters of a text."""
    for first, (piece, _) in enumerate(words):
        if not piece or not text.startswith(piece):
            continue
        length, last = len(piece), first + 1
        while length < len(text) and last < len(words) and text.startswith(words[last][0], length):
            length += len(words[last][0])
            last += 1
        if length == len(text):
            return slice(first, last)
    return None


def _normal(text: str) -> str:
    """A text in which what looks alike is equal: dashes, quotes, ligatures, widths."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return text.translate(_LOOKALIKES)


_LOOKS = (("‐‑‒–—−", "-"), ("’‘´`", "'"), ("“”„", '"'), ("\u00ad", ""))
_LOOKALIKES = {ord(char): to for chars, to in _LOOKS for char in chars}


def _lines(cells: Sequence[tuple[int, Cell]], axis: int, least: int = MIN_CELLS) -> tuple[Ranges, list[int]]:
    """Where rows (axis 1) or columns (axis 0) are, by the middles of both ends of their cells' words, and the numbers
    of the cells whose words are beside their own, and within another.
    """
    lines: dict[int, list[tuple[int, Box]]] = defaultdict(list)
    for i, cell in cells:
        at, span = (cell.column, cell.column_span) if axis == 0 else (cell.row, cell.row_span)
        if span == 1:
            lines[at].append((i, cell.box))
    ranges = {
        at: (median(box[axis] for _, box in own), median(box[axis + 2] for _, box in own))
        for at, own in lines.items()
        if len(own) >= least
    }
    found = []
    for at, own in lines.items():
        for i, box in own:
            within = {other for other, (a, b) in ranges.items() if min(b, box[axis + 2]) > max(a, box[axis])}
            if at in ranges and within and at not in within:
                found.append(i)
    return ranges, found


def _line_at(box: Box, ranges: Ranges, axis: int) -> int | None:
    """The row or column that a box shares most with, None if it is in none."""
    shares = {at: min(b, box[axis + 2]) - max(a, box[axis]) for at, (a, b) in ranges.items()}
    best = max(shares, key=lambda at: shares[at], default=None)
    return best if best is not None and shares[best] > 0 else None
