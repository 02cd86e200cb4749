"""Cutting an image of a block of text into its lines, by the ink in each row of pixels.

Meant for one column of dark text on light paper, or light on dark, with some paper between the lines.  What it does not
see through: columns side by side, rules and images among the text, and skew.  Over the width of the text a line may
climb by less than the gap between two lines, about a degree for common print.  What is lower than a third of the
other lines, and stands alone, is taken for dirt: a row of dots, a dash.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

LEVELS = 8  # pixels that differ by fewer of 255 are one colour, with the noise of a scan or of a JPEG
MIN_ROW_INK = 0.005  # the fullest row's share of ink: rows with less are paper
MAX_GAP_INK = 0.08  # a well-filled row's share of ink: rows with less may be between two lines whose letters meet
MIN_TEXT_HEIGHT = 0.35  # a line's usual heights: what is lower is a part of a line (an accent, a comma), or dirt
MAX_LINE_HEIGHT = 1.6  # a line's usual heights: what is higher is several, whose letters meet
MIN_WORD_GAP = 0.2  # heights of a line's ink between two words
MAX_PARTS = 16  # a line's parts: what is wider yet is no line
MAX_CUT_SHIFT = 0.4  # widths of a part by which a line is cut away from its place
MARGIN = 0.25  # heights of a line: the paper that is left around it
NEAR_EDGE = 0.125  # heights of a line's image: what is higher or lower may belong to another line


def is_blank(image: np.ndarray) -> bool:
    """Return True if an image (Y, X, 3) uint8 is of one colour."""
    most, least = image.max(0).max(0).astype(int), image.min(0).min(0)
    return int((most - least).max()) < LEVELS


def grey_of(image: np.ndarray, dtype: type[np.floating[Any]] = np.float64) -> np.ndarray:
    """The mean (Y, X) of the channels of an image (Y, X, 3) uint8, ten times as fast as NumPy's over a short axis."""
    sums = image[..., 0].astype(np.uint16)
    for channel in (1, 2):
        sums += image[..., channel]
    return np.true_divide(sums, 3, dtype=dtype)


def split_lines(image: np.ndarray) -> list[tuple[int, int, int, int]]:
    """The lines of an image (Y, X, 3) uint8, from the top: (x0, y0, x1, y1) of each; none where it is blank."""
    return [] if is_blank(image) else split_ink(_ink(image))


def split_ink(ink: np.ndarray) -> list[tuple[int, int, int, int]]:
    """The lines of some ink (Y, X) bool, as those of an image."""
    runs = _runs(ink.sum(1))
    boxes = []
    for i, (top, bottom) in enumerate(runs):
        columns = np.flatnonzero(ink[top:bottom].any(0))
        margin = round(MARGIN * (bottom - top))
        above = (runs[i - 1][1] + top) // 2 if i else 0
        below = (bottom + runs[i + 1][0]) // 2 if i + 1 < len(runs) else len(ink)
        left, right = max(0, columns[0] - margin), min(ink.shape[1], columns[-1] + 1 + margin)
        boxes.append((int(left), int(max(above, top - margin)), int(right), int(min(below, bottom + margin))))
    return boxes


def split_words(image: np.ndarray, widest: float) -> list[tuple[int, int]]:
    """Parts (x0, x1) of the image of a line (Y, X, 3) uint8, from the left, cut between words; x1 begins the next.

    They are as few, and as alike in width, as let none be wider than `widest` times the height: each cut goes to the
    widest gap near its place.  Where there is none between words, parts stay together.
    """
    high, wide = image.shape[:2]
    count = min(math.ceil(wide / (widest * high)), MAX_PARTS)
    if count < 2 or is_blank(image):
        return [(0, wide)]
    ink = _ink(image)
    rows = np.flatnonzero(ink.any(1))
    gaps = [(a, b) for a, b in spans(np.logical_not(ink.any(0))) if b - a >= MIN_WORD_GAP * (rows[-1] + 1 - rows[0])]
    cuts = [0]
    for k in range(1, count):
        at, near = wide * k / count, MAX_CUT_SHIFT * wide / count
        middles = [(b - a, -abs((a + b) / 2 - at), (a + b) // 2) for a, b in gaps if abs((a + b) / 2 - at) <= near]
        if middles:
            cuts.append(max(middles)[-1])
    return list(pairwise([*cuts, wide]))


def inked_columns(image: np.ndarray) -> np.ndarray:
    """The columns (X,) bool of the image of a line (Y, X, 3) uint8 that have ink away from its upper and lower edge."""
    if is_blank(image):
        return np.zeros(image.shape[1], bool)
    margin = int(NEAR_EDGE * len(image))
    return np.any(_ink(image)[margin : len(image) - margin], 0)


def stretch(image: np.ndarray, factor: float) -> np.ndarray:
    """The image (Y, X, 3) uint8 made wider by a factor."""
    from PIL import Image

    high, wide = image.shape[:2]
    return np.asarray(Image.fromarray(image).resize((round(wide * factor), high), Image.Resampling.BICUBIC))


def resample_views(image: np.ndarray, height: int) -> list[np.ndarray]:
    """The image (Y, X, 3) uint8 of a low line, as it might have been drawn or enlarged otherwise.

    That is half a pixel lower, with a row of paper above or below, and as high as `height` by a smoother filter.
    """
    from PIL import Image

    high, wide = image.shape[:2]
    paper = np.median(np.concatenate([image[:1], image[-1:]]), (0, 1)).round().astype(np.uint8)
    row = np.broadcast_to(paper, (1, wide, 3))
    above, below = np.concatenate([row, image]), np.concatenate([image, row])
    halves = above.astype(np.uint16) + below  # two rows for each, of which it is the mean
    size = max(1, round(wide * height / high)), height
    smooth = np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BICUBIC))
    return [(halves // 2).astype(np.uint8), above, below, smooth]


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
    some = profile > MIN_ROW_INK * profile.max()
    cores = spans(profile > MAX_GAP_INK * np.percentile(profile[some], 90))
    highest = max(b - a for a, b in cores)
    usual = float(np.median([b - a for a, b in cores if b - a >= MIN_TEXT_HEIGHT * highest]))
    cores = [(a, b) for a, b in cores if b - a >= MIN_TEXT_HEIGHT * usual]
    parts: list[tuple[int, int]] = []
    for top, bottom in spans(some):
        inner = [(a, b) for a, b in cores if top <= a < bottom]
        # Lines whose letters meet are cut where there is least ink between them.
        cuts = [a + int(profile[a:b].argmin()) for (_, a), (b, _) in pairwise(inner)]
        ends = [top, *cuts, bottom] if bottom - top > MAX_LINE_HEIGHT * usual else [top, bottom]
        parts += pairwise(ends)
    return _join_parts(parts, MIN_TEXT_HEIGHT * usual)


def spans(rows: np.ndarray) -> list[tuple[int, int]]:
    """(begin, end) of each stretch of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], rows, [0]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _join_parts(parts: list[tuple[int, int]], least: float) -> list[tuple[int, int]]:
    """Join parts lower than `least` to a neighbour that is as near as an accent; drop the others as dirt."""
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
