"""Convolutions as products with the weight exactly as its file has it, on tiles that stay in cache."""

from __future__ import annotations

import math

import numpy as np

from . import threads
from .activations import finish
from .layout import columns, logical
from .linear import linear
from .pool import overlap
from .scratch import result, scratch

Pair = tuple[int, int]

TILE = 2048  # pixels of an output tile
WINDOWS = 1 << 20  # elements of a tile's windows that are gathered at a time


def conv2d(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    act: str | None,
    residual: np.ndarray | None,
) -> np.ndarray:
    (B, Y, X, C), (D, _, kY, kX) = x.shape, weight.shape
    if padding == (0, 0) and stride == (kY, kX) and (kY == kX == 1 or dilation == (1, 1)):
        return linear(_patches(x, kY, kX), weight.reshape(D, -1), bias, act, residual)
    if kY == kX == 1 and padding == (0, 0):
        return linear(x[:, :: stride[0], :: stride[1]], weight.reshape(D, C), bias, act, residual)
    size = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip((Y, X), padding, dilation, (kY, kX), stride, strict=True)
    )
    planes = x.transpose(3, 0, 1, 2)
    W = weight.reshape(D, C * kY * kX)
    out = result((D, B * size[0] * size[1]), x.dtype)
    R = None if residual is None else columns(np.broadcast_to(residual, (B, *size, D)))
    tiles = _tiles(B, *size)

    def tile(i: int) -> None:
        b, y0, y1 = tiles[i]
        n = (y1 - y0) * size[1]
        own = slice((b * size[0] + y0) * size[1], (b * size[0] + y1) * size[1])
        y = out[:, own]
        step = max(1, min(C, WINDOWS // (kY * kX * n)))
        for c in range(0, C, step):
            channels = slice(c, c + step)
            windows = _windows(planes[channels, b], (kY, kX), stride, padding, dilation, y0, y1, size[1])
            w = W[:, c * kY * kX : (c + step) * kY * kX]
            part = y if c == 0 else scratch(3, y.shape, x.dtype)
            np.matmul(w, windows, out=part)
            if c:
                np.add(y, part, out=y)
        finish(y, None if bias is None else bias[:, None], act, None if R is None else R[:, own])

    threads.run(tile, len(tiles), cost=W.size * out.shape[1] / 40)
    return logical(out, (B, *size))


def _patches(x: np.ndarray, kY: int, kX: int) -> np.ndarray:
    """x (B, Y, X, C) -> (B, Y / kY, X / kX, C kY kX), what does not fill a window left out; feature-major."""
    B, Y, X, C = x.shape
    h, w = Y // kY, X // kX
    x = x[:, : h * kY, : w * kX].reshape(B, h, kY, w, kX, C)
    return logical(x.transpose(5, 2, 4, 0, 1, 3).reshape(C * kY * kX, B * h * w), (B, h, w))


def _tiles(B: int, Y: int, X: int) -> list[tuple[int, int, int]]:
    """(picture, from row, to row) of pieces of about TILE pixels, and no fewer of them than keep all threads busy."""
    rows = max(1, min(TILE // X, -(-B * Y // threads.count())))
    return [(b, y, min(y + rows, Y)) for b in range(B) for y in range(0, Y, rows)]


def _windows(
    planes: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, y0: int, y1: int, width: int
) -> np.ndarray:
    """The windows of output rows y0 to y1.  planes (C, Y, X) -> (C kY kX, (y1 - y0) width)."""
    C, Y, X = planes.shape
    out = scratch(2, (C, *kernel, y1 - y0, width), planes.dtype)
    for i in range(kernel[0]):
        to_y, at_y = overlap(y0 * stride[0] + i * dilation[0] - padding[0], stride[0], Y, y1 - y0)
        for j in range(kernel[1]):
            to_x, at_x = overlap(j * dilation[1] - padding[1], stride[1], X, width)
            window = out[:, i, j]
            if to_y != slice(0, y1 - y0) or to_x != slice(0, width):
                window[...] = 0
            np.copyto(window[:, to_y, to_x], planes[:, at_y, at_x])
    return out.reshape(C * math.prod(kernel), -1)


def conv_transpose2d(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, stride: Pair, padding: Pair, act: str | None
) -> np.ndarray:
    (B, Y, X, _), (_, D, kY, kX) = x.shape, weight.shape
    (sy, sx), (py, px) = stride, padding
    full = (Y - 1) * sy + kY, (X - 1) * sx + kX
    W = np.ascontiguousarray(weight.transpose(2, 3, 1, 0))
    pixels = columns(x)
    # Windows that neither overlap nor leave gaps write every pixel once.
    apart = (kY, kX) == stride
    out = (result if apart else np.zeros)((D, B * full[0] * full[1]), x.dtype)
    planes = out.reshape(D, B, *full)

    def share(i: int) -> None:
        own = slice(i * D // shares, (i + 1) * D // shares)
        for j in range(kY):
            for k in range(kX):
                y = scratch(2, (own.stop - own.start, pixels.shape[1]), x.dtype)
                np.matmul(W[j, k, own], pixels, out=y)
                window = planes[own, :, j : j + (Y - 1) * sy + 1 : sy, k : k + (X - 1) * sx + 1 : sx]
                y = y.reshape(window.shape)
                if apart:
                    np.copyto(window, y)
                else:
                    np.add(window, y, out=window)
        finish(out[own], None if bias is None else bias[own, None], act, None)

    shares = min(D, threads.count() * max(1, out.size // (1 << 20)))
    threads.run(share, shares, cost=weight.size * pixels.shape[1] / 40)
    return planes.transpose(1, 2, 3, 0)[:, py : full[0] - py, px : full[1] - px]


def fold_norm(
    weight: np.ndarray,
    bias: np.ndarray | None,
    gamma: np.ndarray,
    beta: np.ndarray,
    mean: np.ndarray,
    var: np.ndarray,
    eps: float,
    axis: int,
) -> tuple[np.ndarray, np.ndarray]:
    scale = gamma / np.sqrt(var.astype(np.float64) + eps)
    shift = beta + ((0 if bias is None else bias) - mean.astype(np.float64)) * scale
    shape = [-1 if i == axis else 1 for i in range(weight.ndim)]
    return (weight * scale.reshape(shape)).astype(weight.dtype), shift.astype(weight.dtype)
