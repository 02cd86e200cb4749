"""Copies of packed matrices with a byte for each number, for products of one row.

Taking the bits of llama.cpp's blocks apart takes longer than to multiply by them.  A matrix that multiplies a single
row for the second time, as those of a decoder do for every token, is taken apart once, until the copies of all models
have MAX_BYTES.  They go with the matrix.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np

from ...quant import QuantRows
from ...quant.matrix import Affine, Field, QuantType

MAX_BYTES = 512 << 20
# Types whose numbers are bytes already.
IN_BYTES = frozenset({"INT8", "INT8_32", "INT8_OFFSET", "INT8_K", "INT8_K16", "Q8_0"})

_copies: WeakKeyDictionary[QuantRows, QuantRows | None] = WeakKeyDictionary()  # None: it was used once
_lock = threading.Lock()


def byte_copy(W: QuantRows) -> QuantRows:
    """A matrix of whole numbers as it is best multiplied by one row: its copy, or as it is."""
    if W.kind.is_plain or W.kind.name in IN_BYTES:
        return W
    with _lock:
        if W not in _copies:
            _copies[W] = None
            return W
        copy = _copies[W]
        if copy is None:
            bytes_left = MAX_BYTES - sum(one.nbytes for one in _copies.values() if one is not None)
            if len(W) * W.width > bytes_left:
                return W
            copy = _copies[W] = _unpack(W)
        return copy


def _unpack(W: QuantRows) -> QuantRows:
    """In tiles of rows: the parts of a large matrix in float32 would take several times its memory."""
    assert W.kind.affine is not None
    R, width, step = len(W), W.width, max(8, (1 << 20) // max(1, W.width))
    data, rest = np.empty((R, width), np.int8), []
    for a in range(0, R, step):
        codes, scale, offset, zero = W.kind.affine([np.asarray(array) for array in W[a : a + step].arrays])
        if isinstance(zero, np.ndarray):  # a file may have any byte there
            zero, offset = 0, -scale * zero
        data[a : a + step] = (codes.view(np.int8) - np.int8(zero)).reshape(-1, width)
        rest.append((scale,) if offset is None else (scale, offset))
    scales = tuple(np.concatenate(parts) for parts in zip(*rest, strict=True))
    group = width // scales[0].shape[1]
    return QuantRows(_kind(W.kind.block, group, len(scales) == 2), W.columns, (data, *scales))


def _kind(block: int, group: int, has_offset: bool) -> QuantType:
    """The type of copies: in memory alone, so that it has no name in files."""

    def affine(arrays: Sequence[np.ndarray]) -> Affine:
        data, *scales = arrays
        return Affine(data.reshape(*scales[0].shape, group), *scales)

    per_block = block // group
    fields = Field("data", "int8", block), Field("scale", "float32", per_block), Field("offset", "float32", per_block)
    return QuantType("UNPACKED", block, fields[: 3 if has_offset else 2], affine=affine)
