"""The tokens of HTML that a model writes of a table, and the rows, columns and spanning cells that they say.

Shapes: T tokens, V tokens of the vocabulary, H, W of the table's image, y, x of a picture of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

import numpy as np

from ..checkpoint.paddle_table import END, START, TABLE_TOKENS
from ..images.boxes import Detection
from ..images.lines import spans, split_ink

TABLE, COLUMN, ROW = "table", "table column", "table row"  # the labels of Table Transformer
HEADER, SPANNING_CELL = "table column header", "table spanning cell"
LABELS = (TABLE, COLUMN, ROW, HEADER, SPANNING_CELL)
INK = 0.5  # what differs so much from the paper, in a normalised picture, is ink
DOTS = 2  # pixels: lower ink is a dotted rule
LEVELS = 10  # amounts of ink that a gap is looked for below


class Token(NamedTuple):
    """A token, its probability, and its number among all that were written."""

    text: str
    score: float
    step: int


class TokenCell(NamedTuple):
    """A cell.  step: of the token that begins it, at which a model writes its place."""

    row: int
    column: int
    row_span: int
    column_span: int
    is_header: bool
    score: float
    step: int


def read_tokens(probabilities: np.ndarray) -> tuple[list[Token], bool]:
    """The tokens of the probabilities (T, V), without those of start and end; True if the table's end was written."""
    found: list[Token] = []
    best, scores = probabilities.argmax(1).tolist(), probabilities.max(1).tolist()
    for step, (number, score) in enumerate(zip(best, scores, strict=True)):
        text = TABLE_TOKENS[number]
        if text == END and step:
            return found, True
        if text not in (START, END):
            found.append(Token(text, score, step))
    return found, False


def place_cells(tokens: Sequence[Token]) -> list[TokenCell]:
    """The cells of the tokens, each at the first free position of its row, as HTML has it.

    Whatever tokens come one after another are a table: a cell without a row begins one, one that is not closed ends
    where another begins, and a span ends at the next cell and at the last row.
    """
    rows: list[list[tuple[Sequence[Token], bool]]] = []  # the tokens of each cell, and whether it is of the header
    is_header, is_open = False, False
    for token in tokens:
        if token.text in ("<thead>", "</thead>", "<tbody>"):
            is_header = token.text == "<thead>"
        elif token.text == "<tr>":
            rows.append([])
        elif token.text in ("<td", "<td></td>"):
            rows = rows or [[]]
            rows[-1].append(([token], is_header))
        elif is_open and token.text.startswith(" "):
            rows[-1][-1] = [*rows[-1][-1][0], token], is_header
        is_open = token.text == "<td" or (is_open and token.text.startswith(" "))
    cells: list[TokenCell] = []
    rows, taken = [row for row in rows if row], set[tuple[int, int]]()
    for r, row in enumerate(rows):
        c = 0
        for parts, in_header in row:
            while (r, c) in taken:
                c += 1
            sizes = {"rowspan": 1, "colspan": 1}
            sizes |= {name: int(n.strip('"')) for name, n in (part.text.strip().split("=") for part in parts[1:])}
            down = min(sizes["rowspan"], len(rows) - r)
            across = next((n for n in range(1, sizes["colspan"]) if (r, c + n) in taken), sizes["colspan"])
            taken |= {(y, x) for y in range(r, r + down) for x in range(c, c + across)}
            score = fmean(part.score for part in parts)
            cells.append(TokenCell(r, c, down, across, in_header, score, parts[0].step))
            c += across
    return cells


def find_parts(cells: Sequence[TokenCell], rows: Sequence[float], columns: Sequence[float]) -> list[Detection]:
    """The table's rows, columns, header and spanning cells.  rows, columns: their borders, those at the ends too."""
    top, bottom, left, right = rows[0], rows[-1], columns[0], columns[-1]
    found = [Detection(TABLE, fmean(cell.score for cell in cells), (left, top, right, bottom))]
    for r in range(len(rows) - 1):
        score = fmean(cell.score for cell in cells if cell.row <= r < cell.row + cell.row_span)
        found.append(Detection(ROW, score, (left, rows[r], right, rows[r + 1])))
    for c in range(len(columns) - 1):
        score = fmean(cell.score for cell in cells if cell.column <= c < cell.column + cell.column_span)
        found.append(Detection(COLUMN, score, (columns[c], top, columns[c + 1], bottom)))
    if header := [cell for cell in cells if cell.is_header]:
        end = max(cell.row + cell.row_span for cell in header)
        score = fmean(cell.score for cell in header)
        found.append(Detection(HEADER, score, (left, top, right, rows[end])))
    for cell in cells:
        if cell.row_span > 1 or cell.column_span > 1:
            sides = columns[cell.column], columns[cell.column + cell.column_span]
            box = (sides[0], rows[cell.row], sides[1], rows[cell.row + cell.row_span])
            found.append(Detection(SPANNING_CELL, cell.score, box))
    return found


def borders_of_places(cells: Sequence[TokenCell], places: np.ndarray) -> tuple[list[float], list[float]]:
    """The borders of rows and of columns, midway between the texts of cells that span none.

    places (T, 4): x0, y0, x1, y1 of the text of the cell that each token begins.
    """
    return (
        _borders([(c.row, c.row_span, places[c.step, 1], places[c.step, 3]) for c in cells]),
        _borders([(c.column, c.column_span, places[c.step, 0], places[c.step, 2]) for c in cells]),
    )


def _borders(sides: Sequence[tuple[int, int, float, float]]) -> list[float]:
    """The borders of rows, or columns; sides: the first, the number, begin and end of each cell's."""
    count = max(first + span for first, span, _, _ in sides)
    own = [[(a, b) for first, span, a, b in sides if (first, span) == (i, 1) and a < b] for i in range(count)]
    known = [i for i, pairs in enumerate(own) if pairs]
    if not known:
        ends = [side for *_, a, b in sides for side in (a, b)]
        return np.linspace(min(ends), max(ends), count + 1).tolist()
    begins, ends = np.array([np.median(own[i], 0) for i in known]).T
    pitch = (begins[-1] - begins[0]) / max(1, known[-1] - known[0]) or float(np.median(ends - begins))
    at = [-1, *known, count]  # what has no cell of its own is as far from the others as they are from each other
    begins, ends = (
        np.interp(range(count), at, [v[0] - pitch * (known[0] + 1), *v, v[-1] + pitch * (count - known[-1])])
        for v in (begins, ends)
    )
    middles = (ends[:-1] + begins[1:]) / 2
    return np.maximum.accumulate([begins[0], *middles, ends[-1]]).tolist()


def borders_of_ink(cells: Sequence[TokenCell], pixels: np.ndarray) -> tuple[list[float], list[float]]:
    """The borders of rows and of columns in the widest gaps of the ink, for a model that writes no places.

    pixels (y, x, 3): the table's picture, normalised.  Columns are looked for in the rows without a cell that spans
    some.
    """
    grey = pixels.mean(2)  # what differs from most of its row and its column, as rules and shaded rows do not
    of_row, of_column = (grey - np.median(grey, axis, keepdims=True) for axis in (1, 0))
    ink = np.minimum(np.abs(of_row), np.abs(of_column)) > INK
    for begin, end in spans(ink.any(1)):
        ink[begin:end] &= end - begin > DOTS
    count = max(cell.row + cell.row_span for cell in cells)
    lines = [(top, bottom) for _, top, _, bottom in split_ink(ink)] if ink.any() else []
    rows = _widest_gaps(lines, count) if len(lines) >= count else _gaps(ink.sum(1), count)
    wide = {r for cell in cells if cell.column_span > 1 for r in range(cell.row, cell.row + cell.row_span)}
    plain = [ink[round(rows[r]) : round(rows[r + 1])] for r in range(len(rows) - 1) if r not in wide]
    seen = np.concatenate(plain) if plain else ink
    return rows, _gaps(seen.sum(0), max(cell.column + cell.column_span for cell in cells))


def _widest_gaps(runs: Sequence[tuple[int, int]], count: int) -> list[float]:
    """The borders (count + 1) of runs of ink in the widest gaps between them."""
    gaps = [(b[0] - a[1], (a[1] + b[0]) / 2) for a, b in pairwise(runs)]
    inner = sorted(at for _, at in sorted(gaps, reverse=True)[: count - 1])
    return [float(runs[0][0]), *inner, float(runs[-1][1])]


def _gaps(amounts: np.ndarray, count: int) -> list[float]:
    """The borders (count + 1) in the widest gaps of ink: the amounts of each line of pixels; even ones without gaps."""
    lines = np.flatnonzero(amounts)
    start, end = (int(lines[0]), int(lines[-1]) + 1) if len(lines) else (0, len(amounts))
    for level in range(LEVELS):
        runs = spans(amounts[start:end] > level / LEVELS * amounts.max())
        if len(runs) >= count:
            return [start + at for at in _widest_gaps(runs, count)]
    return np.linspace(start, end, count + 1).tolist()
