"""Convolutions over time, of blocks of channels."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from . import threads
from .activations import finish
from .scratch import result, scratch

WINDOWS = 1 << 19  # elements of a block's windows, which about fit into the L2 cache


def grouped_conv1d(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, groups: int, act: str | None) -> np.ndarray:
    (B, T, _), (O, c, k) = x.shape, weight.shape  # noqa: E741
    o, step = O // groups, max(1, WINDOWS // (k * c))
    out = result((B, T, O), x.dtype)
    starts = range(0, T, step)

    def block(i: int) -> None:
        g, b = divmod(i, B)
        own, outputs = slice(g * c, (g + 1) * c), slice(g * o, (g + 1) * o)
        padded = scratch("block", (T + k - 1, c), x.dtype)
        padded[: k // 2] = padded[k // 2 + T :] = 0
        padded[k // 2 : k // 2 + T] = x[b, :, own]
        W = np.ascontiguousarray(weight[outputs].transpose(2, 1, 0)).reshape(k * c, o)
        row, number = padded.strides
        for start in starts:  # the numbers of a window lie one after the other
            n = min(step, T - start)
            windows = scratch("tiles", (n, k * c), x.dtype)
            np.copyto(windows, as_strided(padded[start:], (n, k * c), (row, number)))
            y = scratch("product", (n, o), x.dtype)
            np.matmul(windows, W, out=y)
            finish(y, bias[None, outputs], act, None)
            out[b, start : start + n, outputs] = y

    threads.run(block, groups * B, cost=weight.size * T * B / 40)
    return out


def fold_weight_norm(length: np.ndarray, direction: np.ndarray) -> np.ndarray:
    wide = direction.astype(np.float64)
    norm = np.sqrt(np.square(wide).sum((0, 1), keepdims=True))
    with np.errstate(invalid="ignore"):  # a direction of zeros, which has none; in graphs' models all weights are 0
        return (length * wide / norm).astype(direction.dtype)
