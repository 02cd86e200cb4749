"""Curves of charts: ink that hangs together, is much larger than letters, and is neither a rule nor a fill.

Shapes: Y, X of a place.
"""

from __future__ import annotations

import numpy as np

from ...images.boxes import Box
from .text_lines import RULE, long_runs, runs_of, text_ink

# Share of a place: so much lies in the box around a curve; words have less than 0.08 of the least tables.
MIN_AREA = 0.1
MIN_OWN_INK = 0.95  # share of the ink in that box: tilted or bent rules hold texts, a curve hardly any
MIN_RULE_LENGTH = 0.3  # share of a place's width or height: longer runs of ink are rules, or axes


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
