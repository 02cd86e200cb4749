"""Blocks of image rows that stay in cache, and padding."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from . import threads
from .scratch import scratch

Block = tuple[slice, slice]  # images, and rows of each


def blocks(B: int, rows: int, width: int, pixels: int) -> list[Block]:
    """Cut B images of rows x width into blocks of about `pixels` pixels: rows of one image, or whole images.

    There are enough blocks to keep all threads busy.
    """
    count = threads.count()
    parts = min(rows, max(-(-rows * width // pixels), -(-count // B)))
    if B == 1 and parts > count:
        parts = min(rows, -(-parts // count) * count)
    if parts > 1:
        cuts = [i * rows // parts for i in range(parts + 1)]
        return [(slice(b, b + 1), slice(*cut)) for b in range(B) for cut in pairwise(cuts)]
    size = max(1, min(pixels // (rows * width), B // count))
    return [(slice(b, min(b + size, B)), slice(0, rows)) for b in range(0, B, size)]


def pad_block(x: np.ndarray, y: tuple[int, int], z: tuple[int, int], fill: float = 0) -> np.ndarray:
    """Rows y[0] to y[1] and columns z[0] to z[1] of x (B, Y, X, C), row-major; `fill` outside of the image."""
    B, Y, X, C = x.shape
    out = scratch("block", (B, y[1] - y[0], z[1] - z[0], C), x.dtype)
    top, left = max(0, -y[0]), max(0, -z[0])
    bottom, right = max(top, min(y[1], Y) - y[0]), max(left, min(z[1], X) - z[0])
    out[:, :top], out[:, bottom:] = fill, fill
    inner = out[:, top:bottom]
    inner[:, :, :left], inner[:, :, right:] = fill, fill
    np.copyto(inner[:, :, left:right], x[:, y[0] + top : y[0] + bottom, z[0] + left : z[0] + right])
    return out


def pad_images(x: np.ndarray, rows: tuple[int, int], columns: tuple[int, int]) -> np.ndarray:
    return np.pad(x, ((0, 0), rows, columns, (0, 0)))
