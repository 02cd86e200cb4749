"""Overlaps of boxes and intervals, without a division by a length or an area of zero, and checks of boxes."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

from ...errors import InputError
from ...images.boxes import Box

HALF_SHARE = 0.5  # the share of its area, or length, from which something belongs to what holds it: most of it is there
CUT = 0.25  # share of a line's height, or of a word's width: so far it reaches beyond a border that cuts it
MAX_COORDINATE = 2**31  # pixels: no image is as large, and lengths between such coordinates stay finite


def share(start: float, end: float, low: float, high: float) -> float:
    """The share of the interval start ... end within low ... high, 0 to 1; a point is within it (1) or not (0)."""
    if end > start:
        return max(0.0, min(end, high) - max(start, low)) / (end - start)
    return float(low <= start <= high)


def inside(box: Box, other: Box) -> float:
    """The share of the area of `box` within `other`, 0 to 1; a line counts by its length, a point by its place."""
    return share(box[0], box[2], other[0], other[2]) * share(box[1], box[3], other[1], other[3])


def shared_height(a: Box, b: Box) -> float:
    """The share of the lower box's height that is beside the other box, 0 to 1."""
    return max(share(a[1], a[3], b[1], b[3]), share(b[1], b[3], a[1], a[3]))


def bounding_box(boxes: Iterable[Box]) -> Box:
    """The smallest box around one or more boxes."""
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def groups(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The numbers from 0 to count - 1 in groups, those of a pair in the same one; by their first numbers."""
    parent = list(range(count))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    for a, b in pairs:
        parent[root(a)] = root(b)
    found: dict[int, list[int]] = {}
    for i in range(count):
        found.setdefault(root(i), []).append(i)
    return list(found.values())


def check_box(name: str, box: Any) -> Box:
    """The four numbers of a box as floats; InputError if it is none, not finite or upside down."""
    values = box.tolist() if hasattr(box, "tolist") else box  # arrays
    if not isinstance(values, list | tuple) or len(values) != 4:
        raise InputError(f"{name} is {box!r:.100}, expected four numbers (x0, y0, x1, y1)")
    for corner, value in zip(("x0", "y0", "x1", "y1"), values, strict=True):
        if isinstance(value, bool) or not isinstance(value, Real) or not abs(float(value)) <= MAX_COORDINATE:
            raise InputError(f"{name} has {corner} = {value!r:.100}, expected a finite number of pixels")
    x0, y0, x1, y1 = map(float, values)
    if x0 > x1 or y0 > y1:
        raise InputError(f"{name} is ({x0}, {y0}, {x1}, {y1}), expected (x0, y0, x1, y1) with x0 <= x1 and y0 <= y1")
    return x0, y0, x1, y1
