"""Columns that end at gaps in the text: the network says which there are, and the text where they are.

Boxes are (x0, y0, x1, y1) in pixels of a table's crop.  Shapes: L lines of text, X of the crop.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np

from ...images.boxes import Box, Detection
from ...images.lines import spans
from .boxes import HALF_SHARE, bounding_box, share
from .structure import COLUMN, ROW, intervals_of
from .text_lines import MIN_GUTTER, blocks_of

# Share of the lines with text on both sides of a gap: so many may cross it, as headings do; so many more of all lines
# may cross a border that stays where the network has it.
MAX_CROSSED = 0.2
CUT = 0.3  # share of the lines: so many more of them a border crosses if it is moved
MIN_LINES, MIN_SHARE = 2, 0.25  # lines with text of one column on both sides of a gap in it, and their share of all
SUFFICIENT_LINES = 4  # lines that are enough if they have the same share of those with text in the column


def with_gaps(objects: Sequence[Detection], lines: Sequence[Sequence[Box]], threshold: float) -> list[Detection]:
    """The objects with columns that end where fewest words cross, and are split at gaps that run down the table.

    lines: the words of each line of text, from `text_lines`.
    """
    sure = [o for o in objects if o.score > threshold and o.label in (ROW, COLUMN)]
    columns = intervals_of([o for o in sure if o.label == COLUMN], COLUMN)
    if not columns:
        return list(objects)
    _, top, _, bottom = bounding_box(o.box for o in sure)
    heights = [b[3] - b[1] for line in lines for b in line]
    high = statistics.median(heights) if heights else 0.0
    left, right = columns[0].start - high, columns[-1].end + high
    lines = [
        own
        for line in lines
        if (own := [b for b in line if share(b[1], b[3], top, bottom) >= HALF_SHARE and left < b[2] and b[0] < right])
    ]
    if len(lines) < MIN_LINES:
        return list(objects)
    left = min(columns[0].start, *(b[0] for line in lines for b in line))
    right = max(columns[-1].end, *(b[2] for line in lines for b in line))
    wide = math.ceil(right) + 1
    blocks = [blocks_of(line) for line in lines]
    inked = _ink_of_words(blocks, wide)
    crossed = _ink_of_words(lines, wide).sum(0) + inked.sum(0)  # a space is no gap, if there is one
    parted = np.logical_or.accumulate(inked, 1) & np.logical_or.accumulate(inked[:, ::-1], 1)[:, ::-1] & ~inked
    free = inked.sum(0) <= MAX_CROSSED * parted.sum(0)
    placed = np.array([(i, x0, x1) for i, line in enumerate(blocks) for x0, _, x1, _ in line])
    edges = [left]
    for a, b in itertools.pairwise(columns):
        first, last = sorted((a.end, b.start))
        at = (first + last) / 2
        gap = _range_with_few_crossings(crossed, max(0, int(first)), math.ceil(last) + 1, at, MAX_CROSSED * len(lines))
        far = _range_with_few_crossings(crossed, max(0, int(a.middle)), math.ceil(b.middle), at)
        if crossed[gap[0] : gap[1]].min() - crossed[far[0]] >= CUT * len(lines):
            gap = far
        elif a.end > b.start:  # one of them may be no column
            gap = int(b.start), math.ceil(a.end)
        edges += [min(max(edge, gap[0]), gap[1]) for edge in (a.end, b.start)]
    edges.append(right)
    found = [o for o in objects if o.label != COLUMN or o.score <= threshold]
    middles = placed[:, 1:].mean(1)
    for column, start, end in zip(columns, edges[::2], edges[1::2], strict=True):
        own = placed[(start <= middles) & (middles < end)]
        gaps = (
            _range_with_few_crossings(crossed, a, b, (a + b) / 2)
            for a, b in spans(free)
            if start < b and a < end and b - a >= MIN_GUTTER * high
        )
        cuts = [gap for gap in gaps if start < sum(gap) / 2 < end and _is_parted(own, sum(gap) / 2, len(lines))]
        parts = [start, *itertools.chain(*cuts), end]
        found += [
            Detection(COLUMN, column.score or 0.0, (float(a), top, float(b), bottom))
            for a, b in zip(parts[::2], parts[1::2], strict=True)
            if a < b
        ]
    return found


def _ink_of_words(lines: Sequence[Sequence[Box]], width: int) -> np.ndarray:
    """(L, X) bool: where the words of each line are."""
    inked = np.zeros((len(lines), width), bool)
    for line, row in zip(lines, inked, strict=True):
        for x0, _, x1, _ in line:
            row[max(0, int(x0)) : math.ceil(x1)] = True
    return inked


def _range_with_few_crossings(
    crossed: np.ndarray, start: int, end: int, at: float, more: float = 0.0
) -> tuple[int, int]:
    """The range of pixels that fewest words cross, or not many more, the nearest to a place."""
    part = crossed[start : max(end, start + 1)]
    runs = [(start + a, start + b) for a, b in spans(part <= part.min() + more)]
    return min(runs, key=lambda run: max(run[0] - at, at - run[1]))


def _is_parted(blocks: np.ndarray, x: float, lines: int) -> bool:
    """Return True if enough of the lines with blocks (line, start, end) of a column have some on both sides of x."""
    left, right = (np.unique(blocks[side, 0]) for side in (blocks[:, 2] <= x, blocks[:, 1] >= x))
    both = len(np.intersect1d(left, right))
    share = min(MIN_SHARE * lines, max(SUFFICIENT_LINES, MIN_SHARE * len(np.unique(blocks[:, 0]))))
    return both >= max(MIN_LINES, share, HALF_SHARE * min(len(left), len(right)))
