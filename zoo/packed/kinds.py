"""The kinds that zoo writes itself, and where each number lies.  Little-endian, rows one after the other.

Of a matrix of E rows and D columns, with B = ceil(D / 32) blocks where there are any:

F64, F32, F16   data (E, D) of that type.
BF16            data (E, D) uint16: the upper halves of float32.
INT8            data (E, D) int8, scale (E,) float32: number = data[e, d] * scale[e].
INT8_32         data (E, 32 B) int8, scale (E, B) float16: number = data[e, d] * scale[e, d // 32].
INT4_32         data (E, 16 B) uint8, scale (E, B) float16: byte d // 2 of a row holds number d in its lower four bits
                if d is even, in its upper four if d is odd: number = (those bits - 8) * scale[e, d // 32].
UINT4_32        as INT4_32, and zero (E, B) uint8 in the place of 8.

INT8 data lie in -127 ... 127.  Columns beyond D are zero numbers (bits 8 of INT4_32).  MatMulNBits of ONNX Runtime
has the same order, its data being uint8 [E, B, 32 or 16]: those of INT4_32 as they are, those of INT8_32 plus 128.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..typing import Array
from .ggml import GGML
from .matrix import Field, Kind, Packed, Rows

BLOCK = 32


def _copy(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
    np.copyto(out, arrays[0])


def _bfloat16(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
    np.left_shift(arrays[0], 16, out=out.view(np.uint32), dtype=np.uint32)


def _int8(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
    data, scale = arrays
    np.multiply(data, scale[:, None], out=out)


def _scale(out: np.ndarray, scale: np.ndarray) -> None:
    blocks = out.reshape(len(out), -1, BLOCK)
    np.multiply(blocks, scale.astype(np.float32)[..., None], out=blocks)


def _int8_blocks(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
    data, scale = arrays
    np.copyto(out, data)
    _scale(out, scale)


def _int4_blocks(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
    data, scale = arrays
    np.copyto(out[:, 0::2], data & 15)
    np.copyto(out[:, 1::2], data >> 4)
    out -= 8
    _scale(out, scale)


def _uint4_blocks(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
    data, scale, zero = arrays
    np.copyto(out[:, 0::2], data & 15)
    np.copyto(out[:, 1::2], data >> 4)
    blocks = out.reshape(len(out), -1, BLOCK)
    blocks -= zero[..., None]
    _scale(out, scale)


F64, F32, F16 = (
    Kind(name, 1, (Field("data", dtype, 1),), _copy, plain=True)
    for name, dtype in (("F64", "float64"), ("F32", "float32"), ("F16", "float16"))
)
BF16 = Kind("BF16", 1, (Field("data", "uint16", 1),), _bfloat16, plain=True)
INT8 = Kind("INT8", 1, (Field("data", "int8", 1), Field("scale", "float32", 0)), _int8)
INT8_32 = Kind("INT8_32", BLOCK, (Field("data", "int8", BLOCK), Field("scale", "float16", 1)), _int8_blocks)
INT4_32 = Kind("INT4_32", BLOCK, (Field("data", "uint8", BLOCK // 2), Field("scale", "float16", 1)), _int4_blocks)
UINT4_32 = Kind("UINT4_32", BLOCK, (*INT4_32.fields, Field("zero", "uint8", 1)), _uint4_blocks)

# By name: what a file may name.  Others that are read elsewhere add themselves.
KINDS: dict[str, Kind] = {kind.name: kind for kind in (F64, F32, F16, BF16, INT8, INT8_32, INT4_32, UINT4_32, *GGML)}


def plain(*arrays: Array) -> Packed:
    """A matrix of several (E, D) of floating-point numbers, whose rows follow one another."""
    kinds = {"float64": F64, "float16": F16}
    return Packed([Rows(kinds.get(str(array.dtype), F32), array.shape[1], (array,)) for array in arrays])
