"""Convolutions as products of windows with the weight, in blocks that stay in cache; results are row-major."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from . import blas, threads
from .activations import finish
from .images import blocks, pad_block
from .layout import MAX_UNPACKED_MNK, columns, logical
from .linear import linear
from .scratch import result, scratch
from .winograd import conv3x3, transform

Pair = tuple[int, int]

WINDOWS = 1 << 18  # elements of a block's windows, which about fit into the L2 cache
MIN_WINDOWS, MAX_ELEMENTS = 900, 1 << 21  # enough windows for a fast product, unless they are too large
STACK_WINDOWS = 64  # windows in a product that needs no packing
MIN_WINOGRAD_CHANNELS = 16  # with fewer channels transforms cost more than they save
MAX_KEPT_ELEMENTS = 512 * 512 * 9  # elements of a weight that is kept transformed, in up to four times its memory
MIN_PIXELS_PER_CHANNEL = 16  # output pixels per channel from which transforming a weight for one use saves time


def conv2d(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    act: str | None,
    residual: np.ndarray | None,
    post: str | None,
    prepared: np.ndarray | None,
    groups: int,
) -> np.ndarray:
    if groups > 1:
        x, C, O = np.ascontiguousarray(x), weight.shape[1], len(weight) // groups  # noqa: E741
        parts = []
        for i in range(groups):
            own = slice(i * O, (i + 1) * O)
            of = stride, padding, dilation, act, None if residual is None else residual[..., own], post, None, 1
            parts.append(conv2d(x[..., i * C : (i + 1) * C], weight[own], None if bias is None else bias[own], *of))
        return np.concatenate(parts, -1)
    B, (D, C, kY, kX) = len(x), weight.shape
    if kY == kX == 1 and padding == (0, 0):
        x, stride = x[:, :: stride[0], :: stride[1]], (1, 1)
    apart = padding == (0, 0) and stride == (kY, kX) and (kY == kX == 1 or dilation == (1, 1))
    if apart and post is None and not (kY == kX == 1 and x.strides[-1] == x.itemsize):
        return linear(_patches(x, kY, kX), weight.reshape(D, -1), bias, act, residual)
    height, width = (
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(x.shape[1:3], padding, dilation, (kY, kX), stride, strict=True)
    )
    R = None if residual is None else np.ascontiguousarray(np.broadcast_to(residual, (B, height, width, D)))
    pixels = B * height * width
    if prepared is None and _is_plain(weight, stride, dilation) and pixels >= MIN_PIXELS_PER_CHANNEL * min(C, D):
        prepared = transform(weight)
    if prepared is not None:
        return conv3x3(x, prepared, bias, padding, act, R, post)
    W = weight.transpose(2, 3, 1, 0).reshape(kY * kX * C, D)
    out = result((B, height, width, D), x.dtype)
    work = blocks(B, height, width, max(1, WINDOWS // len(W), min(MIN_WINDOWS, MAX_ELEMENTS // len(W))))

    def block(i: int) -> None:
        own, rows = work[i]
        windows = _windows(x[own], (kY, kX), stride, padding, dilation, rows, width)
        y = out[own, rows].reshape(-1, D)
        _product(windows, W, y)
        finish(y, None if bias is None else bias[None], act, None if R is None else R[own, rows].reshape(-1, D))
        finish(y, None, post, None)

    threads.run(block, len(work), cost=W.size * out.size / D / 40)
    return out


def prepare_conv(weight: np.ndarray, stride: Pair, dilation: Pair) -> np.ndarray | None:
    is_kept = _is_plain(weight, stride, dilation) and weight.size <= MAX_KEPT_ELEMENTS
    return transform(weight) if is_kept else None


def _is_plain(weight: np.ndarray, stride: Pair, dilation: Pair) -> bool:
    D, C, *kernel = weight.shape
    return kernel == [3, 3] and stride == dilation == (1, 1) and C >= MIN_WINOGRAD_CHANNELS <= D


def _windows(
    x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, rows: slice, width: int
) -> np.ndarray:
    """The windows of some rows of output pixels.  x (B, Y, X, C) -> (B rows width, kY kX C)."""
    B, _, _, C = x.shape
    y, z = (
        (own.start * s - p, (own.stop - 1) * s - p + d * (k - 1) + 1)
        for own, s, p, d, k in zip((rows, slice(0, width)), stride, padding, dilation, kernel, strict=True)
    )
    images = pad_block(x, y, z)
    if kernel == (1, 1) and stride == (1, 1):
        return images.reshape(-1, C)
    b, y, z, c = images.strides
    shape = (B, rows.stop - rows.start, width, *kernel, C)
    out = scratch("tiles", shape, x.dtype)
    strides = (b, y * stride[0], z * stride[1], y * dilation[0], z * dilation[1], c)
    np.copyto(out, as_strided(images, shape, strides))
    return out.reshape(-1, math.prod(kernel) * C)


def _product(x: np.ndarray, W: np.ndarray, out: np.ndarray) -> None:
    """out = x @ W; for a small W as a stack of products that are so small that BLAS does not pack them."""
    n = len(x) // STACK_WINDOWS if STACK_WINDOWS * W.size <= MAX_UNPACKED_MNK and blas.needs_no_packing() else 0
    if n:
        whole = n * STACK_WINDOWS
        np.matmul(x[:whole].reshape(n, STACK_WINDOWS, -1), W, out=out[:whole].reshape(n, STACK_WINDOWS, -1))
        x, out = x[whole:], out[whole:]
    if len(x):
        np.matmul(x, W, out=out)


def _patches(x: np.ndarray, kY: int, kX: int) -> np.ndarray:
    """x (B, Y, X, C) -> (B, Y / kY, X / kX, C kY kX), without incomplete windows; feature-major."""
    B, Y, X, C = x.shape
    h, w = Y // kY, X // kX
    x = x[:, : h * kY, : w * kX].reshape(B, h, kY, w, kX, C)
    return logical(x.transpose(5, 2, 4, 0, 1, 3).reshape(C * kY * kX, B * h * w), (B, h, w))


def conv_transpose2d(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, stride: Pair, padding: Pair, act: str | None
) -> np.ndarray:
    (B, Y, X, _), (_, D, kY, kX) = x.shape, weight.shape
    (sy, sx), (py, px) = stride, padding
    full = (Y - 1) * sy + kY, (X - 1) * sx + kX
    W = np.ascontiguousarray(weight.transpose(2, 3, 1, 0))
    pixels = columns(x)
    # If windows neither overlap nor leave gaps, every pixel is written once.
    apart = (kY, kX) == stride
    out = (result if apart else np.zeros)((D, B * full[0] * full[1]), x.dtype)
    planes = out.reshape(D, B, *full)

    def share(i: int) -> None:
        own = slice(i * D // shares, (i + 1) * D // shares)
        for j in range(kY):
            for k in range(kX):
                y = scratch("block", (own.stop - own.start, pixels.shape[1]), x.dtype)
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
    folded = (weight * scale.reshape(shape)).astype(weight.dtype)
    if axis == 0 and weight.ndim == 4:  # in the order in which conv2d reads it
        folded = np.ascontiguousarray(folded.transpose(2, 3, 1, 0)).transpose(3, 2, 0, 1)
    return folded, shift.astype(weight.dtype)


def merge_convs(weights: Sequence[np.ndarray], biases: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    kY, kX = (max(weight.shape[axis] for weight in weights if weight.ndim > 1) for axis in (2, 3))
    total = np.zeros((*weights[0].shape[:2], kY, kX))
    for weight in weights:
        if weight.ndim == 1:
            channels = np.arange(len(weight))
            total[channels, channels % total.shape[1], kY // 2, kX // 2] += weight
            continue
        y, x = weight.shape[2:]
        total[:, :, (kY - y) // 2 : (kY + y) // 2, (kX - x) // 2 : (kX + x) // 2] += weight
    merged = total.astype(weights[0].dtype).transpose(2, 3, 1, 0)  # in the order in which conv2d reads it
    return np.ascontiguousarray(merged).transpose(3, 2, 0, 1), np.sum(biases, 0, np.float64).astype(biases[0].dtype)
