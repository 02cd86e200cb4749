"""Drawings that look like tables: boxes around texts, apart from each other, and curves.

A curve is ink that hangs together, is much larger than letters, and is neither a rule nor a fill.  Boxes are
(x0, y0, x1, y1) in pixels of the page.  Shapes: H, W of the page, Y, X of a place.
"""

from __future__ import annotations

import numpy as np

from ...images.boxes import Box
from ..documents import Rules
from .boxes import HALF_SHARE, inside
from .cell_borders import ink_of_part
from .ink_rules import ink_rules, near_on
from .text_lines import RULE, long_runs, runs_of, text_ink

BOXES, MAX_FILL = 3, 0.6  # boxes of a diagram, at least; the share of their place that they fill, at most
MIN_HEIGHT = 10  # times `near`: boxes around texts are higher, and letters of small pictures lower
# Share of a place: so much lies in the box around a curve; words have less than 0.08 of the least tables.
MIN_AREA = 0.1
MIN_OWN_INK = 0.95  # share of the ink in that box: tilted or bent rules hold texts, a curve hardly any
MIN_RULE_LENGTH = 0.3  # share of a place's width or height: longer runs of ink are rules, or axes


def is_diagram(page: np.ndarray, box: Box) -> bool:
    """Return True if boxes around most texts stand apart in a place of a page (H, W, 3) uint8, as in a flow chart.

    Cells share their sides, or are next to each other.
    """
    near = near_on(page)
    x0, y0, x1, y1 = (max(0, int(v)) for v in box)
    part = page[y0 : y1 + 1, x0 : x1 + 1]
    rules = ink_rules(part, near) if part.size else Rules()
    across, down = (np.array(of, np.float64).reshape(-1, 3) for of in (rules.across, rules.down))
    level = np.abs(across[:, None, 1:] - across[:, 1:]).max(-1) <= 2 * near
    level &= across[:, 0] - across[:, None, 0] > MIN_HEIGHT * near
    boxes: list[Box] = []
    for i, k in np.argwhere(level).tolist():
        (top, left, right), bottom = across[i].tolist(), float(across[k, 0])
        drawn = [(np.abs(down - (at, top, bottom)).max(1) <= 2 * near).any() for at in (left, right)]
        sides = left, top, right, bottom
        if not all(drawn) or any(max(inside(sides, own), inside(own, sides)) > 0 for own in boxes):
            continue
        low, high = (round(v + near) for v in (top, left)), (round(v - near) for v in (bottom, right))
        if ink_of_part(part[tuple(map(slice, low, high))]).any():
            boxes.append(sides)
    if len(boxes) < BOXES:
        return False
    ink, within = ink_of_part(part), np.zeros(part.shape[:2], bool)
    for left, top, right, bottom in boxes:
        within[int(top) : int(bottom) + 1, int(left) : int(right) + 1] = True
    return bool(within.mean() < MAX_FILL and np.count_nonzero(ink & within) >= HALF_SHARE * np.count_nonzero(ink))


def has_curve(page: np.ndarray, box: Box) -> bool:
    """Return True if a curve fills much of a place of a page (H, W, 3) uint8."""
    x0, y0, x1, y1 = (max(0, int(v)) for v in box)
    part = page[y0 : y1 + 1, x0 : x1 + 1]
    if not part.size:
        return False
    ink = text_ink(part)
    wide = ink.shape[1]
    across, down = (long_runs(of, max(RULE, MIN_RULE_LENGTH * of.shape[1])) for of in (ink, ink.T))
    ink &= ~(across | down.T)
    begins, ends = runs_of(ink)
    if not len(begins):
        return False
    parts = _number_parts(begins, ends, wide + 1)
    rows, count = begins // (wide + 1), int(parts.max()) + 1
    least, most = np.full((2, count), ink.size), np.zeros((2, count), int)
    for axis, (first, last) in enumerate(((begins % (wide + 1), ends % (wide + 1)), (rows, rows + 1))):
        np.minimum.at(least[axis], parts, first)
        np.maximum.at(most[axis], parts, last)
    size = (most - least).prod(0)
    i = int(size.argmax())
    held = ink[least[1, i] : most[1, i], least[0, i] : most[0, i]]
    own = int((ends - begins)[parts == i].sum())
    return bool(size[i] >= MIN_AREA * ink.size and own >= MIN_OWN_INK * np.count_nonzero(held))


def _number_parts(begins: np.ndarray, ends: np.ndarray, wide: int) -> np.ndarray:
    """For each run of ink (N,), of rows so wide, the number of its part: all runs that touch, at corners too."""
    # Of the next row those touch that end after a run begins, and begin before it ends.
    first, last = np.searchsorted(ends, begins + wide), np.searchsorted(begins, ends + wide, "right")
    counts = np.maximum(last - first, 0)
    above = np.repeat(np.arange(len(begins)), counts)
    below = np.arange(len(above)) + np.repeat(first - counts.cumsum() + counts, counts)
    next_to = begins[below] // wide == begins[above] // wide + 1
    above, below = above[next_to], below[next_to]
    part = np.arange(len(begins))
    while (part[above] != part[below]).any():
        lower = np.minimum(part[above], part[below])
        np.minimum.at(part, part[above], lower)
        np.minimum.at(part, part[below], lower)
        while (part != part[part]).any():
            part = part[part]
    return np.unique(part, return_inverse=True)[1]
