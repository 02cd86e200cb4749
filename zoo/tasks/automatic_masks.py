"""Masks of everything in an image (Kirillov et al. 2023, https://arxiv.org/abs/2304.02643, appendix B): a grid of
points asks for them, over the image and over crops of it, and of masks that overlap the best one stays.

Shapes: H and W height and width of the image; h and w those of a crop; n points of a grid's side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from ..errors import InputError, quantity
from ..images.boxes import suppress_boxes

# In all crops of an image.
MAX_POINTS = 1 << 16
MAX_LAYERS = 4  # 341 crops
MAX_BYTES = 4 << 30  # all masks of an image
EDGE = 20  # pixels: a mask that comes so near to where a crop was cut is not whole
Corners = tuple[int, int, int, int]  # left, top, right and bottom


class Grid(NamedTuple):
    """The options of transformers' pipeline, with its defaults."""

    points_per_batch: int = 64
    points_per_crop: int = 32
    crops_n_layers: int = 0
    crop_overlap_ratio: float = 512 / 1500
    crop_n_points_downscale_factor: int = 1
    pred_iou_thresh: float = 0.88
    stability_score_thresh: float = 0.95
    stability_score_offset: float = 1.0
    mask_threshold: float = 0.0
    crops_nms_thresh: float = 0.7

    def check(self) -> None:
        """Raise InputError for an option that is out of its range."""
        counts = {"points_per_batch": 1, "points_per_crop": 1, "crops_n_layers": 0, "crop_n_points_downscale_factor": 1}
        for name, value in zip(self._fields, self, strict=True):
            if name in counts:
                if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < counts[name]:
                    _refuse(name, value, f"a whole number of at least {counts[name]}")
                continue
            is_number = not isinstance(value, bool) and isinstance(value, int | float | np.number)
            if not is_number or not math.isfinite(value):
                _refuse(name, value, "a number")
            if name != "mask_threshold" and value < 0:
                _refuse(name, value, "a number of at least 0")
        if self.crop_overlap_ratio >= 1:
            _refuse("crop_overlap_ratio", self.crop_overlap_ratio, "a number below 1")
        if self.crops_n_layers > MAX_LAYERS:
            _refuse("crops_n_layers", self.crops_n_layers, f"at most {MAX_LAYERS}")
        points = sum(4**layer * self.side(layer) ** 2 for layer in range(self.crops_n_layers + 1))
        if points > MAX_POINTS:
            raise InputError(f"is {self.points_per_crop}, which makes {points:,} points in all crops, expected at most "
                             f"{MAX_POINTS:,}", argument="points_per_crop")  # fmt: skip

    def check_unused(self) -> None:
        """Raise InputError for an option that is not its default, since a call with points or boxes has no grid."""
        for name, value, default in zip(self._fields, self, Grid(), strict=True):
            if value != default:
                raise InputError("is for calls without points and boxes, which find all masks", argument=name)

    def side(self, layer: int) -> int:
        """n of the crops of a layer, at least 1."""
        return max(1, int(self.points_per_crop / self.crop_n_points_downscale_factor**layer))


def _refuse(name: str, value: object, expected: str) -> None:
    raise InputError(f"is {value!r:.100}, expected {expected}", argument=name)


class Crop(NamedTuple):
    box: Corners
    points: np.ndarray  # (n n, 2): x and y in pixels of the crop, row by row


def crops_of(size: tuple[int, int], grid: Grid) -> Iterator[Crop]:
    """The image (H, W), and for each layer i from 1 the 2^i x 2^i crops that overlap and cover it, column by column."""
    H, W = size
    yield _crop((0, 0, W, H), grid.side(0))
    for layer in range(1, grid.crops_n_layers + 1):
        count = 2**layer
        overlap = int(grid.crop_overlap_ratio * min(H, W) * (2 / count))
        width, height = (math.ceil((overlap * (count - 1) + side) / count) for side in (W, H))
        for i, j in product(range(count), repeat=2):
            left, top = (width - overlap) * i, (height - overlap) * j
            box = left, top, min(left + width, W), min(top + height, H)
            if box[0] >= box[2] or box[1] >= box[3]:
                problem = f"is {grid.crops_n_layers}: an image of {W} x {H} pixels has no crops of layer {layer}"
                raise InputError(problem, argument="crops_n_layers")
            yield _crop(box, grid.side(layer))


# transformers' grid for SAM 2 keeps the image's proportions, while the model sees a square: below a wide image, points
# fall outside of it.  Here, as in Meta's code, the grid covers the image.
def _crop(box: Corners, n: int) -> Crop:
    places = np.linspace(1 / (2 * n), 1 - 1 / (2 * n), n)
    x, y = np.meshgrid(places, places)
    return Crop(box, np.stack([x, y], -1).reshape(-1, 2) * (box[2] - box[0], box[3] - box[1]))


class Candidates:
    """The masks of an image that are sure enough, until `choose` picks some of them: a bit for each pixel of a box."""

    def __init__(self, size: tuple[int, int], grid: Grid):
        self.size, self.grid = size, grid
        self.boxes: list[Corners] = []  # with the last pixels' numbers as right and bottom
        self.scores: list[float] = []
        self.bits: list[np.ndarray] = []

    def is_sure(self, scores: np.ndarray) -> np.ndarray:
        """Where the model's own scores are high enough."""
        least = self.grid.pred_iou_thresh
        return np.greater(scores, np.float32(least)) if least > 0 else np.ones(scores.shape, bool)

    def add(self, logits: np.ndarray, score: float, crop: Corners) -> None:
        """Keep the mask of a crop, unless it depends much on the threshold or reaches to where the crop was cut.

        logits (h, w).
        """
        grid = self.grid
        if grid.stability_score_thresh > 0 and not _stability(logits, grid) > np.float32(grid.stability_score_thresh):
            return
        mask = logits > grid.mask_threshold
        rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
        left, top, right, bottom = own = (
            (int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])) if len(rows) else (0, 0, 0, 0)
        )
        x, y = crop[:2]
        box = left + x, top + y, right + x, bottom + y
        whole = 0, 0, self.size[1], self.size[0]
        for at, edge, image_edge in zip(box, crop, whole, strict=True):
            if abs(at - edge) <= EDGE < abs(at - image_edge):
                return
        self.boxes.append(box)
        self.scores.append(score)
        self.bits.append(np.packbits(mask[own[1] : own[3] + 1, own[0] : own[2] + 1], axis=1))

    def choose(self) -> Iterator[tuple[np.ndarray, float]]:
        """The masks (H, W) and scores of those that overlap with no better one, the best first."""
        boxes = np.array(self.boxes, np.float32).reshape(-1, 4)
        kept = suppress_boxes(boxes, np.array(self.scores, np.float32), self.grid.crops_nms_thresh).tolist()
        H, W = self.size
        if len(kept) * H * W > MAX_BYTES:
            found = f"{quantity(len(kept), 'mask')} of {W} x {H} pixels take more than {MAX_BYTES >> 30} GB"
            raise InputError(f"{found}: give a smaller image, or a higher pred_iou_thresh or stability_score_thresh")
        for i in kept:
            left, top, right, bottom = self.boxes[i]
            mask = np.zeros(self.size, bool)
            mask[top : bottom + 1, left : right + 1] = np.unpackbits(self.bits[i], axis=1, count=right - left + 1)
            yield mask, self.scores[i]


def _stability(logits: np.ndarray, grid: Grid) -> np.float32:
    """The pixels of the mask at a higher threshold, as a part of those at a lower one; not a number without any."""
    inner, outer = (
        np.float32(np.count_nonzero(logits > grid.mask_threshold + sign * grid.stability_score_offset))
        for sign in (1, -1)
    )
    return inner / outer if outer else np.float32("nan")
