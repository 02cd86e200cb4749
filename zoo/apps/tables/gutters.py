"""Borders between the cells of a table in an image that cut no letters, though rows and columns were found a bit off.

Shapes: Y, X of the image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...images.boxes import Box
from ...images.lines import spans
from .table import Cell, Table

# Grey levels away from the background: print is 100 and more away, the noise of a scan or of JPEG some 20.
INK = 40
# The share of a table's height, or width, that makes a line of ink a rule, in which a border lies; and, of the width,
# one of dots, if it has no letters beside it, of which the fullest have as much.
_RULE, _DOTTED, _CLEAR = 0.7, 0.4, 0.1
_NEAR = 2  # pixels from a border to a rule that it was meant for
# Of half a row: what lies between two letters, twice.
_BETWEEN = 0.25


def uncut(image: np.ndarray, table: Table) -> list[Box]:
    """The boxes of the table's cells in the image (Y, X, 3) uint8, which meet their neighbours between the texts.

    Where letters lie on a border between two rows or columns, it moves to the nearest line without any before their
    middles; where there is none, to the one with the fewest.  The table's own borders move outwards by half a row.
    """
    if not table.cells:
        return []
    rows = [(box[1], box[3]) for box in table.row_boxes]
    columns = [(box[0], box[2]) for box in table.column_boxes]
    reach = float(np.median([end - start for start, end in rows])) / 2
    Y, X = (_borders(lanes, reach, size) for lanes, size in ((rows, image.shape[0]), (columns, image.shape[1])))
    ink = _ink(image, Y, X, table.box)
    over_rows, over_columns = ink.copy(), ink
    for cell in table.cells:
        part = _part(cell, Y, X)
        if cell.row_span > 1:
            over_rows[part] = False
        if cell.column_span > 1:
            over_columns[part] = False
    Y, X = _moved(Y, rows, over_rows, 1, 0), _moved(X, columns, over_columns, 0, round(_BETWEEN * reach))
    return [
        (X[c.column][1], Y[c.row][1], X[c.column + c.column_span][0], Y[c.row + c.row_span][0]) for c in table.cells
    ]


def _borders(lanes: Sequence[tuple[float, float]], reach: float, size: int) -> list[int]:
    """Midway between rows, or columns, and `reach` outside of all."""
    inner = [(before[1] + after[0]) / 2 for before, after in pairwise(lanes)]
    borders = np.array([lanes[0][0] - reach, *inner, lanes[-1][1] + reach])
    return [int(border) for border in np.maximum.accumulate(borders.round().clip(0, size))]


def _part(cell: Cell, Y: Sequence[int], X: Sequence[int]) -> tuple[slice, slice]:
    return (
        slice(Y[cell.row], Y[cell.row + cell.row_span]),
        slice(X[cell.column], X[cell.column + cell.column_span]),
    )


def _ink(image: np.ndarray, Y: Sequence[int], X: Sequence[int], table: Box) -> np.ndarray:
    """(Y, X) bool: what differs from the background that its own cell has in the table, which may be shaded."""
    grey, ink = image.mean(-1), np.zeros(image.shape[:2], bool)
    x0, y0, x1, y1 = (max(0, round(v)) for v in table)
    for top, bottom in pairwise(Y):
        for left, right in pairwise(X):
            inner = grey[max(top, y0) : min(bottom, y1), max(left, x0) : min(right, x1)]
            if inner.size:
                ink[top:bottom, left:right] = np.abs(grey[top:bottom, left:right] - np.median(inner)) > INK
    return ink


def _moved(
    borders: Sequence[int], lanes: Sequence[tuple[float, float]], ink: np.ndarray, axis: int, away: int
) -> list[tuple[float, float]]:
    """The borders where as little ink as can be crosses them, or lies less than `away` from them, and best of all where
    rules are: where one begins and ends, since a rule may lie in it."""
    crossing = np.append(np.count_nonzero(ink, axis), 0)  # nothing crosses the picture's edge
    inked = np.flatnonzero(ink.any(1 - axis))
    rule = _rules(crossing / (inked[-1] + 1 - inked[0] if len(inked) else 1), dotted=axis == 1)
    crossing[rule] = 0
    inner = _inner(np.flatnonzero((crossing > 0) & ~_wider(rule)), lanes)
    crossing = sliding_window_view(np.pad(crossing, away), 2 * away + 1).max(1)
    crossing[rule] = -1  # the best of places, be letters ever so near
    middles = [(start + end) / 2 for start, end in lanes]
    first, last = lanes[0][0], lanes[-1][1]
    at, begins, ends = (
        [first, *borders[1:-1], last],
        [borders[0], *middles[:-1], inner[1]],
        [inner[0], *middles[1:], borders[-1]],
    )
    moved: list[tuple[float, float]] = []
    for here, low, high in zip(at, begins, ends, strict=True):
        low, high = (min(max(int(end), 0), len(crossing) - 1) for end in (low, math.ceil(high)))
        places = np.arange(low, max(low, high) + 1)
        least = places[crossing[places] == crossing[places].min()]
        begin = end = int(least[np.abs(least - here).argmin()])
        while begin > low and rule[max(0, begin - _NEAR) : begin + 1].any():
            begin -= 1
        while end < high and rule[end : end + _NEAR + 1].any():
            end += 1
        moved.append((float(begin), float(end)))
    return moved


def _inner(inked: np.ndarray, lanes: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Where the table's own borders may lie, furthest in: where its first letters and its last ones are."""
    (first, end), (start, last) = lanes[0], lanes[-1]
    inked = inked[(inked >= first) & (inked < last)]
    if not len(inked):
        return first, last
    return min(float(inked[0]), (first + end) / 2), max(float(inked[-1] + 1), (start + last) / 2)


def _wider(rule: np.ndarray) -> np.ndarray:
    """With the blurred edges of rules."""
    return sliding_window_view(np.pad(rule, _NEAR), 2 * _NEAR + 1).max(1)


def _rules(shares: np.ndarray, dotted: bool) -> np.ndarray:
    """Which lines of pixels are rules, from the share of ink in each."""
    rule = shares >= _RULE
    if dotted:
        padded = np.pad(shares, 4)
        for begin, end in spans(shares >= _DOTTED):
            beside = padded[begin : begin + 3], padded[end + 5 : end + 8]  # but for the pixels of its blurred edges
            rule[begin:end] |= end - begin <= 3 and max(map(np.max, beside)) < _CLEAR
    return rule
