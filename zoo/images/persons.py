"""What ViTPose's image processor does: the images of boxes, each turned into one of the model's shape, and heatmaps
back into places of the image.  The numbers are those of transformers' Pillow back end, without SciPy.

Shapes: P persons, K keypoints, H and W height and width of the model's images, y and x of a heatmap.  A box is (x0, y0,
x1, y1) in pixels of the image, and may pass its edges, beyond which there is black.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError, UnsupportedError
from .sizes import read_height_width

if TYPE_CHECKING:
    from PIL import Image

UNIT = 200.0  # pixels: of this many are the sizes of persons in transformers
MARGIN = 1.25  # how much larger than a box the image of it is
DEVIATION, REACH = 0.8, 5  # pixels: the Gaussian that smooths heatmaps, and where it ends
LEAST_HEAT, MOST_HEAT = 0.001, 50.0  # the range of a heatmap, before its logarithm


@dataclass(frozen=True)
class PersonCrop:
    """The image of a box, in the model's shape.  size: (H, W).  unit: `normalize_factor` of the file."""

    size: tuple[int, int]
    unit: float = UNIT

    def __call__(self, image: Image.Image, box: Any = None) -> np.ndarray:
        """(H, W, 3) uint8, read between the pixels of an RGB image; box: by default the whole image."""
        pixels, (H, W) = np.asarray(image), self.size
        centre, scale = centre_and_scale(
            (0, 0, image.width, image.height) if box is None else box, self.size, self.unit
        )
        extent = scale * UNIT
        # In float32 where transformers computes so.
        push = np.zeros((3, 3), np.float32)
        for i, (side, middle) in enumerate(zip((W - 1.0, H - 1.0), centre * 2.0, strict=True)):
            factor = np.float64(side) / extent[i]
            push[i, i], push[i, 2] = factor, factor * (-0.5 * middle + 0.5 * extent[i])
        push[2, 2] = 1
        pull = np.linalg.inv(push.astype(np.float64))
        rows, columns = (np.arange(n) * pull[i, i] + pull[i, 2] for i, n in ((1, H), (0, W)))
        return _read_between(pixels, rows, columns)


def centre_and_scale(box: Any, size: tuple[int, int], unit: float = UNIT) -> tuple[np.ndarray, np.ndarray]:
    """The middle (2,) of the image of a box, x and y, and its width and height (2,) in units, both float32."""
    x0, y0, x1, y1 = map(float, box)
    width, height, aspect = x1 - x0, y1 - y0, size[1] / size[0]
    centre = np.array([x0 + width * 0.5, y0 + height * 0.5], np.float32)
    if width > aspect * height:
        height = width / aspect
    elif width < aspect * height:
        width = height * aspect
    return centre, np.array([width / unit, height / unit], np.float32) * np.float32(MARGIN)


def _read_between(pixels: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Bilinear values of pixels (h, w, 3) uint8 at the places rows (H,) and columns (W,); 0 outside of the image."""
    (tops, bottoms, down, is_row), (lefts, rights, right, is_column) = (
        _neighbours(at, n) for at, n in ((rows, pixels.shape[0]), (columns, pixels.shape[1]))
    )
    down, right = down[:, None, None], right[:, None]
    total = np.zeros((), np.float64)
    for line, share in ((tops, 1 - down), (bottoms, down)):
        for column, part in ((lefts, 1 - right), (rights, right)):
            total = total + pixels[line[:, None], column].astype(np.float64) * share * part
    inside = is_row[:, None] & is_column
    return np.where(inside[..., None], np.minimum(total + 0.5, 255), 0).astype(np.uint8)


def _neighbours(at: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The pixels before and after each place, the part of the latter, and whether the place is in the image."""
    is_inside = (at >= 0) & (at <= count - 1)
    at = np.where(is_inside, at, 0.0)
    first = np.floor(at).astype(np.int64)
    return first, np.minimum(first + 1, count - 1), 1 - (1 - (at - first)), is_inside


def post_process_pose_estimation(
    heatmaps: np.ndarray, boxes: Any, size: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """The places (P, K, 2) of keypoints, x and y in pixels of the image, and their scores (P, K), both float32.

    heatmaps (P, K, y, x) float32, the images of `boxes` (P, 4); size: (H, W) of these images.  The peaks are refined by
    DARK (Zhang et al. 2019, https://arxiv.org/abs/1910.06278).  A keypoint whose heatmap is nowhere above 0 has no
    meaningful place, as in transformers; here it does not depend on the other persons.
    """
    P, K, y, x = heatmaps.shape
    places, scores = np.empty((P, K, 2), np.float32), heatmaps.reshape(P, K, -1).max(2)
    for i in range(P):
        peaks = find_peaks(heatmaps[i])
        peaks = (peaks - refine(peaks, heatmaps[i])).astype(np.float32)
        centre, scale = centre_and_scale(boxes[i], size)
        extent = scale * np.float32(UNIT)
        steps = extent / np.array([x - 1, y - 1], np.float32)
        places[i] = peaks * steps + centre - extent * np.float32(0.5)
    return places, scores


def find_peaks(heatmaps: np.ndarray) -> np.ndarray:
    """The pixel (K, 2), x and y, at which each heatmap (K, y, x) is highest; -1 where it is nowhere above 0."""
    flat = heatmaps.reshape(len(heatmaps), -1)
    best = flat.argmax(1)
    peaks = np.stack([best % heatmaps.shape[2], best // heatmaps.shape[2]], 1)
    return np.where(flat.max(1)[:, None] > 0, peaks, -1)


def refine(peaks: np.ndarray, heatmaps: np.ndarray) -> np.ndarray:
    """How far (K, 2) each peak is before its pixel: a Newton step up the log of the smoothed heatmap (K, y, x)."""
    K, y, x = heatmaps.shape
    logs = np.log(np.clip(_blur_along(_blur_along(heatmaps, 1), 2), np.float32(LEAST_HEAT), np.float32(MOST_HEAT)))
    flat, wide = np.pad(logs, ((0, 0), (1, 1), (1, 1)), mode="edge").reshape(-1), x + 2
    at = np.arange(K) * wide * (y + 2) + (peaks[:, 1] + 1) * wide + peaks[:, 0] + 1
    here, right, left, below, above = (flat[at + step] for step in (0, 1, -1, wide, -wide))
    slope = np.stack([np.float32(0.5) * (right - left), np.float32(0.5) * (below - above)], 1)
    bend_x, bend_y = right - 2 * here + left, below - 2 * here + above
    corners = flat[at + wide + 1] - right - below + here + here - left - above + flat[at - wide - 1]
    twist = np.float32(0.5) * corners
    hessian = np.stack([bend_x, twist, twist, bend_y], 1).reshape(K, 2, 2).astype(np.float64)
    hessian += np.finfo(np.float32).eps * np.eye(2)
    step = np.zeros((K, 2))
    is_regular = np.linalg.det(hessian) != 0  # where it is flat in one direction, there is no step
    step[is_regular] = np.einsum("kmn,kn->km", np.linalg.inv(hessian[is_regular]), slope[is_regular])
    return step


def _blur_along(x: np.ndarray, axis: int) -> np.ndarray:
    """x (K, y, x) float32, smoothed along an axis; its edges are mirrored, as SciPy's `gaussian_filter` does."""
    kernel = np.exp(-0.5 / (DEVIATION * DEVIATION) * np.arange(-REACH, REACH + 1) ** 2)
    kernel = (kernel / kernel.sum())[REACH:]
    n, width = x.shape[axis], [(REACH, REACH) if i == axis else (0, 0) for i in range(3)]
    padded = np.moveaxis(np.pad(x, width, mode="symmetric"), axis, 0).astype(np.float64)
    out = padded[REACH : REACH + n] * kernel[0]
    for i in range(REACH, 0, -1):
        out += (padded[REACH - i : REACH - i + n] + padded[REACH + i : REACH + i + n]) * kernel[i]
    return np.moveaxis(out.astype(np.float32), 0, axis)


def read_person_crop(values: dict[str, Any], name: str) -> PersonCrop:
    """The `PersonCrop` of a preprocessor_config.json."""
    if values["do_affine_transform"] is not True:
        found = f"do_affine_transform = {values['do_affine_transform']!r} for {name}ImageProcessor"
        raise UnsupportedError(f"{found}, zoo has true")
    unit = values["normalize_factor"]
    if isinstance(unit, bool) or not isinstance(unit, int | float) or not 0 < unit <= 1e6:
        raise ConfigError(f"normalize_factor = {unit!r}, expected a number above 0")
    size = read_height_width("size", values["size"])
    if min(size) < 2:
        raise ConfigError(f"size = {values['size']!r}, expected at least 2 x 2")
    return PersonCrop(size, float(unit))
