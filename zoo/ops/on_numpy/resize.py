"""Interpolation as torch does it with align_corners=False, and other maps that are linear along each axis."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from . import threads
from .layout import columns, logical
from .scratch import result, scratch

BLOCK = 1 << 16  # elements of a piece whose rows are combined at a time


def interpolate(x: np.ndarray, size: tuple[int, int], mode: str) -> np.ndarray:
    B, Y, X, C = x.shape
    if mode == "nearest":
        return x[:, _nearest(Y, size[0])[:, None], _nearest(X, size[1])]
    if tuple(size) == (Y, X):
        return x
    planes = columns(x).reshape(C * B, Y, X)
    if mode.endswith("antialias"):
        averaged = resize_by_matrices(planes, *(averaging(n, new, mode) for n, new in zip((Y, X), size, strict=True)))
        return logical(averaged.reshape(C, -1), (B, *size))
    rows, weights = taps(Y, size[0], mode, x.dtype)
    across = matrix(*taps(X, size[1], mode, x.dtype), X)
    out = result((C * B, size[0] * size[1]), x.dtype).reshape(C * B, *size)
    step = max(1, BLOCK // max(1, size[0] * size[1]))

    def share(i: int) -> None:
        own = slice(i * step, (i + 1) * step)
        y = out[own]
        # Along rows by a matrix product, whose zeros cost less than a gather; across rows tap by tap.
        wide = scratch("block", (len(y), Y, size[1]), x.dtype)
        np.matmul(planes[own], across.T, out=wide)
        t = scratch("tiles", (len(y), size[1]), x.dtype)
        for k in range(size[0]):
            np.multiply(wide[:, rows[0, k]], weights[0, k], out=y[:, k])
            for tap in range(1, len(rows)):
                np.multiply(wide[:, rows[tap, k]], weights[tap, k], out=t)
                np.add(y[:, k], t, out=y[:, k])

    threads.run(share, -(-C * B // step), cost=2.0 * out.size)
    return logical(out.reshape(C, -1), (B, *size))


def _nearest(count: int, new: int) -> np.ndarray:
    """The index, below `count`, of the sample for each of `new`."""
    at = np.arange(new, dtype=np.float32) * np.float32(count / new)
    return np.minimum(at.astype(np.int64), count - 1)


@lru_cache(64)
def taps(count: int, new: int, mode: str, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The indices of the samples that each of `new` is made of, and their weights: two arrays (2 or 4, new)."""
    # In the precision of the image, as in torch: the scale is rounded, then a fused multiply-add.
    real = dtype.type
    if mode.endswith("corners"):
        at = np.arange(new, dtype=dtype) * (real(count - 1) / real(max(new - 1, 1)))
    else:
        at = ((np.arange(new) + 0.5) * float(real(count) / real(new)) - 0.5).astype(dtype)
    if mode == "bilinear":
        at = np.maximum(at, real(0))
    first = np.floor(at)
    t = at - first
    if not mode.startswith("bicubic"):
        offsets, weights = [0, 1], np.stack([1 - t, t])
    else:
        a = real(-0.75)
        near = [((a + 2) * u - (a + 3)) * u * u + 1 for u in (t, 1 - t)]
        far = [((a * u - 5 * a) * u + 8 * a) * u - 4 * a for u in (t + 1, 2 - t)]
        offsets, weights = [-1, 0, 1, 2], np.stack([far[0], near[0], near[1], far[1]])
    return np.clip(first.astype(np.int64) + np.array(offsets)[:, None], 0, count - 1), weights


def matrix(index: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """The taps as a (new, count) matrix."""
    out = np.zeros((index.shape[1], count), weights.dtype)
    for samples, weight in zip(index, weights, strict=True):
        np.add.at(out, (np.arange(len(out)), samples), weight)
    return out


@lru_cache(64)
def averages(count: int, new: int) -> np.ndarray:
    """(new, count): the means over the windows of adaptive pooling."""
    out = np.zeros((new, count))
    for i in range(new):
        first, end = i * count // new, -(-(i + 1) * count // new)
        out[i, first:end] = 1 / (end - first)
    return out


@lru_cache(64)
def averaging(count: int, new: int, mode: str) -> np.ndarray:
    """(new, count): the weights of samples by their distance, in steps between two of the fewer."""
    step, half = np.float32(count / new), np.float32(0.5)  # as in torch, whose places are float32
    places = (np.arange(new, dtype=np.float32) + half) * step
    apart = np.arange(count, dtype=np.float32) - places[:, None] + half
    d = np.abs(apart) / max(step, np.float32(1))
    if mode.startswith("bilinear"):
        out = np.maximum(1 - d, 0)
    else:
        near, far = (1.5 * d - 2.5) * d * d + 1, ((-0.5 * d + 2.5) * d - 4) * d + 2
        out = np.where(d < 1, near, np.where(d < 2, far, 0))
    return out / out.sum(1, keepdims=True)


def resize_by_matrices(planes: np.ndarray, vertical: np.ndarray, horizontal: np.ndarray) -> np.ndarray:
    """planes (N, Y, X), vertical (Y', Y), horizontal (X', X) -> (N, Y', X')."""
    dtype = planes.dtype
    return vertical.astype(dtype) @ (planes @ horizontal.T.astype(dtype))
