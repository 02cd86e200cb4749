"""Gaps between columns of text in the ink of a page, and the edges of a table moved to where its ink and lines end.

Boxes are (x0, y0, x1, y1) in pixels of the page, x to the right and y down.  Shapes: H, W of the page, h, w of a place.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...images.boxes import Box
from ...images.lines import spans
from .text_lines import MAX_SIDE, closed, letter_height, text_ink

COLUMN_GAP = 1.2  # heights of letters: the least gap between two columns; spaces between words are half of it
OPEN = 0.7  # share of the lines with text on both sides of a gap between columns: they do not cross it
LINES, FEW_LINES = 1.6, 4.0  # heights of letters: about two lines of text, and so low that hardly any table is
GRID, LEAST_GRID = 0.4, 0.15  # shares of the lines that one gap parts: in a table, and in what may just be one
MAX_MOVE = 0.1  # share of a box's width or height: how far an edge that cuts ink moves at most
LINE = 1.5  # heights of letters: it moves so far in a low box, too
MIN_GAP_SHARE, MIN_GAPS, MIN_LINES = 0.6, 2, 3  # least share of lines that a gap parts; gaps; lines
MAX_SPACE = 1.5  # times the usual space between lines, and their usual height: the most in a table


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
    ink = text_ink(page[y0 : y1 + 1 : step, x0 : x1 + 1 : step])
    high = letter_height(ink)
    return closed(ink, round(COLUMN_GAP * high)), high, step


def gaps_of(lines: np.ndarray, high: float) -> tuple[np.ndarray, np.ndarray]:
    """For each column of pixels (w,) of lines of text (h, w): if it is in a gap, and the share of lines it parts."""
    before, after = np.logical_or.accumulate(lines, 1), np.logical_or.accumulate(lines[:, ::-1], 1)[:, ::-1]
    crossed = np.count_nonzero(lines, 0)
    parted = np.count_nonzero(before & after, 0) - crossed
    gap = (parted > 0) & (parted >= LINES * high) & (parted >= OPEN * (parted + crossed))
    return gap, parted / max(1, np.count_nonzero(lines.any(1)))


def grow_to_gaps(box: Box, ink: np.ndarray) -> Box:
    """The box with each edge that cuts ink (H, W) moved outwards to the first gap in it.

    An edge stays if there is no gap within a tenth of the box's width or height, or a line of text.  Across, a
    gap is half as wide as letters are high, so that it is not one between two letters.
    """
    H, W = ink.shape
    x0, y0, x1, y1 = int(box[0]), int(box[1]), min(W, int(np.ceil(box[2]))), min(H, int(np.ceil(box[3])))
    down, across = np.asarray(ink[:, x0:x1].any(1)), np.asarray(ink[y0:y1].any(0))
    letter = letter_height(ink[y0:y1, x0:x1])
    gap = max(2, round(letter / 2))
    wide, high = (gap + int(max(MAX_MOVE * size, LINE * letter)) for size in (x1 - x0, y1 - y0))
    left, top = _steps(across[: x0 + 1][::-1], wide, gap), _steps(down[: y0 + 1][::-1], high, 1)
    right, bottom = _steps(across[x1 - 1 :], wide, gap), _steps(down[y1 - 1 :], high, 1)
    return (
        float(x0 - left) if left else box[0],
        float(y0 - top) if top else box[1],
        float(x1 + right) if right else box[2],
        float(y1 + bottom) if bottom else box[3],
    )


def _steps(line: np.ndarray, most: int, gap: int) -> int:
    """The number of pixels after the first one up to a gap, or up to the page's edge; 0 if there is none so near."""
    if not line[0]:
        return 0
    last = 0
    for begin, end in spans(line[: most + 1]):
        if begin - last > gap:
            break
        last = end
    return last - 1 if last <= most - gap + 1 or last == len(line) else 0


def extend_by_lines(page: np.ndarray, box: Box) -> Box:
    """The box with the lines above and below it that go on in its columns, on a page (H, W, 3) uint8.

    These are no farther from it than its own lines are apart, and the gaps between its columns go on through them.
    Below an empty row sums are lines of the table, too: they end where its lines end, and leave the first column empty.
    """
    x0, y0, x1, y1 = box
    below = _going_on(page[max(0, int(y0)) :, max(0, int(x0)) : int(x1) + 1], y1 - max(0, int(y0)), sums=True)
    above = _going_on(page[: int(y1) + 1, max(0, int(x0)) : int(x1) + 1][::-1], int(y1) + 1 - y0)
    return x0, y0 - above, x1, y1 + below


def _going_on(part: np.ndarray, high: float, sums: bool = False) -> float:
    """How much higher than `high` a table at the top of a part of a page (h, w, 3) is; sums: of these, too."""
    top = int(high)
    if top >= len(part) or max(part.shape) > 2 * MAX_SIDE:
        return 0.0
    part = part[: 2 * top]
    lines, letter, step = lines_of(part, (0.0, 0.0, float(part.shape[1]), float(len(part))))
    top //= step
    gaps, shares = gaps_of(lines[:top], letter)
    columns = spans(gaps & (shares >= MIN_GAP_SHARE))
    rows = spans(np.asarray(lines.any(1)))
    own, rest = [r for r in rows if r[0] < top], [r for r in rows if r[0] >= top]
    if len(columns) < MIN_GAPS or len(own) < MIN_LINES:
        return 0.0
    apart = float(np.median([b[0] - a[1] for a, b in pairwise(own)]))
    tall = float(np.median([b - a for a, b in own]))
    end = own[-1][1]
    reached = end
    for a, b in rest:
        line = np.asarray(lines[a:b].any(0))
        crossed = sum(bool(line[c:d].all()) for c, d in columns)
        parted = sum(bool(line[:c].any() and line[d:].any()) for c, d in columns) - crossed
        far = a - reached > MAX_SPACE * max(apart, 1) or 2 * parted < len(columns)
        if far and sums and len(spans(line)) > 1 and a - reached <= MAX_SPACE * apart + tall + apart:
            ends = [np.flatnonzero(lines[c:d].any(0))[-1] for c, d in own]
            seen = np.flatnonzero(line)
            far = 2 * seen[0] < sum(columns[0]) or abs(seen[-1] - np.median(ends)) > letter
        if far or b - a > MAX_SPACE * tall or crossed:
            break
        reached = b
    return float(max(0, reached - max(top, end)) * step) if reached > end else 0.0
