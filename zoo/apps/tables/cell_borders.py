"""Borders between cells that cut no letters, from an image and from rows and columns that are a little off.

Shapes: Y, X of the image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...images.boxes import Box
from ...images.lines import grey_of, spans
from .table import Table

INK = 40  # grey levels (of 255) from the background: print differs by 100 or more, noise of scans and JPEG by some 20
SHADE = 12  # grey levels between two papers: of a header, or a filled row, and of what is around it
FULL_RULE = 0.9  # share of a place's width or height: a line of pixels with so much ink is a rule, wherever it is
# Share of a table's width or height: a line of pixels with so much ink is a rule, where a border belongs.
MIN_RULE = 0.7
MIN_PARTED = 0.3  # share of a table's height: the least that cells of one column leave for a rule between columns
MIN_DOTTED_RULE = 0.4  # share of the width: so much ink makes a rule of dots, if there is hardly any ink beside it
MAX_BESIDE_RULE = 0.1  # share of the width: the ink beside a rule of dots; lines of letters have more
NEAR_RULE = 2  # pixels between a border and the rule that it belongs to
# Share of half a row's height: about twice the gap between two letters, which a border keeps from ink.
LETTER_GAP = 0.25


def fitted_cell_boxes(image: np.ndarray, table: Table) -> list[Box]:
    """The boxes of the table's cells in the image (Y, X, 3) uint8, with borders between the texts.

    A border through letters moves to the nearest line of pixels without ink, at most to the middles of its two rows or
    columns; if every line has ink, to the one with the least.  The table's own borders move outwards by half a row.
    """
    if not table.cells:
        return []
    rows = [(box[1], box[3]) for box in table.row_boxes]
    columns = [(box[0], box[2]) for box in table.column_boxes]
    reach = float(np.median([end - start for start, end in rows])) / 2
    Y, X = _borders(rows, reach, image.shape[0]), _borders(columns, 2 * reach, image.shape[1])
    ink = _ink(image, Y, X, table.box)
    over_rows, over_columns, spanned = ink.copy(), ink.copy(), np.zeros_like(ink)
    for cell in table.cells:
        below, right = cell.row + cell.row_span, cell.column + cell.column_span
        place = slice(Y[cell.row], Y[below]), slice(X[cell.column], X[right])
        if cell.row_span > 1:
            over_rows[place] = False
        if cell.column_span > 1:
            over_columns[place], spanned[place] = False, True
    over_columns[_rules(ink.mean(1), dotted=False)] = False  # rules across reach to a table's sides
    high = round(4 * reach) if len(rows) == 1 else 1  # in one line of text strokes of letters are as high as the ink
    Y = _move_borders(Y, rows, over_rows, 1, 0)
    X = _move_borders(X, columns, over_columns, 0, round(LETTER_GAP * reach), high, spanned)
    boxes = []
    for c in table.cells:
        below, right = c.row + c.row_span, c.column + c.column_span
        boxes.append((X[c.column][1], Y[c.row][1], X[right][0], Y[below][0]))
    return boxes


def ink_of_part(part: np.ndarray) -> np.ndarray:
    """The pixels of a part of a picture (Y, X, 3) that differ from most of it: (Y, X) bool."""
    if not part.size:
        return np.zeros(part.shape[:2], bool)
    grey = grey_of(part)
    return np.abs(grey - np.median(grey)) > INK


def _borders(intervals: Sequence[tuple[float, float]], reach: float, size: int) -> list[int]:
    """Borders midway between rows, or columns, and `reach` outside of the first and the last."""
    inner = [(before[1] + after[0]) / 2 for before, after in pairwise(intervals)]
    borders = np.array([intervals[0][0] - reach, *inner, intervals[-1][1] + reach])
    return [int(border) for border in np.maximum.accumulate(borders.round().clip(0, size))]


def _ink(image: np.ndarray, Y: Sequence[int], X: Sequence[int], table: Box) -> np.ndarray:
    """Pixels that differ from the background of their own cell, which may be shaded: (Y, X) bool."""
    grey, ink = grey_of(image), np.zeros(image.shape[:2], bool)
    x0, y0, x1, y1 = (max(0, round(v)) for v in table)
    for top, bottom in pairwise(Y):
        for left, right in pairwise(X):
            inner = grey[max(top, y0) : min(bottom, y1), max(left, x0) : min(right, x1)]
            if inner.size:
                ink[top:bottom, left:right] = np.abs(grey[top:bottom, left:right] - np.median(inner)) > INK
    return ink


def _move_borders(
    borders: Sequence[int],
    intervals: Sequence[tuple[float, float]],
    ink: np.ndarray,
    axis: int,
    away: int,
    long: int = 1,
    spanned: np.ndarray | None = None,
) -> list[tuple[float, float]]:
    """Each border (begin, end) where the least ink crosses it or is nearer than `away`, by preference on a rule.

    A border begins and ends at the two edges of its rule; without a rule both are the same.  Rules are as long as
    most of the ink, and of `long`, but for the cells over several columns, which are `spanned`."""
    crossing = np.append(np.count_nonzero(ink, axis), 0)  # no ink at the edge of the picture
    inked = np.flatnonzero(ink.any(1 - axis))
    extent = slice(inked[0], inked[-1] + 1) if len(inked) else slice(0, 1)
    length = np.full(len(crossing), max(long, extent.stop - extent.start))
    if spanned is not None and len(inked):
        length[:-1] = np.maximum(np.maximum(long, MIN_PARTED * length[:-1]), length[:-1] - spanned[extent].sum(0))
    rule = _rules(crossing / length, dotted=axis == 1)
    crossing[rule] = 0
    blurred = sliding_window_view(np.pad(rule, NEAR_RULE), 2 * NEAR_RULE + 1).max(1)  # rules with their blurred edges
    inner = _inner(np.flatnonzero((crossing > 0) & ~blurred), intervals)
    crossing = sliding_window_view(np.pad(crossing, away), 2 * away + 1).max(1)
    crossing[rule] = -1  # better than any other line, even with letters near
    middles = [(start + end) / 2 for start, end in intervals]
    first, last = intervals[0][0], intervals[-1][1]
    at = [first, *borders[1:-1], last]
    begins, ends = [borders[0], *middles[:-1], inner[1]], [inner[0], *middles[1:], borders[-1]]
    moved: list[tuple[float, float]] = []
    for here, low, high in zip(at, begins, ends, strict=True):
        low, high = (min(max(int(end), 0), len(crossing) - 1) for end in (low, math.ceil(high)))
        places = np.arange(low, max(low, high) + 1)
        least = places[crossing[places] == crossing[places].min()]
        begin = end = int(least[np.abs(least - here).argmin()])
        while begin > low and rule[max(0, begin - NEAR_RULE) : begin].any():
            begin -= 1
        while end < high and rule[end : end + NEAR_RULE + 1].any():
            end += 1
        moved.append((float(begin), float(end)))
    return moved


def _inner(inked: np.ndarray, intervals: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The innermost places of the table's own borders: where its first letters begin and its last ones end."""
    (first, end), (start, last) = intervals[0], intervals[-1]
    inked = inked[(inked >= first) & (inked < last)]
    if not len(inked):
        return first, last
    return min(float(inked[0]), (first + end) / 2), max(float(inked[-1] + 1), (start + last) / 2)


def _rules(shares: np.ndarray, dotted: bool) -> np.ndarray:
    """The lines of pixels that are rules, from the share of ink in each."""
    rule = shares >= MIN_RULE
    if dotted:
        padded = np.pad(shares, 4)
        for begin, end in spans(shares >= MIN_DOTTED_RULE):
            beside = padded[begin : begin + 3], padded[end + 5 : end + 8]  # beyond the pixels of its blurred edges
            rule[begin:end] |= end - begin <= 3 and max(map(np.max, beside)) < MAX_BESIDE_RULE
    return rule
