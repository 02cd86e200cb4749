"""Boxes of a table's parts, and how much of one lies in another; no share divides by a length or an area of zero."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

from ...errors import InputError
from ...images.boxes import Box

# What lies beyond is no pixel, and the lengths between two such might not be finite.
FARTHEST = 2**31


def share(start: float, end: float, low: float, high: float) -> float:
    """How much of the interval start ... end lies in low ... high, 0 to 1; a point lies there wholly or not at all."""
    if end > start:
        return max(0.0, min(end, high) - max(start, low)) / (end - start)
    return float(low <= start <= high)


def inside(box: Box, other: Box) -> float:
    """How much of the area of `box` lies in `other`, 0 to 1; lines and points count by their length or place."""
    return share(box[0], box[2], other[0], other[2]) * share(box[1], box[3], other[1], other[3])


def hull(boxes: Iterable[Box]) -> Box:
    """The smallest box around at least one."""
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def check_box(name: str, box: Any) -> Box:
    """The four numbers of a box as floats; InputError for what is no box, is not finite or upside down."""
    values = box.tolist() if hasattr(box, "tolist") else box  # arrays
    if not isinstance(values, list | tuple) or len(values) != 4:
        raise InputError(f"{name} is {box!r:.100}, expected four numbers (x0, y0, x1, y1)")
    for corner, value in zip(("x0", "y0", "x1", "y1"), values, strict=True):
        if isinstance(value, bool) or not isinstance(value, Real) or not abs(float(value)) <= FARTHEST:
            raise InputError(f"{name} has {corner} = {value!r:.100}, expected a finite number of pixels")
    x0, y0, x1, y1 = map(float, values)
    if x0 > x1 or y0 > y1:
        raise InputError(f"{name} is ({x0}, {y0}, {x1}, {y1}), expected (x0, y0, x1, y1) with x0 <= x1 and y0 <= y1")
    return x0, y0, x1, y1
