"""Rows between rules that go across a table, whose texts have several lines.

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
from .side_by_side import rules_across
from .structure import COLUMN, HEADER, PROJECTED, ROW, SPANNING, intervals_of
from .text_lines import ink_without_rules

LEAST = 3  # bands between such rules, at least, and pixels of a line of text


def with_ruled_rows(objects: Sequence[Detection], pixels: np.ndarray, threshold: float) -> list[Detection]:
    """The objects of a crop (Y, X, 3) uint8 with a row for each band between rules, if these part rows.

    They do if, in most bands with texts of several lines, these have not the same number of lines in all columns but
    the first, as the rows of a group have.
    """
    sure = [o for o in objects if o.score > threshold]
    columns = intervals_of([o for o in sure if o.label == COLUMN], COLUMN)
    rows = [o.box for o in sure if o.label == ROW]
    if len(columns) < LEAST or not rows:
        return list(objects)
    x0, y0, x1, y1 = bounding_box(rows)
    place = columns[0].start, y0, columns[-1].end, y1 + (y1 - y0) / 10  # the last rule is below the last row
    header = max((o.box[3] for o in sure if o.label == HEADER), default=0.0)
    bands = [(a, b) for a, b in itertools.pairwise(rules_across(pixels, place)) if (a + b) / 2 > header]
    if len(bands) < LEAST:
        return list(objects)
    ink = ink_without_rules(pixels)
    counts = [
        [_lines(ink[int(a) + 1 : int(b), max(0, int(c.start)) : int(c.end) + 1]) for c in columns] for a, b in bands
    ]
    several = [own[1:] for own in counts if max(own[1:]) > 1]
    uneven = sum(len({count for count in own if count}) > 1 for own in several)
    if sum(any(own) for own in counts) < LEAST or 2 * uneven < max(LEAST, len(several)):
        return list(objects)
    first, last = bands[0][0], bands[-1][1]
    score = statistics.mean(o.score for o in sure if o.label == ROW)
    kept = [
        o for o in objects if o.label not in (ROW, PROJECTED, SPANNING) or not first < (o.box[1] + o.box[3]) / 2 < last
    ]
    return kept + [Detection(ROW, score, (x0, a, x1, b)) for (a, b), own in zip(bands, counts, strict=True) if any(own)]


def _lines(ink: np.ndarray) -> int:
    """The number of lines of text in a cell."""
    return sum(b - a >= LEAST for a, b in spans(np.any(ink, 1))) if ink.size else 0
