"""Matrices that stay quantised in memory, or in their mapped file, and are dequantised a tile at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from ...quant import QuantRows, QuantTensor
from .byte_copies import ByteRows
from .scratch import scratch

TILE = 1 << 17  # elements of float32 at a time: half a megabyte fits into the L2 cache

_SHIFT, _UPPER = np.array(16, np.uint32), np.array(0xFFFF0000, np.uint32)


def parts_of(weight: np.ndarray | QuantTensor) -> list[np.ndarray | QuantRows]:
    """The parts of a weight, as arrays if they are float32 or float64."""
    if not isinstance(weight, QuantTensor):
        return [weight]
    return [np.asarray(p.arrays[0]) if p.kind.name in ("F32", "F64") else p for p in weight.parts]


def operands(
    X: np.ndarray, weights: Sequence[np.ndarray | QuantRows | ByteRows], rowwise: bool
) -> list[list[np.ndarray]]:
    """The factors of each weight's `widen_rows` parts: X (D, N), (N, D) if rowwise, or its even and odd features."""
    words = [_in_words(W) for W in weights]
    every: list[list[np.ndarray]] = [[X], []]
    if any(words):  # rows are copied: BLAS needs neighbours
        every[1] = [np.ascontiguousarray(X[:, k::2]) if rowwise else X[k::2] for k in (0, 1)]
    return [every[word] for word in words]


def _in_words(W: np.ndarray | QuantRows | ByteRows) -> bool:
    """True if a bfloat16 matrix (E, D) can be viewed as words (E, D / 2), the even elements in the lower halves.

    Two passes over words, one for each half, are several times as fast as one over elements.
    """
    if not isinstance(W, QuantRows) or W.kind.name != "BF16" or W.columns % 2 or sys.byteorder != "little":
        return False
    data = W.arrays[0]
    row, column = data.strides
    return column == 2 and row % 4 == 0 and data.__array_interface__["data"][0] % 4 == 0


def widen_rows(W: np.ndarray | QuantRows, parts: int) -> Iterator[np.ndarray]:
    """Yield rows of a matrix (E, D) in float32: one part, or two, of the even columns and then of the odd ones.

    The parts use the same scratch: use each before the next.  INT8 is scaled by `scale` after the product.
    """
    float32 = np.dtype(np.float32)
    if isinstance(W, np.ndarray):
        yield W
    elif parts == 2:
        bits = W.arrays[0].view(np.uint32)
        out = scratch("widened", bits.shape, float32)
        np.left_shift(bits, _SHIFT, out=out.view(np.uint32))
        yield out
        np.bitwise_and(bits, _UPPER, out=out.view(np.uint32))
        yield out
    else:
        out = scratch("widened", (len(W), W.width), float32)
        if W.kind.name == "INT8":
            np.copyto(out, W.arrays[0])
        else:
            W.kind.dequantise([np.asarray(array) for array in W.arrays], out)
        yield out[:, : W.columns]


def scale(W: np.ndarray | QuantRows, y: np.ndarray) -> None:
    """Multiply the product of `widen_rows` rows, y (E, N), by the scales of rows, if they have any."""
    if isinstance(W, QuantRows) and W.kind.name == "INT8":
        np.multiply(y, W.arrays[1][:, None], out=y)


def words_product(W: QuantRows, xs: list[np.ndarray], y: np.ndarray) -> None:
    """y (E,) = W @ x for a bfloat16 matrix in words and a single token, xs two of (1, D / 2).

    Decoding spends its time here, so there is little Python between the passes: it holds the lock that other threads
    wait for.
    """
    bits = W.arrays[0].view(np.uint32)
    even, odd = xs[0][0], xs[1][0]
    step = max(8, TILE // max(1, len(even)))
    part = scratch("widened", (step, len(even)), np.dtype(np.float32))
    words, rest = part.view(np.uint32), scratch("rest", y.shape, y.dtype)
    for a in range(0, len(bits), step):
        now = bits[a : a + step]
        if len(now) < step:
            part, words = part[: len(now)], words[: len(now)]
        np.left_shift(now, _SHIFT, words)
        np.matmul(part, even, y[a : a + step])
        np.bitwise_and(now, _UPPER, words)
        np.matmul(part, odd, rest[a : a + step])
    np.add(y, rest, out=y)


def groups_product(W: QuantRows, x: np.ndarray, y: np.ndarray) -> None:
    """y (E,) = W @ x for a matrix of whole numbers with a scale for each group, x (D,).

    A group's numbers times x are summed before they are scaled: there are 16 or more times as many numbers as sums.
    """
    assert W.kind.affine is not None
    if W.width > W.columns:
        x = np.pad(x, (0, W.width - W.columns))
    step = max(8, 4 * TILE // max(1, W.width))  # of many passes: fewer, larger tiles cost less Python
    for a in range(0, len(W), step):
        now = W[a : a + step]
        codes, scale, offset, zero = W.kind.affine([np.asarray(array) for array in now.arrays])
        R, G, N = codes.shape
        whole = codes if isinstance(zero, np.ndarray) or not zero else codes.view(np.int8) - np.int8(zero)
        numbers = _widen_records(whole, y.dtype)
        sums = scratch("rest", (G, R, 1), y.dtype)
        xs = x.reshape(G, N)
        np.matmul(numbers.transpose(1, 0, 2), xs[..., None], out=sums)
        out = y[a : a + step]
        np.einsum("gr,rg->r", sums[..., 0], scale, out=out)
        if isinstance(zero, np.ndarray):
            out -= (scale * zero) @ xs.sum(axis=1)
        if offset is not None:
            out += offset @ xs.sum(axis=1)


def _widen_records(codes: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Codes (R, G, N) as numbers; of records, with the bytes between their codes: one long row is copied faster."""
    (R, G, N), (_, span, each) = codes.shape, codes.strides
    if each != 1 or not N < span <= 2 * N or not R * G:
        numbers = scratch("widened", (R, G, N), dtype)
        np.copyto(numbers, codes)
        return numbers
    records = scratch("widened", (R, G, span), dtype)
    rows = np.lib.stride_tricks.as_strided(codes, (R, (G - 1) * span + N), (codes.strides[0], 1), writeable=False)
    np.copyto(records.reshape(R, -1)[:, : rows.shape[1]], rows)
    return records[..., :N]
