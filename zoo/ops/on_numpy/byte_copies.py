"""Copies of packed matrices with a byte for each number, for products of one row.

Taking the bits of llama.cpp's blocks apart takes longer than to multiply by them.  A matrix that multiplies a single
row for the second time, as those of a decoder do for every token, is taken apart once, until the copies of all models
have MAX_BYTES.  They go with the matrix.

Shapes: R rows in G groups of N numbers that share a scale.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from ...files.pages import release
from ...quant import QuantRows
from .scratch import scratch

MAX_BYTES = 512 << 20
# Types whose numbers are bytes already, and lie well for a product.
IN_BYTES = frozenset({"INT8", "INT8_32", "INT8_OFFSET", "INT8_K", "INT8_K16"})
TILE = 1 << 20  # numbers that are widened at a time: few enough for caches, many enough for little Python


@dataclass(frozen=True, eq=False)
class ByteRows:
    """Rows of a matrix: number = byte * scale + offset.

    The rows are the last axis: BLAS then adds whole vectors, and a group's 32 numbers would be too short for its sums.
    """

    numbers: np.ndarray  # (G, N, R) int8
    scale: np.ndarray  # (G, R) float32
    offset: np.ndarray | None  # (G, R) float32; None: 0

    def __len__(self) -> int:
        return self.scale.shape[1]

    def __getitem__(self, rows: slice) -> ByteRows:
        offset = None if self.offset is None else self.offset[:, rows]
        return ByteRows(self.numbers[..., rows], self.scale[:, rows], offset)

    @property
    def nbytes(self) -> int:
        return self.numbers.nbytes + self.scale.nbytes + (0 if self.offset is None else self.offset.nbytes)

    def multiply(self, x: np.ndarray, y: np.ndarray) -> None:
        """y (R,) = the rows times x (D,)."""
        G, N, R = self.numbers.shape
        if len(x) < G * N:
            x = np.pad(x, (0, G * N - len(x)))
        x = x.reshape(G, 1, N)
        numbers, sums = scratch("widened", (G, N, R), y.dtype), scratch("rest", (G, 1, R), y.dtype)
        np.copyto(numbers, self.numbers)
        np.matmul(x, numbers, out=sums)
        np.einsum("gr,gr->r", sums[:, 0], self.scale, out=y)
        if self.offset is not None:
            y += x.sum(axis=(1, 2)) @ self.offset


_copies: WeakKeyDictionary[QuantRows, tuple[ByteRows, ...]] = WeakKeyDictionary()  # (): it was used once
_sizes: list[int] = []  # bytes of the copies
_lock = threading.Lock()


def byte_copies(W: QuantRows) -> Sequence[QuantRows | ByteRows]:
    """A matrix of whole numbers as it is best multiplied by one row: its copy in tiles of rows, or as it is."""
    if W.kind.is_plain or W.kind.name in IN_BYTES:
        return (W,)
    with _lock:
        copy = _copies.get(W)
        if copy is None:
            _copies[W] = ()
            return (W,)
        if not copy:
            if len(W) * W.width * 5 // 4 > MAX_BYTES - sum(_sizes):  # scales and offsets take up to a quarter
                return (W,)
            copy = _copies[W] = _unpack(W)
            _sizes.append(nbytes := sum(one.nbytes for one in copy))
            weakref.finalize(W, _sizes.remove, nbytes).atexit = False
        return copy


def _unpack(W: QuantRows) -> tuple[ByteRows, ...]:
    step = max(32, TILE // max(1, W.width) // 32 * 32)
    found = []
    for a in range(0, len(W), step):
        found.append(_unpack_rows(rows := W[a : a + step]))
        for array in rows.arrays:
            release(array)
    return tuple(found)


def _unpack_rows(W: QuantRows) -> ByteRows:
    assert W.kind.affine is not None
    codes, scale, offset, zero = W.kind.affine([np.asarray(array) for array in W.arrays])
    if isinstance(zero, np.ndarray):  # a file may have any byte there
        zero, offset = 0, -scale * zero
    (R, G, N), numbers = codes.shape, np.empty((codes.shape[1] * codes.shape[2], len(codes)), np.int8)
    codes = (codes.view(np.int8) - np.int8(zero)).reshape(R, G * N)
    for a in range(0, R, 128):  # parts that caches hold are transposed in half the time
        numbers[:, a : a + 128] = codes[a : a + 128].T
    offset = None if offset is None else np.ascontiguousarray(offset.T)
    return ByteRows(numbers.reshape(G, N, R), np.ascontiguousarray(scale.T), offset)
