"""Points and boxes of objects, from a user's arguments to checked arrays.

Shapes: H and W height and width of the image; S points of an object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, quantity
from .arguments import as_list

MAX_OBJECTS = 4096  # in an image and a call


class Prompt(NamedTuple):
    """The points and the box of an object, checked."""

    object: int
    points: np.ndarray | None  # (S, 2) float64
    labels: np.ndarray | None  # (S,)
    box: np.ndarray | None  # (4,) float64


def read_prompts(size: tuple[int, int], points: Any, point_labels: Any, boxes: Any) -> list[Prompt]:
    """The prompts of an image of a size (H, W), object by object; InputError for what is none, or outside of it."""
    (H, W), corners = size, None
    if points is None and boxes is None:
        raise InputError("points and boxes are None: give one of the two, or both")
    if boxes is not None:
        corners = number_rows(split_rows(boxes, "boxes", False), "boxes", 4)
        x0, y0, x1, y1 = corners.T
        for bad in np.flatnonzero(~((x0 >= 0) & (y0 >= 0) & (x0 < x1) & (y0 < y1) & (x1 <= W) & (y1 <= H)))[:1]:
            where = f"expected left < right and top < bottom within the image of {W} x {H} pixels"
            raise InputError(f": box {bad} is {_text(corners[bad])}, {where}", argument="boxes")
    groups: list[np.ndarray | None] = [None] * (0 if corners is None else len(corners))
    if points is not None:
        groups = [number_rows(one, "points", 2) for one in split_rows(points, "points", True)]
        for x, y in np.concatenate(groups).tolist():  # type: ignore[arg-type]
            if not (0 <= x < W and 0 <= y < H):
                problem = f": point ({x:g}, {y:g}) is outside of the image of {W} x {H} pixels"
                raise InputError(problem, argument="points")
    if corners is not None and len(groups) != len(corners):
        counts = f"points of {quantity(len(groups), 'object')} and {len(corners)} boxes"
        raise InputError(f": {counts}, expected a box for each object", argument="boxes")
    if len(groups) > MAX_OBJECTS:
        raise InputError(f": {len(groups)} objects, expected at most {MAX_OBJECTS} in a call", argument="points")
    kinds = _labels(point_labels, groups)
    rows = [None] * len(groups) if corners is None else list(corners)
    return [Prompt(i, *one) for i, one in enumerate(zip(groups, kinds, rows, strict=True))]


def for_each_image(name: str, value: Any, single: bool, count: int) -> list[Any]:
    """What an argument says of each image."""
    if single or value is None:
        return [value] * count
    found = as_list(value, name)
    if isinstance(value, str) or len(found) != count:
        raise InputError(f"{name}: {len(found)} for {count} images, expected a list with one for each", argument=name)
    return found


def split_rows(value: Any, name: str, has_objects: bool) -> list[Any]:
    """The rows of numbers in a text, a list or an array; has_objects: a list of these for each object."""
    if isinstance(value, str):
        try:
            objects = [[[float(n) for n in row.split(",")] for row in one.split()] for one in value.split(";")]
        except ValueError:
            form = "x,y x,y" if has_objects else "left,top,right,bottom"
            raise InputError(f"is {value!r:.100}, expected numbers such as {form!r}", argument=name) from None
        return objects if has_objects else [row for one in objects for row in one]
    found = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(found, list | tuple) or not len(found):
        raise InputError(f"is {value!r:.100}, expected a list of rows of numbers", argument=name)
    is_nested = has_objects and isinstance(found[0], list | tuple | np.ndarray) and len(found[0])
    return list(found) if not has_objects or (is_nested and np.ndim(found[0][0])) else [found]


def number_rows(value: Any, name: str, width: int) -> np.ndarray:
    """Rows of numbers (n, width), at least one."""
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.zeros((0, 0))
    if found.ndim != 2 or found.shape[1] != width or not len(found) or not np.isfinite(found).all():
        kind = "[x, y]" if width == 2 else "[left, top, right, bottom]"
        raise InputError(f"has {value!r:.100}, expected a list of {kind}", argument=name)
    return found


def _labels(value: Any, groups: Sequence[np.ndarray | None]) -> list[np.ndarray | None]:
    """The labels (S,) of each object's points."""
    if value is None or groups[0] is None:
        if value is not None:
            raise InputError("is given without points", argument="point_labels")
        return [None if one is None else np.ones(len(one)) for one in groups]
    if isinstance(value, str):
        value = [one.replace(",", " ").split() for one in value.split(";")]
    found: Any = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(found, list | tuple) and len(found) and not isinstance(found[0], list | tuple | np.ndarray):
        found = [found]
    counts = [len(one) for one in groups if one is not None]
    try:
        rows = [np.asarray(one, np.float64) for one in found]
    except (TypeError, ValueError):
        rows = []
    if [row.shape for row in rows] != [(n,) for n in counts] or not all(np.isin(row, (0, 1)).all() for row in rows):
        raise InputError(f"is {value!r:.100}, expected 1 or 0 for each of {counts} points", argument="point_labels")
    return [*rows]


def _text(numbers: np.ndarray) -> str:
    return ", ".join(f"{n:g}" for n in numbers)
