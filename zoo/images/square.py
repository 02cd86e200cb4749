"""Padding an image to a square and resizing that, as OWLv2's image processor does: smoothed by a Gaussian where it
shrinks, then read between pixels, in floating point, with the numbers of SciPy's `gaussian_filter` and `zoom`.

Shapes: h and w height and width of the image, S the larger of the two, n rows or columns of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError, UnsupportedError
from .open import MAX_PIXELS
from .sizes import read_height_width

if TYPE_CHECKING:
    from PIL import Image

STRIP = 64  # rows or columns that are computed at once
REACH = 4.0  # standard deviations after which the Gaussian ends


class Axis(NamedTuple):
    """The pixels of S that the n of the result are read from, along rows or columns."""

    first: np.ndarray  # (n,)
    second: np.ndarray  # (n,)
    part: np.ndarray  # (n,) float64: of the second, 0 ... 1
    kernel: np.ndarray  # (radius + 1,) float64: of a Gaussian from its middle on; (1,) where nothing is smoothed


@dataclass(frozen=True, eq=False)
class Square:
    """An image with zeros on its right or at its bottom, as a square, in another size.

    size: (height, width) of the result.  table: (256,) float32, what a byte becomes.  mean, std: (3,) float32.
    smooths: False leaves out the Gaussian.
    """

    size: tuple[int, int]
    table: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    smooths: bool

    def __call__(self, image: Image.Image, name: str, max_pixels: int = MAX_PIXELS) -> np.ndarray:
        """(height, width, 3) float32."""
        side = max(image.height, image.width)
        for high, wide in ((side, side), self.size):
            if high * wide > max_pixels:
                what = f": {image.height} x {image.width} would be resized to {high} x {wide}"
                raise InputError(f"{what}, more than {max_pixels} pixels", argument=name)
        pixels = np.asarray(image)
        rows, columns = (read_from(side, n, self.smooths) for n in self.size)
        high, wide = (np.unique(np.concatenate([axis.first, axis.second])) for axis in (rows, columns))
        smooth = self._smooth_columns(self._smooth_rows(pixels, high, rows.kernel, side), wide, columns.kernel, side)
        found = _interpolate(smooth, high, wide, rows, columns)
        ends = [self.table[pixels.min()], self.table[pixels.max()], *([] if min(image.size) == side else [0])]
        return (np.clip(found, min(ends), max(ends)) - self.mean) / self.std

    def _smooth_rows(self, pixels: np.ndarray, at: np.ndarray, kernel: np.ndarray, side: int) -> np.ndarray:
        """The rows `at` of the square (S, S), smoothed along columns.  pixels (h, w, 3) -> (len(at), w, 3) float32."""
        out = np.empty((len(at), *pixels.shape[1:]), np.float32)
        for left in range(0, pixels.shape[1], STRIP):
            strip = pixels[:, left : left + STRIP]
            padded = np.zeros((len(strip) + 1, *strip.shape[1:]), np.float32)  # whose last row is that of all padding
            padded[:-1] = self.table[strip]
            out[:, left : left + STRIP] = _weigh(padded, at, kernel, side)
        return out

    def _smooth_columns(self, x: np.ndarray, at: np.ndarray, kernel: np.ndarray, side: int) -> np.ndarray:
        """The columns `at` of the square, smoothed along rows.  x (r, w, 3) -> (r, len(at), 3) float32."""
        out = np.empty((len(x), len(at), 3), np.float32)
        for top in range(0, len(x), STRIP):
            strip = x[top : top + STRIP].swapaxes(0, 1)
            padded = np.concatenate([strip, np.zeros((1, *strip.shape[1:]), np.float32)])
            out[top : top + STRIP] = _weigh(padded, at, kernel, side).swapaxes(0, 1)
        return out


def read_from(side: int, count: int, smooths: bool) -> Axis:
    """Where `count` pixels of the result lie among `side`; the image is reflected beyond the first and last."""
    factor = side / count
    at = (np.arange(count, dtype=np.float64) + 0.5) * factor - 0.5
    at = np.abs(at) if side > 1 else np.zeros(count)
    first = np.floor(at).astype(np.int64)
    radius, kernel = 0, np.ones(1)
    deviation = max(0.0, (factor - 1) / 2)
    if smooths and deviation > 1e-15:
        radius = int(REACH * deviation + 0.5)
        weights = np.exp(-0.5 / (deviation * deviation) * np.arange(-radius, radius + 1) ** 2)
        kernel = (weights / weights.sum())[radius:]
    return Axis(first, _reflect(first + 1, side), 1 - (1 - (at - first)), kernel)


def _reflect(at: np.ndarray, side: int) -> np.ndarray:
    """Places beyond the ends of a line, reflected about the middles of its first and last pixel."""
    if side == 1:
        return np.zeros_like(at)
    at = np.abs(at) % (2 * side - 2)
    return np.where(at < side, at, 2 * side - 2 - at)


def _weigh(padded: np.ndarray, at: np.ndarray, kernel: np.ndarray, side: int) -> np.ndarray:
    """The rows `at`, each the sum of its neighbours times a kernel, the farthest first after the row itself.

    padded (h + 1, w, 3), the last row for those from h on; at (r,) -> (r, w, 3) float64.
    """

    def rows(at: np.ndarray) -> np.ndarray:
        return padded[np.minimum(_reflect(at, side), len(padded) - 1)].astype(np.float64)

    out = rows(at) * kernel[0]
    for i in range(len(kernel) - 1, 0, -1):
        out += (rows(at - i) + rows(at + i)) * kernel[i]
    return out


def _interpolate(x: np.ndarray, high: np.ndarray, wide: np.ndarray, rows: Axis, columns: Axis) -> np.ndarray:
    """Bilinear values.  x: the pixels of the rows `high` and the columns `wide` -> (n, n, 3) float32."""
    tops, bottoms = np.searchsorted(high, rows.first), np.searchsorted(high, rows.second)
    lefts, rights = np.searchsorted(wide, columns.first), np.searchsorted(wide, columns.second)
    out = np.empty((len(tops), len(lefts), 3), np.float32)
    right = columns.part[:, None]
    for top in range(0, len(out), STRIP):
        strip = slice(top, top + STRIP)
        below = rows.part[strip, None, None]
        total = np.zeros((), np.float64)
        for line, share in ((tops, 1 - below), (bottoms, below)):
            pixels = x[line[strip]].astype(np.float64)
            total = total + pixels[:, lefts] * share * (1 - right)
            total = total + pixels[:, rights] * share * right
        out[strip] = total
    return out


def read_square(values: dict[str, Any], on: dict[str, bool], name: str, table: np.ndarray, norm: Any) -> Square:
    """The `Square` of a preprocessor_config.json.  on: the steps of all processors; norm: mean and std."""
    for step in ("do_resize", "do_rescale", "do_pad"):
        if not on[step]:
            raise UnsupportedError(f"{step} = {values.get(step)!r} for {name}ImageProcessor, zoo has true")
    return Square(read_height_width("size", values["size"]), table, *norm, smooths=bool(values["resample"]))
