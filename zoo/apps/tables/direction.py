"""The direction of the text of a table, from its words.

Directions are degrees clockwise as the page is seen, from text that runs from left to right: 90 runs downwards, -90
(270) upwards.  Boxes are (x0, y0, x1, y1), x to the right and y down.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...images.boxes import Box
from ..documents import Word

MIN_TILT = 0.5  # degrees; at less, a line of 1000 pixels rises by under 9, less than the space between two lines
MAX_TILT = 10.0  # degrees that are searched where words have no angle; more is no scanner's tilt
TILT_STEP = 0.1  # degrees between the tilts that are tried
MIN_WORDS = 12  # with fewer words, lines cannot be recognised
MIN_GAIN = 1.3  # times as clear as untilted: lines at a tilt have to be, so that an upright page is never turned
MIN_COSINE = 0.2  # share of twice the tilt: nearer to 45 degrees, a box does not determine the rectangle inside it


def text_direction(words: Sequence[Word], usual: float = 0.0) -> float:
    """The direction of most of the text; without a word that has an angle, `usual` and the tilt of the lines."""
    known = [(word.angle, len(word.text)) for word in words if word.angle is not None]
    if not known:
        return usual + _tilt([replace(word, box=turn_box(word.box, -quarters(usual))) for word in words])
    weights = [0, 0, 0, 0]
    for angle, length in known:
        weights[quarters(angle)] += length
    most = max(range(4), key=lambda q: weights[q])
    return 90.0 * most + _median([(tilt_of(angle), length) for angle, length in known if quarters(angle) == most])


def quarters(angle: float) -> int:
    """The quarter turn nearest to a direction, 0 ... 3."""
    return round(angle / 90) % 4


def tilt_of(angle: float) -> float:
    """The difference between a direction and its nearest quarter turn, -45 ... 45 degrees."""
    return angle - 90 * round(angle / 90)


def turn_box(box: Box, count: int) -> Box:
    """A box turned about (0, 0) by 90 degrees clockwise, `count` times."""
    for _ in range(count % 4):
        x0, y0, x1, y1 = box
        box = -y1, x0, -y0, x1
    return box


def untilt_box(box: Box, tilt: float) -> Box:
    """The upright rectangle, with the same centre, whose box is `box` once it is turned by `tilt` (-45 ... 45)."""
    cos, sin, both = math.cos(math.radians(tilt)), abs(math.sin(math.radians(tilt))), math.cos(math.radians(2 * tilt))
    width, height = box[2] - box[0], box[3] - box[1]
    if tilt and both > MIN_COSINE:
        inner = (width * cos - height * sin) / both, (height * cos - width * sin) / both
        # A box that no turned rectangle can have was not measured that way, and stays.
        width, height = inner if min(inner) > 0 else (width, height)
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def turned_size(size: tuple[int, int], angle: float) -> tuple[int, int]:
    """(W, H) of a picture of `size` (W, H) that is turned by -`angle`, enlarged until its corners fit."""
    W, H = size if quarters(angle) % 2 == 0 else size[::-1]
    cos, sin = math.cos(math.radians(tilt_of(angle))), abs(math.sin(math.radians(tilt_of(angle))))
    return math.ceil(W * cos + H * sin), math.ceil(W * sin + H * cos)


def upright_box(box: Box, angle: float, size: tuple[int, int]) -> Box:
    """Where a box of a page of `size` (W, H) is once the page is turned about its middle by -`angle`.

    The box is the one around a rectangle that is upright then, as boxes of a table's cells are.
    """
    wide, high = size if quarters(angle) % 2 == 0 else size[::-1]
    x0, y0, x1, y1 = turn_box(untilt_box(box, tilt_of(angle)), -quarters(angle))
    x, y = (box[0] + box[2] - size[0]) / 2, (box[1] + box[3] - size[1]) / 2
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    x, y = wide / 2 + x * cos + y * sin, high / 2 + y * cos - x * sin
    return x - (x1 - x0) / 2, y - (y1 - y0) / 2, x + (x1 - x0) / 2, y + (y1 - y0) / 2


def corners_of(box: Box, angle: float) -> list[tuple[float, float]]:
    """The corners of the rectangle turned by `angle` that a box is around, the upper left one of its text first."""
    tilt = tilt_of(angle)
    x0, y0, x1, y1 = untilt_box(box, tilt)
    x, y, cos, sin = (x0 + x1) / 2, (y0 + y1) / 2, math.cos(math.radians(tilt)), math.sin(math.radians(tilt))
    found = [(a - x, b - y) for a, b in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))]
    found = [(x + a * cos - b * sin, y + a * sin + b * cos) for a, b in found]
    return found[(q := quarters(angle)) :] + found[:q]


def _tilt(words: Sequence[Word]) -> float:
    """The tilt at which the middles of words form the clearest lines; each tilt gets a histogram of their heights."""
    if len(words) < MIN_WORDS:
        return 0.0
    boxes = np.array([word.box for word in words])
    x, y = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    bin_height = max(float(np.median(boxes[:, 3] - boxes[:, 1])) / 4, 1.0)

    def clearness(tilt: float) -> float:
        heights = y * math.cos(math.radians(tilt)) - x * math.sin(math.radians(tilt))
        places = np.round((heights - heights.min()) / bin_height).astype(np.int64)
        count = np.bincount(places).astype(np.float64)
        near = count[:-1] + count[1:] if len(count) > 1 else count  # two neighbouring bins, wherever the line falls
        return float((near**2).sum())

    tilts = np.arange(-MAX_TILT, MAX_TILT + TILT_STEP / 2, TILT_STEP)
    found = np.array([clearness(tilt) for tilt in tilts])
    if found.max() < MIN_GAIN * clearness(0.0):
        return 0.0
    return float(np.median(tilts[found >= 0.98 * found.max()]))


def _median(values: Sequence[tuple[float, int]]) -> float:
    """The median of values with weights; 0 if it is too small a tilt to turn anything for."""
    values, half = sorted(values), sum(weight for _, weight in values) / 2
    below = itertools.accumulate(weight for _, weight in values)
    middle = next((value for (value, _), weight in zip(values, below, strict=True) if weight >= half), 0.0)
    return middle if abs(middle) >= MIN_TILT else 0.0
