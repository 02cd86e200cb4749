"""Pooling, means and pixel shuffling of pictures, feature-major."""

from __future__ import annotations

import numpy as np

from . import threads
from .layout import columns, logical
from .resize import along, averages
from .scratch import result

PIECE = 1 << 16  # elements that stay in cache


def max_pool2d(x: np.ndarray, kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int]) -> np.ndarray:
    B, Y, X, C = x.shape
    size = tuple((n + 2 * p - k) // s + 1 for n, p, k, s in zip((Y, X), padding, kernel, stride, strict=True))
    planes = x.transpose(3, 0, 1, 2)
    out = result((C, B * size[0] * size[1]), x.dtype).reshape(C, B, *size)

    def share(i: int) -> None:
        own = slice(i * C // shares, (i + 1) * C // shares)
        y = out[own]
        y[...] = -np.inf
        for i in range(kernel[0]):
            for j in range(kernel[1]):
                to, at = zip(
                    overlap(i - padding[0], stride[0], Y, size[0]),
                    overlap(j - padding[1], stride[1], X, size[1]),
                    strict=True,
                )
                window = y[:, :, to[0], to[1]]
                np.maximum(window, planes[own][:, :, at[0], at[1]], out=window)

    shares = min(C, threads.count())
    threads.run(share, shares, cost=float(x.size * kernel[0] * kernel[1]))
    return out.transpose(1, 2, 3, 0)


def overlap(offset: int, stride: int, size: int, count: int) -> tuple[slice, slice]:
    """Of `count` outputs, each of which reads pixel offset + stride * i: those whose pixel exists, and these pixels."""
    first = max(0, -(offset // stride))
    last = min(count, (size - 1 - offset) // stride + 1)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last), slice(offset + first * stride, offset + (last - 1) * stride + 1, stride)


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
