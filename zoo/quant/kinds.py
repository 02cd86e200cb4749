"""The QuantTypes that zoo writes, and their layouts: little-endian, row after row.

E rows and D columns; B = ceil(D / 32) blocks:

F64, F32, F16   data (E, D) of that type.
BF16            data (E, D) uint16: the upper halves of float32.
INT8            data (E, D) int8, scale (E,) float32: number = data[e, d] * scale[e].
INT8_32         data (E, 32 B) int8, scale (E, B) float16: number = data[e, d] * scale[e, d // 32].
INT4_32         data (E, 16 B) uint8, scale (E, B) float16: byte d // 2 of a row holds number d in its lower four bits
                if d is even, in its upper four if d is odd: number = (those bits - 8) * scale[e, d // 32].
UINT4_32        as INT4_32, and zero (E, B) uint8 in the place of 8.
UINT4_OFFSET    data as of INT4_32; scale, offset (E, B) float16:
                number = bits * scale[e, d // 32] + offset[e, d // 32].
INT8_OFFSET     likewise, of data (E, 32 B) int8.

FP4_32          OCP's MXFP4: data (E, 16 B) uint8, two numbers in a byte as of INT4_32, each a sign and three bits for
                0, 0.5, 1, 1.5, 2, 3, 4 or 6; scale (E, B) uint8: number = that * 2 ** (scale[e, d // 32] - 127).

Types whose scales and offsets are integers, times a step for each 256 numbers; C = ceil(D / 256):

UINT4_K         data (E, 128 C) as of INT4_32; scale, offset (E, 8 C) uint8; scale_step, offset_step (E, C) float16:
                number = bits * scale[e, d // 32] * scale_step[e, d // 256]
                    + offset[e, d // 32] * offset_step[e, d // 256].
UINT4_K16       likewise, with a scale and an offset for each 16 numbers, (E, 16 C).
INT8_K          as UINT4_K, of data (E, 256 C) int8.
INT8_K16        data (E, 256 C), scale (E, 16 C) int8; scale_step (E, C) float16:
                number = data[e, d] * scale[e, d // 16] * scale_step[e, d // 256].

INT8 data are in -127 ... 127.  Columns beyond D are zeros (bits 8 in INT4_32) if there are no offsets.  MatMulNBits of
ONNX Runtime has the same order in uint8 [E, B, 32 or 16]: INT4_32 unchanged, INT8_32 plus 128.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..typing import Array
from .ggml import FP4_CODES, GGML
from .matrix import Affine, Field, QuantRows, QuantTensor, QuantType

BLOCK = 32


def _copy(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
    np.copyto(out, arrays[0])


def _float16(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
    """NumPy's own conversion takes five times as long where it has no instruction for it."""
    bits = out.view(np.int32)
    np.copyto(bits, arrays[0].view(np.int16))
    bits <<= 13
    bits &= -0x70002000  # the sign, and the exponent and fraction below it
    out *= np.float32(2.0**112)  # from float16's bias to float32's
    if out.size and not max(out.max(), -out.min()) < 65536:  # infinity and NaN
        np.copyto(out, arrays[0])


def _bfloat16(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
    np.left_shift(arrays[0], 16, out=out.view(np.uint32), dtype=np.uint32)


def _int8(arrays: Sequence[np.ndarray]) -> Affine:
    data, scale = arrays
    return Affine(data[:, None], scale[:, None])


def _in_blocks(
    data: np.ndarray,
    scale: np.ndarray,
    zero: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    scale_step: np.ndarray | None = None,
    offset_step: np.ndarray | None = None,
) -> Affine:
    codes = data if data.dtype == np.int8 else _nibbles(data)
    eight = 8 if data.dtype == np.uint8 and offset is None else 0
    return Affine(
        codes.reshape(*scale.shape, codes.size // scale.size if scale.size else 1),
        _factors(scale, scale_step),
        None if offset is None else _factors(offset, offset_step),
        eight if zero is None else zero,
    )


def _nibbles(data: np.ndarray) -> np.ndarray:
    """Bytes (..., n) -> (..., 2 n): the lower four bits of each, then its upper ones."""
    words = data.astype("<u2")
    words |= words << 4
    words &= 0x0F0F
    return words.view(np.uint8)


def _factors(each: np.ndarray, step: np.ndarray | None) -> np.ndarray:
    """Factors (R, blocks), times the steps (R, C) if there are any -> (R, blocks) float32."""
    wide = each.astype(np.float32)
    if step is not None:
        wide *= np.repeat(step, each.shape[1] // step.shape[1], axis=1)
    return wide


def _kind(name: str, block: int, **fields: tuple[str, int]) -> QuantType:
    """A QuantType with a scale for each block.  fields: name -> type, and count in a block."""

    def affine(arrays: Sequence[np.ndarray]) -> Affine:
        return _in_blocks(**kind.name_fields(arrays))

    kind = QuantType(name, block, tuple(Field(field, *of) for field, of in fields.items()), affine=affine)
    return kind


def _fp4(arrays: Sequence[np.ndarray]) -> Affine:
    data, scale = arrays
    return Affine(FP4_CODES[_nibbles(data)].reshape(*scale.shape, -1), np.ldexp(np.float32(1), scale.astype(int) - 128))


def _is_number(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [np.where(np.asarray(arrays[1]) == 255, np.nan, 1)]  # all ones is NaN


F64, F32 = (
    QuantType(name, 1, (Field("data", dtype, 1),), _copy) for name, dtype in (("F64", "float64"), ("F32", "float32"))
)
F16 = QuantType("F16", 1, (Field("data", "float16", 1),), _float16)
BF16 = QuantType("BF16", 1, (Field("data", "uint16", 1),), _bfloat16)
INT8 = QuantType("INT8", 1, (Field("data", "int8", 1), Field("scale", "float32", 0)), affine=_int8)

_FLOAT16 = ("float16", 1)
_OFFSETS = {"scale": _FLOAT16, "offset": _FLOAT16}
_STEPS, _STEPS_16 = (
    {"scale": ("uint8", n), "offset": ("uint8", n), "scale_step": _FLOAT16, "offset_step": _FLOAT16} for n in (8, 16)
)
BLOCK_TYPES = (
    _kind("INT8_32", BLOCK, data=("int8", 32), scale=_FLOAT16),
    _kind("INT4_32", BLOCK, data=("uint8", 16), scale=_FLOAT16),
    _kind("UINT4_32", BLOCK, data=("uint8", 16), scale=_FLOAT16, zero=("uint8", 1)),
    _kind("UINT4_OFFSET", BLOCK, data=("uint8", 16), **_OFFSETS),
    _kind("INT8_OFFSET", BLOCK, data=("int8", 32), **_OFFSETS),
    _kind("UINT4_K", 256, data=("uint8", 128), **_STEPS),
    _kind("UINT4_K16", 256, data=("uint8", 128), **_STEPS_16),
    _kind("INT8_K", 256, data=("int8", 256), **_STEPS),
    _kind("INT8_K16", 256, data=("int8", 256), scale=("int8", 16), scale_step=_FLOAT16),
)

_FP4_FIELDS = (Field("data", "uint8", 16), Field("scale", "uint8", 1))
FP4 = QuantType("FP4_32", BLOCK, _FP4_FIELDS, affine=_fp4, scales=_is_number)

# The types that a file may name.
QUANT_TYPES: dict[str, QuantType] = {kind.name: kind for kind in (F64, F32, F16, BF16, INT8, *BLOCK_TYPES, FP4, *GGML)}


def float_tensor(*arrays: Array) -> QuantTensor:
    """A QuantTensor of floating-point matrices (E, D), one below the other."""
    kinds = {"float64": F64, "float16": F16}
    return QuantTensor([QuantRows(kinds.get(str(array.dtype), F32), array.shape[1], (array,)) for array in arrays])
