"""Matrices of floating-point numbers as int8 or int4, rounded to nearest.

INT8: a row's largest magnitude becomes 127; on real weights no smaller scale has less squared error.
INT8_32, INT4_32: the same for a block of 32; in int4 the largest becomes -8, whatever its sign, and the block is
rounded once more with the scale that fits the first rounding best in least squares.
"""

from __future__ import annotations

import numpy as np

from ...errors import CheckpointError
from ...quant import QUANT_TYPES, QuantRows, QuantType
from ...quant.kinds import BLOCK
from ...typing import RawTensor
from . import threads
from .scratch import scratch

TILE = 1 << 17  # numbers that are worked on at a time: half a megabyte
FLOAT32 = np.dtype(np.float32)


def quantise(stored: RawTensor, kind_name: str, name: str) -> QuantRows:
    """A matrix (E, D) quantised to INT8, INT8_32 or INT4_32; CheckpointError if it contains NaN or infinity."""
    kind, (E, D) = QUANT_TYPES[kind_name], stored.array.shape
    source = QuantRows(QUANT_TYPES[stored.dtype], D, (stored.array,))
    fields = zip(kind.fields, kind.shapes(E, D), strict=True)
    rows = QuantRows(kind, D, tuple(np.empty(shape, field.dtype) for field, shape in fields))
    step, width = max(1, TILE // max(1, rows.width)), rows.width

    def share(i: int) -> None:
        own = slice(i * step, (i + 1) * step)
        part, out = source[own], rows[own].arrays
        wide = scratch("widened", (len(part), width), FLOAT32)
        wide[:, D:] = 0
        if width == D:
            source.kind.dequantise(part.arrays, wide)
        else:
            wide[:, :D] = part.dequantise()
        with np.errstate(all="ignore"):
            (_rows if kind is QUANT_TYPES["INT8"] else _blocks)(wide, kind, *out)

    threads.run(share, -(-E // step), cost=float(E * D * 4))
    scale = rows.arrays[1]
    if not np.isfinite(scale).all():
        raise CheckpointError(f"tensor {name!r} contains NaN, infinity or numbers too large for {kind.name}'s scales")
    return rows


def _rows(wide: np.ndarray, kind: QuantType, data: np.ndarray, scale: np.ndarray) -> None:
    np.multiply(np.maximum(wide.max(1), -wide.min(1)), FLOAT32.type(1 / 127), out=scale)
    _round(wide, scale[:, None], 127, wide)
    np.copyto(data, wide, casting="unsafe")


def _blocks(wide: np.ndarray, kind: QuantType, data: np.ndarray, scale: np.ndarray) -> None:
    x = wide.reshape(-1, BLOCK)
    if kind is QUANT_TYPES["INT8_32"]:
        q = scratch("rest", x.shape, FLOAT32)
        scale[:] = (np.maximum(x.max(1), -x.min(1)) / 127).reshape(scale.shape)
        _round(x, scale.reshape(-1, 1), 127, q)
        np.copyto(data, q.reshape(wide.shape), casting="unsafe")
        return
    # A row for each place in a block: sums over 32 neighbours would take several times as long.
    places = scratch("rows", (BLOCK, len(x)), FLOAT32)
    np.copyto(places, x.T)
    q, products = scratch("rest", (2, *places.shape), FLOAT32)
    most, least = places.max(0), places.min(0)
    _round(places, np.where(most > -least, most, least) / -8, 8, q)
    best = np.multiply(places, q, out=products).sum(0)
    squares = np.multiply(q, q, out=products).sum(0)
    np.divide(best, squares, out=best, where=squares > 0)
    scale[:] = best.reshape(scale.shape)
    _round(places, scale.reshape(-1), 8, q)
    q += 8
    bits = q.astype(np.uint8)
    np.copyto(data.reshape(-1, BLOCK // 2), (bits[1::2] << 4 | bits[0::2]).T)


def _round(x: np.ndarray, scale: np.ndarray, most: int, out: np.ndarray) -> None:
    """out = x / scale as whole numbers in -most ... 127, or 7 where most is 8."""
    scale = scale.astype(np.float32)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale != 0)
    np.multiply(x, inverse, out=out)
    np.rint(out, out=out)
    np.clip(out, -most, 7 if most == 8 else most, out=out)
