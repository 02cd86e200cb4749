"""The lines that are drawn on a page of a PDF, and the sides of its boxes."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

from pypdfium2 import raw

from .places import MAX_DEPTH, Matrix, at, clip_of, matrix_of, times, to_pixels

MAX_OBJECTS = 100_000  # objects of a page that are looked at for lines, those inside of forms too
MAX_POINTS = 300_000  # points of paths
MAX_EDGES = 60_000  # lines and boxes: a full table of 100 x 30 cells with a box for each has 12,000
MAX_LINE_WIDTH = 3.0  # points: a box that is no wider is a line
MIN_DASH_SHARE = 0.3  # the share of a dashed line that is drawn, at least

Edge = tuple[float, float, float, float, float, float]  # x0, y0, x1, y1, width, the share that is drawn


def edges(page: Any, size: tuple[int, int]) -> list[Edge]:
    """The upright lines and sides of boxes of a page, in pixels, whether they are seen or not."""
    in_pixels, along = to_pixels(page, size)
    scale = max(map(abs, along[0] + along[1]))
    listed = dict.fromkeys(itertools.islice(_edges(page), MAX_EDGES))
    boxes = (
        (in_pixels((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))), width * scale, share)
        for x0, y0, x1, y1, width, share in listed
    )
    return [
        (round(x0, 2), round(y0, 2), round(x1, 2), round(y1, 2), round(width, 2), share)
        for (x0, y0, x1, y1), width, share in boxes
        if all(map(math.isfinite, (x0, y0, x1, y1)))
    ]


def _edges(page: Any) -> Iterator[Edge]:
    """Lines (x0, y0, x1, y1, width, share that is drawn) in points."""
    width, x, y = ctypes.c_float(), ctypes.c_float(), ctypes.c_float()
    mode, stroked = ctypes.c_int(), ctypes.c_int()
    left = MAX_POINTS
    objects = _objects(raw.FPDFPage_CountObjects(page), lambda i: raw.FPDFPage_GetObject(page, i))
    for one, matrix in itertools.islice(objects, MAX_OBJECTS):
        if one is None or not raw.FPDFPath_GetDrawMode(one, mode, stroked) or not (mode.value or stroked.value):
            continue
        own = times(matrix_of(one), matrix)
        wide, share = 0.0, 1.0
        if stroked.value:
            if raw.FPDFPageObj_GetStrokeWidth(one, width):
                wide = width.value * max(abs(own[0]), abs(own[1]))
            share = MIN_DASH_SHARE if raw.FPDFPageObj_GetDashCount(one) > 0 else 1.0
        clip = None if stroked.value else clip_of(one, matrix)
        points: list[tuple[float, float]] = []
        count = min(raw.FPDFPath_CountSegments(one), left)
        left -= count
        for i in range(count + 1):
            segment = raw.FPDFPath_GetPathSegment(one, i) if i < count else None
            begins = segment is None or raw.FPDFPathSegment_GetType(segment) == raw.FPDF_SEGMENT_MOVETO
            if begins:
                yield from _sides(points, wide, share, bool(mode.value), clip)
                points = []
            if segment is not None:
                raw.FPDFPathSegment_GetPoint(segment, x, y)
                points.append(at(own, x.value, y.value))
                if raw.FPDFPathSegment_GetClose(segment):
                    points.append(points[0])


def _sides(
    points: list[tuple[float, float]], wide: float, share: float, filled: bool, clip: tuple[float, ...] | None
) -> Iterator[Edge]:
    """The upright sides of a polygon in points; of a thin one its middle line."""
    if len(points) < 2:
        return
    if clip is not None:
        points = [(min(max(x, clip[0]), clip[2]), min(max(y, clip[1]), clip[3])) for x, y in points]
    x0, y0 = map(min, zip(*points, strict=True))
    x1, y1 = map(max, zip(*points, strict=True))
    flat = min(x1 - x0, y1 - y0)
    if flat <= MAX_LINE_WIDTH and wide <= MAX_LINE_WIDTH:
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        yield (x0, y, x1, y, flat + wide, share) if x1 - x0 >= y1 - y0 else (x, y0, x, y1, flat + wide, share)
        return
    for (a, b), (c, d) in itertools.pairwise([*points, points[0]] if filled else points):
        if not min(abs(a - c), abs(b - d)) <= 0.5 < max(abs(a - c), abs(b - d)):
            continue
        if wide <= MAX_LINE_WIDTH:
            yield a, b, c, d, wide, share
        else:  # a line as wide as a box
            x, y = (0.0, wide / 2) if abs(b - d) <= 0.5 else (wide / 2, 0.0)
            yield a - x, b - y, c - x, d - y, 0.0, share
            yield a + x, b + y, c + x, d + y, 0.0, share


def _objects(
    count: int, get: Callable[[int], Any], matrix: Matrix = (1, 0, 0, 1, 0, 0), depth: int = 0
) -> Iterator[tuple[Any, Matrix]]:
    """The paths of a page or form with the form's matrix, those of forms inside too; None for other objects."""
    for i in range(count):
        one = get(i)
        kind = raw.FPDFPageObj_GetType(one)
        yield (one if kind == raw.FPDF_PAGEOBJ_PATH else None), matrix
        if kind == raw.FPDF_PAGEOBJ_FORM and depth < MAX_DEPTH:
            inner = times(matrix_of(one), matrix)
            parts = raw.FPDFFormObj_CountObjects(one)
            yield from _objects(parts, lambda k, form=one: raw.FPDFFormObj_GetObject(form, k), inner, depth + 1)
