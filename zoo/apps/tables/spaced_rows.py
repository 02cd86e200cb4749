"""Rows whose texts have several lines, between wider spaces.

Boxes are (x0, y0, x1, y1) in pixels of the table's crop.  Shapes: Y, X of the crop.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

import numpy as np

from ...images.boxes import Detection
from ...images.lines import spans
from .boxes import bounding_box
from .structure import COLUMN, HEADER, PROJECTED_HEADER, ROW, SPANNING_CELL, intervals_of
from .text_lines import ink_without_rules, letter_height

MIN_LINE = 3  # pixels of a line of text, and lines of a table, at least
# Heights of letters: spaces between rows are so much wider, in the mean; the most within.
MIN_ROW_SPACE, MAX_LINE_SPACE = 0.5, 0.75
MAX_ROWS_PER_GROUP = 2  # rows of the network for each group: more are rows of sections
PARAGRAPH = 8  # lines of a group, in the mean: more are paragraphs of a page
MIN_SEVERAL = 0.1  # share of the groups of lines: so many have several


def with_spaced_rows(objects: Sequence[Detection], pixels: np.ndarray, threshold: float) -> list[Detection]:
    """The objects of a crop (Y, X, 3) uint8 with a row for each group of lines, if wider spaces part rows.

    They do if spaces between lines are of two kinds, and in most groups of several lines all texts begin in the first
    line and have not the same number of lines.
    """
    sure = [o for o in objects if o.score > threshold]
    columns = intervals_of([o for o in sure if o.label == COLUMN], COLUMN)
    rows = [o.box for o in sure if o.label == ROW]
    if len(columns) < 2 or not rows:
        return list(objects)
    top = max((o.box[3] for o in sure if o.label == HEADER), default=min(box[1] for box in rows))
    end = max(box[3] for box in rows)
    ink = ink_without_rules(pixels)
    edges = [max(0, int(columns[0].start))]
    for a, b in itertools.pairwise(columns):
        low, after = (min(max(0, int(v)), ink.shape[1] - 1) for v in sorted((a.end, b.start)))  # some lie outside
        edges.append(low + int(ink[:, low : after + 1].sum(0).argmin()))
    edges.append(int(columns[-1].end) + 1)
    of = [ink[:, a:b] for a, b in itertools.pairwise(edges)]
    across = spans(np.any(ink[:, edges[0] : edges[-1]], 1))
    lines = [(a, b) for a, b in across if b - a >= MIN_LINE and top < (a + b) / 2 < end]
    high = letter_height(ink)
    apart = [b[0] - a[1] for a, b in itertools.pairwise(lines)]
    if len(lines) <= MIN_LINE or (least := _two_kinds(apart, high)) is None:
        return list(objects)
    starts = [0, *(i + 1 for i, space in enumerate(apart) if space >= least), len(lines)]
    groups = [lines[a:b] for a, b in itertools.pairwise(starts)]
    body = [box for box in rows if box[1] + box[3] > 2 * top]
    if len(lines) > PARAGRAPH * len(groups) or len(body) > MAX_ROWS_PER_GROUP * len(groups):
        return list(objects)
    counts = [[_lines(part[group[0][0] : group[-1][1]]) for part in of] for group in groups]
    several = [(group, own) for group, own in zip(groups, counts, strict=True) if max(own) > 1]
    skipped = len(columns) > 2  # a heading of one line in the first column may stand beside rows
    uneven = [(group, own) for group, own in several if _are_wrapped(own[skipped and own[0] < 2 :])]
    level = sum(
        all(part[slice(*group[0])].any() or not count for part, count in zip(of, own, strict=True))
        for group, own in uneven
    )
    if 2 * level <= len(several) or len(several) < max(2, MIN_SEVERAL * len(groups)):
        return list(objects)
    borders = [(a[-1][1] + b[0][0]) / 2 for a, b in itertools.pairwise(groups)]
    borders = [lines[0][0] - least / 2, *borders, lines[-1][1] + least / 2]
    return _with_bands(objects, list(itertools.pairwise(borders)), counts, threshold)


def _are_wrapped(counts: Sequence[int]) -> bool:
    """Return True if at most half of a group's texts have as many lines as its longest: rows have one in each line."""
    texts = [count for count in counts if count]
    return len(texts) > 1 and 2 * texts.count(max(texts)) <= len(texts)


def _two_kinds(spaces: Sequence[float], high: float) -> float | None:
    """The least of the wider spaces, if there are narrow and wide ones, far apart for the height of letters.

    They are parted where both kinds vary least.
    """
    at = np.sort(np.array(spaces, float))
    parts = [(at[:i], at[i:]) for i in range(1, len(at)) if at[i - 1] < at[i]]
    if not parts:
        return None
    narrow, wide = min(parts, key=lambda of: len(of[0]) * np.var(of[0]) + len(of[1]) * np.var(of[1]))
    are_apart = np.mean(wide) - np.mean(narrow) >= MIN_ROW_SPACE * high and narrow[-1] <= MAX_LINE_SPACE * high
    return float(wide[0]) if are_apart else None


def _with_bands(
    objects: Sequence[Detection],
    bands: Sequence[tuple[float, float]],
    counts: Sequence[Sequence[int]],
    threshold: float,
) -> list[Detection]:
    """The objects with the bands that have lines of text in place of the rows, and of what goes over rows, in these."""
    rows = [o for o in objects if o.label == ROW and o.score > threshold]
    x0, _, x1, _ = bounding_box(o.box for o in rows)
    first, last = bands[0][0], bands[-1][1]
    score = statistics.mean(o.score for o in rows)
    kept = [
        o
        for o in objects
        if o.label not in (ROW, PROJECTED_HEADER, SPANNING_CELL) or not first < (o.box[1] + o.box[3]) / 2 < last
    ]
    return kept + [Detection(ROW, score, (x0, a, x1, b)) for (a, b), own in zip(bands, counts, strict=True) if any(own)]


def _lines(ink: np.ndarray) -> int:
    """The number of lines of text in a cell."""
    return sum(b - a >= MIN_LINE for a, b in spans(np.any(ink, 1))) if ink.size else 0
