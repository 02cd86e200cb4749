"""Pooling, means, pixel shuffling and windows of images."""

from __future__ import annotations

import numpy as np

from . import threads
from .images import blocks
from .layout import columns, logical
from .resize import averages, resize_by_matrices
from .scratch import result, scratch

PIECE = 1 << 16  # elements that stay in cache
PARTIAL_SUM = 128  # numbers of a long sum that are added one after another


def max_pool2d(x: np.ndarray, kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int]) -> np.ndarray:
    B, Y, X, C = x.shape
    (sy, sx), (py, px) = stride, padding
    height, width = ((n + 2 * p - k) // s + 1 for n, p, k, s in zip((Y, X), padding, kernel, stride, strict=True))
    out = result((B, height, width, C), x.dtype)
    work = blocks(B, height, width, max(1, 2 * PIECE // C))

    def block(i: int) -> None:
        own, rows = work[i]
        images, y = x[own], out[own, rows]
        tall = scratch("tiles", (*y.shape[:2], X, C), x.dtype)
        _maxima(images.swapaxes(0, 1), tall.swapaxes(0, 1), rows.start * sy - py, kernel[0], sy)
        _maxima(tall.transpose(2, 0, 1, 3), y.transpose(2, 0, 1, 3), -px, kernel[1], sx)

    threads.run(block, len(work), cost=float(x.size * (kernel[0] + kernel[1])) / 4)
    return out


def _maxima(x: np.ndarray, out: np.ndarray, start: int, kernel: int, stride: int) -> None:
    """out[i] = the largest of x[start + i stride + k], k < kernel, inside of x; NaN if there is one."""
    parts = []
    for at in range(start, start + kernel):
        own = slice(max(0, -(at // stride)), min(len(out), (len(x) - 1 - at) // stride + 1))
        if own.start < own.stop:
            parts.append((own, x[at + own.start * stride :: stride][: own.stop - own.start]))
    whole = [part for own, part in parts if len(part) == len(out)][:2]
    if whole:
        np.maximum(whole[0], whole[-1], out=out)
    else:
        out[...] = -np.inf
    for own, part in parts:
        if not any(part is done for done in whole):
            np.maximum(out[own], part, out=out[own])


def adaptive_avg_pool2d(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    B, Y, X, C = x.shape
    planes = columns(x).reshape(C * B, Y, X)
    out = resize_by_matrices(planes, averages(Y, size[0]), averages(X, size[1])).astype(x.dtype, copy=False)
    return logical(out.reshape(C, -1), (B, *size))


def pixel_shuffle(x: np.ndarray, factor: int) -> np.ndarray:
    B, Y, X, D = x.shape
    C = D // factor**2
    planes = x.transpose(3, 0, 1, 2).reshape(C, factor, factor, B, Y, X)
    return planes.transpose(3, 4, 1, 5, 2, 0).reshape(B, Y * factor, X * factor, C)


def avg_pool2d(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    for axis, k in zip((1, 2), size, strict=True):
        n = x.shape[axis]
        starts = np.arange(0, n, k)
        counts = np.minimum(k, n - starts).astype(x.dtype).reshape(-1, *[1] * (3 - axis))
        x = np.add.reduceat(x, starts, axis) / counts
    return x


def windows(x: np.ndarray, size: int, shift: int) -> np.ndarray:
    B, Y, X, C = x.shape
    if Y % size or X % size:
        x = np.pad(x, ((0, 0), (0, -Y % size), (0, -X % size), (0, 0)))
    if shift:
        x = np.roll(x, (-shift, -shift), (1, 2))
    parts = x.reshape(B, x.shape[1] // size, size, x.shape[2] // size, size, C).transpose(5, 0, 1, 3, 2, 4)
    return logical(parts.reshape(C, -1), (parts[0].size // size**2, size * size))


def from_windows(x: np.ndarray, size: int, grid: tuple[int, int], shift: int) -> np.ndarray:
    (down, across), C = (-(-n // size) for n in grid), x.shape[-1]
    parts = x.transpose(2, 0, 1).reshape(C, -1, down, across, size, size).transpose(0, 1, 2, 4, 3, 5)
    out = logical(parts.reshape(C, -1), (parts.shape[1], down * size, across * size))
    if shift:
        out = np.roll(out, (shift, shift), (1, 2))
    return out[:, : grid[0], : grid[1]]


def clip(x: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    return np.clip(x, low, high)


def exp(x: np.ndarray) -> np.ndarray:
    return np.exp(x)


def log(x: np.ndarray) -> np.ndarray:
    return np.log(x)


def mean(x: np.ndarray, axis: int) -> np.ndarray:
    """NumPy adds numbers that lie apart in memory one after another, which loses digits of long sums: so parts are."""
    if x.strides[axis] == x.itemsize:
        return x.mean(axis)
    return _sum(x, axis % x.ndim) / x.dtype.type(x.shape[axis])


def _sum(x: np.ndarray, axis: int) -> np.ndarray:
    """The sum along an axis of parts that are added first."""
    length = x.shape[axis]
    if length <= PARTIAL_SUM:
        return x.sum(axis)
    x = np.moveaxis(x, axis, 0)
    whole = length // PARTIAL_SUM * PARTIAL_SUM
    parts = x[:whole].reshape(whole // PARTIAL_SUM, PARTIAL_SUM, *x.shape[1:]).sum(1)
    return _sum(parts, 0) + x[whole:].sum(0)


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
