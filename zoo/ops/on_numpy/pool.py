"""Pooling, means and pixel shuffling of images."""

from __future__ import annotations

import numpy as np

from . import threads
from .images import blocks, padded
from .layout import columns, logical
from .resize import along, averages
from .scratch import result, scratch

PIECE = 1 << 16  # elements that stay in cache


def max_pool2d(x: np.ndarray, kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int]) -> np.ndarray:
    B, Y, X, C = x.shape
    (sy, sx), (py, px) = stride, padding
    height, width = ((n + 2 * p - k) // s + 1 for n, p, k, s in zip((Y, X), padding, kernel, stride, strict=True))
    out = result((B, height, width, C), x.dtype)
    work = blocks(B, height, width, max(1, 2 * PIECE // C))

    def block(i: int) -> None:
        own, rows = work[i]
        size = rows.stop - rows.start
        y, z = rows.start * sy - py, -px
        pixels = padded(
            x[own], (y, y + (size - 1) * sy + kernel[0]), (z, z + (width - 1) * sx + kernel[1]), fill=-np.inf
        )
        across = scratch(3, (len(pixels), size, *pixels.shape[2:]), x.dtype)
        _maxima([pixels[:, i : i + (size - 1) * sy + 1 : sy] for i in range(kernel[0])], across)
        _maxima([across[:, :, j : j + (width - 1) * sx + 1 : sx] for j in range(kernel[1])], out[own, rows])

    threads.run(block, len(work), cost=float(x.size * (kernel[0] + kernel[1])) / 4)
    return out


def _maxima(parts: list[np.ndarray], out: np.ndarray) -> None:
    """The largest of each element; a NaN among them is."""
    np.maximum(parts[0], parts[min(1, len(parts) - 1)], out=out)
    for part in parts[2:]:
        np.maximum(out, part, out=out)


def adaptive_avg_pool2d(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    B, Y, X, C = x.shape
    planes = columns(x).reshape(C * B, Y, X)
    out = along(planes, averages(Y, size[0]), averages(X, size[1])).astype(x.dtype, copy=False)
    return logical(out.reshape(C, -1), (B, *size))


def pixel_shuffle(x: np.ndarray, factor: int) -> np.ndarray:
    B, Y, X, D = x.shape
    C = D // factor**2
    planes = x.transpose(3, 0, 1, 2).reshape(C, factor, factor, B, Y, X)
    return planes.transpose(3, 4, 1, 5, 2, 0).reshape(B, Y * factor, X * factor, C)


def mean(x: np.ndarray, axis: int) -> np.ndarray:
    return x.mean(axis)


def add_scaled(x: np.ndarray, y: np.ndarray, scale: np.ndarray) -> np.ndarray:
    D = x.shape[-1]
    X, Y = columns(x), columns(y)
    out = result(X.shape, x.dtype)

    def share(i: int) -> None:
        own = slice(i * D // shares, (i + 1) * D // shares)
        np.multiply(Y[own], scale[own, None], out=out[own])
        np.add(out[own], X[own], out=out[own])

    shares = max(1, min(D, X.size // PIECE))
    threads.run(share, shares, cost=X.size / 3)
    return logical(out, x.shape[:-1])
