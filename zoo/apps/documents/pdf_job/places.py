"""Places on a page of a PDF: matrices, clips, and the way from points to pixels."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

from pypdfium2 import raw

Box = tuple[float, float, float, float]
Matrix = tuple[float, float, float, float, float, float]  # PDF's: x' = a x + c y + e, y' = b x + d y + f
Axes = tuple[tuple[float, float], tuple[float, float]]

WHOLE_PLANE = (-math.inf, -math.inf, math.inf, math.inf)
MAX_DEPTH = 8  # clips in clips, and forms in forms
MAX_CLIP = 24  # points of a clip that is a box


def to_pixels(page: Any, size: tuple[int, int]) -> tuple[Callable[[Box], Box], Axes]:
    """A function from a box in points to one in pixels, and the directions of the page's axes on the image.

    It applies the page's crop box and rotation.
    """
    H, W = size
    fine = 1 << 10  # steps a pixel, since PDFium returns whole numbers

    def device(x: float, y: float) -> tuple[float, float]:
        px, py = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(page, 0, 0, W * fine, H * fine, 0, x, y, px, py)
        return px.value / fine, py.value / fine

    x, y = device(0, 0)
    (ax, ay), (bx, by) = (
        ((px - x) / 1000, (py - y) / 1000) for px, py in (device(1000, 0), device(0, 1000))
    )  # it is affine

    def to_pixels(box: Box) -> Box:
        (x0, y0), (x1, y1) = ((px * ax + py * bx + x, px * ay + py * by + y) for px, py in (box[:2], box[2:]))
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)

    return to_pixels, ((ax, ay), (bx, by))


def clip_of(one: Any, matrix: Matrix) -> tuple[float, ...]:
    """The box around what an object's clip paths leave of it."""
    clip, x, y = raw.FPDFPageObj_GetClipPath(one), ctypes.c_float(), ctypes.c_float()
    box = WHOLE_PLANE
    for i in range(min(raw.FPDFClipPath_CountPaths(clip), MAX_DEPTH)):
        points = []
        for k in range(count := raw.FPDFClipPath_CountPathSegments(clip, i)):
            if count > MAX_CLIP:
                break
            raw.FPDFPathSegment_GetPoint(raw.FPDFClipPath_GetPathSegment(clip, i, k), x, y)
            points.append(at(matrix, x.value, y.value))
        if points:
            (x0, y0), (x1, y1) = map(min, zip(*points, strict=True)), map(max, zip(*points, strict=True))
            box = max(x0, box[0]), max(y0, box[1]), min(x1, box[2]), min(y1, box[3])
    return box


def matrix_of(one: Any) -> Matrix:
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(one, matrix)
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def inverse(matrix: Matrix) -> Matrix | None:
    a, b, c, d, e, f = matrix
    if not (area := a * d - b * c):
        return None
    turn = d / area, -b / area, -c / area, a / area
    return *turn, -(e * turn[0] + f * turn[2]), -(e * turn[1] + f * turn[3])


def times(first: Matrix, then: Matrix) -> Matrix:
    turn = (*then[:4], 0.0, 0.0)
    return *at(turn, *first[:2]), *at(turn, *first[2:4]), *at(then, *first[4:])


def at(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f
