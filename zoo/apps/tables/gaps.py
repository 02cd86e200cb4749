"""Gaps between columns of text in the ink of a page.

Boxes are (x0, y0, x1, y1) in pixels of the page, x to the right and y down.  Shapes: h, w of a place.
"""

from __future__ import annotations

import numpy as np

from ...images.boxes import Box
from ...images.lines import spans
from .text_lines import MAX_SIDE, closed, ink_without_dots, letter_height

COLUMN_GAP = 1.2  # heights of letters: the least gap between two columns; spaces between words are half of it
OPEN = 0.7  # share of the lines with text on both sides of a gap between columns: they do not cross it
LINES, FEW_LINES = 1.6, 4.0  # heights of letters: about two lines of text, and so low that hardly any table is
GRID, LEAST_GRID = 0.4, 0.15  # shares of the lines that one gap parts: in a table, and in what may just be one


def gap_share(page: np.ndarray, box: Box) -> float:
    """The share of the lines of text in a place of a page (H, W, 3) uint8 that a gap between columns parts, 0 to 1."""
    lines, high, _ = lines_of(page, box)
    gaps, shares = gaps_of(lines, high)
    return float(shares[gaps].max(initial=0))


def has_no_grid(page: np.ndarray, box: Box) -> bool:
    """Return True if a place of a page (H, W, 3) uint8 has ink, but hardly any lines that a gap between columns parts.

    Paragraphs, code, handwriting and photographs have none; authors' names and forms may have some.  Two lines are too
    few to tell.
    """
    lines, high, _ = lines_of(page, box)
    rows = np.asarray(lines.any(1))
    full, bands = lines.copy(), spans(rows)
    if np.count_nonzero(rows) <= (3 if len(bands) <= 2 else 2.5) * high:
        return False
    if high <= np.median([bottom - top for top, bottom in bands]):  # bars of a chart are higher than its lines
        for top, bottom in bands:
            if bottom - top <= FEW_LINES * high:  # a dash is as high as its line
                full[top:bottom] = full[top:bottom].any(0)
    found = (gaps_of(some, high) for some in (lines, full))
    return max(float(shares[gaps].max(initial=0)) for gaps, shares in found) < LEAST_GRID


def lines_of(page: np.ndarray, box: Box) -> tuple[np.ndarray, float, int]:
    """The text of a place (h, w) bool, with gaps between words filled, the height of its letters, and the step.

    Of a large place only each `step`-th pixel is looked at.
    """
    x0, y0, x1, y1 = (max(0, int(v)) for v in box)
    step = 1 + max(y1 - y0, x1 - x0) // MAX_SIDE
    ink = ink_without_dots(page[y0 : y1 + 1 : step, x0 : x1 + 1 : step])
    high = letter_height(ink)
    return closed(ink, round(COLUMN_GAP * high)), high, step


def gaps_of(lines: np.ndarray, high: float) -> tuple[np.ndarray, np.ndarray]:
    """For each column of pixels (w,) of lines of text (h, w): if it is in a gap, and the share of lines it parts."""
    before, after = np.logical_or.accumulate(lines, 1), np.logical_or.accumulate(lines[:, ::-1], 1)[:, ::-1]
    crossed = np.count_nonzero(lines, 0)
    parted = np.count_nonzero(before & after, 0) - crossed
    gap = (parted > 0) & (parted >= LINES * high) & (parted >= OPEN * (parted + crossed))
    return gap, parted / max(1, np.count_nonzero(lines.any(1)))
