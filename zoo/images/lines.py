"""Cutting a block of text into its lines, by how much ink each row of pixels holds.

Meant for one column of dark text on light paper, or light on dark, with some paper between the lines.  What it does not
see through: columns side by side, rules and images among the text, and skew.  Over the width of the text a line may
climb by less than what lies between two lines, about a degree for common print.  What is lower than a third of the
other lines, and stands alone, is taken for dirt: a row of dots, a dash.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

LEVELS = 8  # of 255: pixels that differ by less are one colour, with the noise of a scan or of a JPEG
LEAST = 0.005  # of the ink of the fullest row: rows with less are paper
FAINT = 0.08  # of the ink of a well-filled row: what has less may lie between two lines whose letters meet
SPECK = 0.35  # of a line's usual height: what is lower is a part of a line (an accent, a comma), or dirt
TALL = 1.6  # of a line's usual height: what is higher is several, whose letters meet
MARGIN = 0.25  # of a line's height: how much paper is left around it


def is_blank(image: np.ndarray) -> bool:
    """Whether an image (Y, X, 3) uint8 is of one colour."""
    flat = image.reshape(-1, image.shape[-1])
    return int((flat.max(0).astype(int) - flat.min(0)).max()) < LEVELS


def split_lines(image: np.ndarray) -> list[tuple[int, int, int, int]]:
    """The lines of an image (Y, X, 3) uint8, from the top: (x0, y0, x1, y1) of each; none where it is blank."""
    if is_blank(image):
        return []
    ink = _ink(image)
    runs = _runs(ink.sum(1))
    boxes = []
    for i, (top, bottom) in enumerate(runs):
        columns = np.flatnonzero(ink[top:bottom].any(0))
        margin = round(MARGIN * (bottom - top))
        above = (runs[i - 1][1] + top) // 2 if i else 0
        below = (bottom + runs[i + 1][0]) // 2 if i + 1 < len(runs) else len(image)
        left, right = max(0, columns[0] - margin), min(image.shape[1], columns[-1] + 1 + margin)
        boxes.append((int(left), int(max(above, top - margin)), int(right), int(min(below, bottom + margin))))
    return boxes


def _ink(image: np.ndarray) -> np.ndarray:
    """(Y, X) bool: the rarer of dark and light, parted where both are most alike in themselves (Otsu 1979)."""
    grey = (image.astype(np.uint32) @ np.array([299, 587, 114], np.uint32) // 1000).astype(np.uint8)
    counts = np.bincount(grey.reshape(-1), minlength=256).astype(np.float64)
    below, sums = counts.cumsum(), (counts * np.arange(256)).cumsum()
    above = below[-1] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (sums / below - (sums[-1] - sums) / above) ** 2
    dark = grey <= int(np.nanargmax(between))
    return dark if dark.mean() <= 0.5 else ~dark


def _runs(profile: np.ndarray) -> list[tuple[int, int]]:
    """(top, bottom) of each line, from the ink in each row of pixels (Y,)."""
    some = profile > LEAST * profile.max()
    cores = _spans(profile > FAINT * np.percentile(profile[some], 90))
    highest = max(b - a for a, b in cores)
    usual = float(np.median([b - a for a, b in cores if b - a >= SPECK * highest]))
    cores = [(a, b) for a, b in cores if b - a >= SPECK * usual]
    parts: list[tuple[int, int]] = []
    for top, bottom in _spans(some):
        inner = [(a, b) for a, b in cores if top <= a < bottom]
        # Lines whose letters meet are cut where there is least ink between them.
        cuts = [a + int(profile[a:b].argmin()) for (_, a), (b, _) in pairwise(inner)]
        ends = [top, *cuts, bottom] if bottom - top > TALL * usual else [top, bottom]
        parts += pairwise(ends)
    return _joined(parts, SPECK * usual)


def _spans(rows: np.ndarray) -> list[tuple[int, int]]:
    """(begin, end) of each stretch of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], rows, [0]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _joined(parts: list[tuple[int, int]], least: float) -> list[tuple[int, int]]:
    """What is lower than `least` goes to its nearer neighbour, if it is as near as an accent; otherwise it is dirt."""
    lines: list[tuple[int, int]] = []
    above = None  # a speck that belongs to the line below it
    for i, (a, b) in enumerate(parts):
        if b - a >= least:
            lines.append((a if above is None else above, b))
            above = None
            continue
        up = a - lines[-1][1] if lines else np.inf
        down = parts[i + 1][0] - b if i + 1 < len(parts) else np.inf
        if min(up, down) > least:
            above = None
        elif up <= down:
            lines[-1] = lines[-1][0], b
        elif above is None:
            above = a
    return lines
