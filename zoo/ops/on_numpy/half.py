"""Matrices that stay in memory, or in their mapped file, as bfloat16 or float16, and are widened a tile at a time.

NumPy has no bfloat16: such a matrix comes as uint16, as in `RawTensor`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from .scratch import scratch

BFLOAT16, FLOAT16 = np.dtype(np.uint16), np.dtype(np.float16)
TILE = 1 << 17  # elements of float32 that are held at a time: half a megabyte stays in the L2 cache

_SHIFT, _UPPER = np.array(16, np.uint32), np.array(0xFFFF0000, np.uint32)


def is_half(x: np.ndarray) -> bool:
    return x.dtype == BFLOAT16 or x.dtype == FLOAT16


def widen(x: np.ndarray) -> np.ndarray:
    """The same numbers as float32."""
    if x.dtype != BFLOAT16:
        return x.astype(np.float32, copy=False)
    bits = x.astype(np.uint32)
    bits <<= _SHIFT
    return bits.view(np.float32)


def operands(X: np.ndarray, weights: Sequence[np.ndarray], rowwise: bool) -> list[list[np.ndarray]]:
    """What the `widened` parts of each weight multiply: X (D, N), (N, D) if rowwise, or its even and odd features."""
    words = [_in_words(W) for W in weights]
    every: list[list[np.ndarray]] = [[X], []]
    if any(words):  # rows of tokens are copied: BLAS takes no steps between neighbours
        every[1] = [np.ascontiguousarray(X[:, k::2]) if rowwise else X[k::2] for k in (0, 1)]
    return [every[word] for word in words]


def _in_words(W: np.ndarray) -> bool:
    """Whether a bfloat16 matrix (E, D) can be seen as words (E, D / 2) of two elements, the even ones below.

    Two passes over words, one for either half, are several times as fast as one over elements.
    """
    if W.dtype != BFLOAT16 or W.shape[1] % 2 or sys.byteorder != "little":
        return False
    row, column = W.strides
    return column == 2 and row % 4 == 0 and W.__array_interface__["data"][0] % 4 == 0


def widened(W: np.ndarray, parts: int) -> Iterator[np.ndarray]:
    """A few rows of a matrix (E, D) in float32, in one part; or in two, of the even columns and then of the odd ones.

    The parts are in the same scratch: use each before the next.
    """
    if parts == 2:
        bits = W.view(np.uint32)
        out = scratch(6, bits.shape, np.dtype(np.float32))
        np.left_shift(bits, _SHIFT, out=out.view(np.uint32))
        yield out
        np.bitwise_and(bits, _UPPER, out=out.view(np.uint32))
        yield out
        return
    out = scratch(6, W.shape, np.dtype(np.float32))
    if W.dtype == BFLOAT16:
        np.left_shift(W, _SHIFT, out=out.view(np.uint32), dtype=np.uint32)
    else:
        np.copyto(out, W)
    yield out


def vector_product(W: np.ndarray, xs: list[np.ndarray], y: np.ndarray) -> None:
    """y (E,) = W @ x for a bfloat16 matrix in words and a single token, xs two of (1, D / 2).

    Decoding spends its time here, so there is as little between the passes as can be: while a thread is in Python, and
    holds its lock, the others wait.
    """
    bits = W.view(np.uint32)
    even, odd = xs[0][0], xs[1][0]
    step = max(8, TILE // max(1, len(even)))
    part = scratch(6, (step, len(even)), np.dtype(np.float32))
    words, rest = part.view(np.uint32), scratch(7, y.shape, y.dtype)
    for a in range(0, len(bits), step):
        now = bits[a : a + step]
        if len(now) < step:
            part, words = part[: len(now)], words[: len(now)]
        np.left_shift(now, _SHIFT, words)
        np.matmul(part, even, y[a : a + step])
        np.bitwise_and(now, _UPPER, words)
        np.matmul(part, odd, rest[a : a + step])
    np.add(y, rest, out=y)
