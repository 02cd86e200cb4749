"""A photographed page made flat: the pixels that UVDoc looks at, and the flat page of the points that it gives.

Shapes: H, W of a photo in pixels, h, w of the model's pixels, y, x of its points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ConfigError, InputError, UnsupportedError
from ..ops import on_numpy
from .sizes import read_height_width

SIZE = {"height": 712, "width": 488}
ROWS_AT_ONCE = 128  # rows of the flat page, which bounds the memory of their points


def flatten_pixels(photo: np.ndarray, raw: Mapping[str, Any]) -> np.ndarray:
    """A photo (H, W, 3) uint8 -> (1, h, w, 3) float32, blue first, as transformers' UVDocImageProcessor gives it.

    raw: the object in preprocessor_config.json.
    """
    kind = raw.get("image_processor_type", "UVDocImageProcessor")
    if not str(kind).startswith("UVDocImageProcessor") or raw.get("do_normalize"):
        raise UnsupportedError(f"image_processor_type = {kind!r}, expected UVDocImageProcessor without do_normalize")
    factor = raw.get("rescale_factor", 1 / 255) if raw.get("do_rescale", True) else 1
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not math.isfinite(factor):
        raise ConfigError(f"rescale_factor = {factor!r}, expected a number")
    pixels = (photo[None, :, :, ::-1] * float(factor)).astype(np.float32)
    if not raw.get("do_resize", True):
        return pixels
    return on_numpy.interpolate(pixels, read_height_width("size", raw.get("size", SIZE)), "bilinear corners")


def flatten_page(photo: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The flat page (H, W, 3) uint8 of a photo (H, W, 3) uint8, black where it shows what is beyond the photo.

    points (y, x, 2): where in the photo each point of the page is, as the model gives them: x and y, -1 and 1 are the
    middles of the outermost pixels.  InputError: a point is not finite.
    """
    if not np.isfinite(points).all():
        raise InputError("the points of the flat page are not all finite")
    H, W = photo.shape[:2]
    out = np.empty_like(photo)
    rows, columns = _weights(points.shape[0], H), _weights(points.shape[1], W)
    for top in range(0, H, ROWS_AT_ONCE):
        strip = np.einsum("Yy,yxc->Yxc", rows[top : top + ROWS_AT_ONCE], points)
        at = np.einsum("Yxc,Xx->YXc", strip, columns, optimize=True)
        out[top : top + len(at)] = _sample(photo, (at + 1) / 2 * (W - 1, H - 1))
    return out


def _weights(count: int, size: int) -> np.ndarray:
    """(size, count): the shares of `count` points, from one edge to the other, in each of `size` places."""
    at = np.arange(size) * ((count - 1) / max(1, size - 1))
    return np.maximum(0, 1 - np.abs(at[:, None] - np.arange(count)))


def _sample(photo: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The bilinear values of a photo at (n, W, 2) x and y in pixels, as bytes; 0 beyond it."""
    H, W = photo.shape[:2]
    at = np.clip(at, -2, (W + 1, H + 1))
    low = np.floor(at)
    part, low = at - low, low.astype(np.intp)
    total = np.zeros((*at.shape[:2], 3))
    for right, down in ((0, 0), (1, 0), (0, 1), (1, 1)):
        x, y = low[..., 0] + right, low[..., 1] + down
        share = (part[..., 0] if right else 1 - part[..., 0]) * (part[..., 1] if down else 1 - part[..., 1])
        share = share * ((x >= 0) & (x < W) & (y >= 0) & (y < H))
        total += share[..., None] * photo[np.clip(y, 0, H - 1), np.clip(x, 0, W - 1)]
    return (total + 1e-4).astype(np.uint8)  # rounded down, as transformers does; a whole level stays one
