"""Crops of a page, turned upright, and the maps between boxes of a crop and of the page.

Shapes: H, W of the page, Y, X of the crop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import InputError
from ...images import MAX_PIXELS
from ...images.boxes import Box
from ..documents import Word
from .boxes import HALF_SHARE, bounding_box, inside
from .direction import quarters, tilt_of, turn_box, turned_size, untilt_box


@dataclass(frozen=True, eq=False)
class TableCrop:
    """A part of a page, turned so that its text runs from left to right."""

    pixels: np.ndarray  # (Y, X, 3) uint8
    matrix: np.ndarray  # (2, 3): from (x, y, 1) of the crop to (x, y) of the page
    angle: float = 0.0  # direction of its text on the page, in degrees clockwise

    def to_page(self, box: Box) -> Box:
        """The box on the page around a box of the crop."""
        return _map_box(box, self.matrix)

    def from_page(self, box: Box) -> Box:
        """The box in the crop around a box of the page."""
        return _map_box(box, _inverse(self.matrix))

    def words(self, words: Sequence[Word]) -> list[Word]:
        """The page's words of which at least half is in the crop, with boxes of the crop.

        A word with an angle gets the box of its upright text, which its tilt does not enlarge.
        """
        Y, X = self.pixels.shape[:2]
        near = self.all_words(_words_near(words, self.to_page((0.0, 0.0, float(X), float(Y)))))
        return [word for word in near if inside(word.box, (0, 0, X, Y)) >= HALF_SHARE]

    def all_words(self, words: Sequence[Word]) -> list[Word]:
        """The page's words with boxes of the crop, those beyond its edges too."""
        back = _inverse(self.matrix)
        return [
            replace(w, box=self._map_word_box(w, back), angle=None if w.angle is None else w.angle - self.angle)
            for w in words
        ]

    def _map_word_box(self, word: Word, back: np.ndarray) -> Box:
        own = self.angle if word.angle is None else word.angle
        if not tilt_of(self.angle):  # exact; a word that is tilted against the others stays so
            return _map_box(word.box, back)
        x, y = back @ ((word.box[0] + word.box[2]) / 2, (word.box[1] + word.box[3]) / 2, 1)
        x0, y0, x1, y1 = turn_box(untilt_box(word.box, tilt_of(own)), -quarters(self.angle))
        half = (x1 - x0) / 2, (y1 - y0) / 2
        return x - half[0], y - half[1], x + half[0], y + half[1]


def crop_table(page: np.ndarray, box: Box, margin: int, angle: float = 0.0) -> TableCrop:
    """The part of a page (H, W, 3) uint8 in a box, white beyond the page's edges, turned by -`angle` degrees."""
    H, W = page.shape[:2]
    x0, y0 = (math.floor(v) - margin for v in box[:2])
    x1, y1 = (math.ceil(v) + margin for v in box[2:])
    if (x1 - x0) * (y1 - y0) > MAX_PIXELS:
        raise InputError(f"a crop of {x1 - x0} x {y1 - y0} with a padding of {margin} is more than {MAX_PIXELS} pixels")
    pixels = np.full((y1 - y0, x1 - x0, 3), 255, np.uint8)
    left, top, right, bottom = max(x0, 0), max(y0, 0), min(x1, W), min(y1, H)
    pixels[top - y0 : bottom - y0, left - x0 : right - x0] = page[top:bottom, left:right]
    count, tilt = quarters(angle), tilt_of(angle)
    upright = np.ascontiguousarray(np.rot90(pixels, count))
    Y, X = upright.shape[:2]
    cos, sin = ((1, 0), (0, 1), (-1, 0), (0, -1))[count]
    begin = turn_box((0.0, 0.0, float(X), float(Y)), count)[:2]
    # From the upright crop to the page: turned back clockwise about (0, 0), then moved.
    matrix = np.array([[cos, -sin, x0 - begin[0]], [sin, cos, y0 - begin[1]]], np.float64)
    if not tilt:
        return TableCrop(upright, matrix, 90.0 * count)
    return _straighten(upright, matrix, count, tilt)


def _straighten(pixels: np.ndarray, matrix: np.ndarray, count: int, tilt: float) -> TableCrop:
    """The crop turned about its middle by -tilt, and enlarged until its corners fit."""
    from PIL import Image

    Y, X = pixels.shape[:2]
    cos, sin = math.cos(math.radians(tilt)), math.sin(math.radians(tilt))
    wide, high = turned_size((X, Y), tilt)
    if wide * high > MAX_PIXELS:
        raise InputError(f"{X} x {Y} pixels turned by {tilt:.1f} degrees are more than {MAX_PIXELS}")
    edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    paper = tuple(np.median(edges, 0).astype(int).tolist())
    turn = np.array([[cos, -sin], [sin, cos]])
    tilted = np.column_stack([turn, np.array([X / 2, Y / 2]) - turn @ (wide / 2, high / 2)])
    image = Image.fromarray(pixels).transform(
        (wide, high),
        Image.Transform.AFFINE,
        tuple(tilted.ravel().tolist()),
        Image.Resampling.BICUBIC,
        fillcolor=paper,
    )
    return TableCrop(np.asarray(image), matrix @ np.vstack([tilted, (0, 0, 1)]), 90.0 * count + tilt)


def _words_near(words: Sequence[Word], box: Box) -> list[Word]:
    """The words that touch the box; one comparison of arrays is fast for pages with very many words."""
    if not words:
        return []
    boxes = np.array([word.box for word in words])
    near = (boxes[:, :2] <= box[2:]).all(1) & (boxes[:, 2:] >= box[:2]).all(1)
    return [words[i] for i in np.flatnonzero(near).tolist()]


def _inverse(matrix: np.ndarray) -> np.ndarray:
    turn = matrix[:, :2].T  # the inverse of a rotation
    return np.column_stack([turn, -turn @ matrix[:, 2]])


def _map_box(box: Box, matrix: np.ndarray) -> Box:
    x0, y0, x1, y1 = box
    corners = np.array([(x0, y0, 1), (x1, y0, 1), (x0, y1, 1), (x1, y1, 1)], np.float64) @ matrix.T
    return bounding_box((x, y, x, y) for x, y in corners.tolist())
