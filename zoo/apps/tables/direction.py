"""Which way the text of a table runs, by its words.

Directions are degrees clockwise as the page is seen, from text that runs from left to right: 90 runs downwards, -90
(270) upwards.  Boxes are (x0, y0, x1, y1), x to the right and y down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...images.boxes import Box
from ..documents import Word

LEAST_TILT = 0.5  # degrees: a line of 1000 pixels rises by 9, less than the space between two
MOST_TILT = 10.0  # that is looked for where words do not say how they lie
FEWEST = 12  # words from which lines can be told
CLEARER = 1.3  # how much clearer the lines have to be than those of an upright page
STEP = 0.1
_UNSURE = 0.2  # |cos(2 tilt)| below which a box does not tell the sides of what is in it


def text_direction(words: Sequence[Word], usual: float = 0.0) -> float:
    """The direction of most of the text; `usual`, or a little beside it, where no word says which way it runs."""
    known = [(word.angle, len(word.text)) for word in words if word.angle is not None]
    if not known:
        return usual + _tilt([replace(word, box=turned(word.box, -quarters(usual))) for word in words])
    weights = [0, 0, 0, 0]
    for angle, length in known:
        weights[quarters(angle)] += length
    most = max(range(4), key=lambda q: weights[q])
    return 90.0 * most + _median([(tilt_of(angle), length) for angle, length in known if quarters(angle) == most])


def quarters(angle: float) -> int:
    """The quarter turn that a direction is nearest to, 0 ... 3."""
    return round(angle / 90) % 4


def tilt_of(angle: float) -> float:
    """How far a direction is from that quarter turn, -45 ... 45."""
    return angle - 90 * round(angle / 90)


def turned(box: Box, count: int) -> Box:
    """A box turned about (0, 0) by 90 degrees clockwise, `count` times."""
    for _ in range(count % 4):
        x0, y0, x1, y1 = box
        box = -y1, x0, -y0, x1
    return box


def untilted(box: Box, tilt: float) -> Box:
    """About the same centre, the rectangle that `box` is around once it is turned by `tilt` degrees, -45 ... 45."""
    cos, sin, both = math.cos(math.radians(tilt)), abs(math.sin(math.radians(tilt))), math.cos(math.radians(2 * tilt))
    width, height = box[2] - box[0], box[3] - box[1]
    if tilt and both > _UNSURE:
        inner = (width * cos - height * sin) / both, (height * cos - width * sin) / both
        # What no turned rectangle can have around it was not measured so: it stays.
        width, height = inner if min(inner) > 0 else (width, height)
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _tilt(words: Sequence[Word]) -> float:
    """At which tilt the middles of words lie on lines most clearly: their heights are seen from the side."""
    if len(words) < FEWEST:
        return 0.0
    boxes = np.array([word.box for word in words])
    x, y = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    fine = max(float(np.median(boxes[:, 3] - boxes[:, 1])) / 4, 1.0)

    def clearness(tilt: float) -> float:
        heights = y * math.cos(math.radians(tilt)) - x * math.sin(math.radians(tilt))
        places = np.round((heights - heights.min()) / fine).astype(np.int64)
        count = np.bincount(places).astype(np.float64)
        near = count[:-1] + count[1:] if len(count) > 1 else count  # wherever the limits between two places fall
        return float((near**2).sum())

    tilts = np.arange(-MOST_TILT, MOST_TILT + STEP / 2, STEP)
    found = np.array([clearness(tilt) for tilt in tilts])
    if found.max() < CLEARER * clearness(0.0):
        return 0.0
    return float(np.median(tilts[found >= 0.98 * found.max()]))


def _median(values: Sequence[tuple[float, int]]) -> float:
    """Of values with weights; 0 where it is too little to turn anything for."""
    half, below = sum(weight for _, weight in values) / 2, 0
    middle = 0.0
    for value, weight in sorted(values):
        below += weight
        if below >= half:
            middle = value
            break
    return middle if abs(middle) >= LEAST_TILT else 0.0
