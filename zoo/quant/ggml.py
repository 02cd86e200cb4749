"""llama.cpp's types: a record for each block of 32 or 256 numbers, of one or more scales and the numbers' bits.

A matrix of E rows and D columns has one field, data (E, D / block * bytes of a record) uint8.  The records and formulas
are those of ggml's ggml-common.h and ggml-quants.c; `d` and `m` (K: `dmin`) are float16.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .matrix import Affine, Field, QuantType

# The numbers of four bits in MXFP4, times two.
FP4_CODES = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)
Records = np.ndarray  # (..., B) of a type's record
f32 = np.float32
# The numbers of four bits in IQ4_NL and IQ4_XS.
IQ4_CODES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)


def _nibbles(qs: np.ndarray, width: int) -> np.ndarray:
    """Bytes (..., n * width) -> (..., 2 * n * width): the lower halves of `width` of them, then the upper."""
    part = np.dtype((np.void, width))  # copied whole: several times as fast as byte by byte
    bytes_ = np.ascontiguousarray(qs.view(part)).view(np.uint8)
    out = np.empty((*bytes_.shape[:-1], bytes_.shape[-1] // width, 2), part)
    out[..., 0], out[..., 1] = (bytes_ & 15).view(part), (bytes_ >> 4).view(part)
    return out.reshape(*out.shape[:-2], 2 * out.shape[-2]).view(np.uint8)


def _fifth_bits(qh: np.ndarray) -> np.ndarray:
    """Bytes (..., 4) -> (..., 32): 16 for each bit that is set, 0 for others, from the lowest of the first byte."""
    return np.unpackbits(qh, axis=-1, bitorder="little") << 4


def _to_float32(scale: np.ndarray) -> np.ndarray:
    """float16 (...) -> float32 (..., 1)."""
    return scale.astype(f32)[..., None]


def _q8_0(x: Records) -> Affine:
    return Affine(x["qs"], _to_float32(x["d"]))


def _q4_0(x: Records) -> Affine:
    return Affine(_nibbles(x["qs"], 16), _to_float32(x["d"]), zero=8)


def _q4_1(x: Records) -> Affine:
    return Affine(_nibbles(x["qs"], 16), _to_float32(x["d"]), _to_float32(x["m"]))


def _q5_0(x: Records) -> Affine:
    return Affine(_nibbles(x["qs"], 16) | _fifth_bits(x["qh"]), _to_float32(x["d"]), zero=16)


def _q5_1(x: Records) -> Affine:
    return Affine(_nibbles(x["qs"], 16) | _fifth_bits(x["qh"]), _to_float32(x["d"]), _to_float32(x["m"]))


def _scales_and_offsets(x: Records) -> tuple[np.ndarray, np.ndarray]:
    """The scales of the eight parts of a block, and the negative minima: two of (..., 8) float32.

    They have six bits each, in 12 bytes: the first four bytes have scales 0-3, the next four minima 0-3, the last four
    the lower four bits of scales and minima 4-7, whose upper two bits are the upper two of the first eight bytes.
    """
    low, high, both = (x["scales"][..., i : i + 4] for i in (0, 4, 8))
    scales = np.concatenate([low & 63, both & 15 | low >> 2 & 48], axis=-1)
    minima = np.concatenate([high & 63, both >> 4 | high >> 2 & 48], axis=-1)
    return _to_float32(x["d"]) * scales, -_to_float32(x["dmin"]) * minima


def _q4_k(x: Records) -> Affine:
    return Affine(_nibbles(x["qs"], 32), *_scales_and_offsets(x))


def _q5_k(x: Records) -> Affine:
    fifth = (x["qh"][..., None, :] >> np.arange(8, dtype=np.uint8)[:, None] & 1) << 4
    bits = _nibbles(x["qs"], 32)
    return Affine(bits | fifth.reshape(bits.shape), *_scales_and_offsets(x))


def _q6_k(x: Records) -> Affine:
    low = _nibbles(x["ql"], 64)
    high = x["qh"].reshape(*x.shape, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    return Affine(low | high.reshape(low.shape) << 4, _to_float32(x["d"]) * x["scales"], zero=32)


def _two_bits(qs: np.ndarray) -> np.ndarray:
    """Bytes (..., 64) -> (..., 256): of each 32 of them the lowest two bits, then the next two, ..."""
    bits = qs.reshape(*qs.shape[:-1], 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    return bits.reshape(*qs.shape[:-1], 256)


def _q2_k(x: Records) -> Affine:
    scales = x["scales"]
    return Affine(_two_bits(x["qs"]), _to_float32(x["d"]) * (scales & 15), -_to_float32(x["dmin"]) * (scales >> 4))


def _q3_k(x: Records) -> Affine:
    """Each scale has six bits, less 32: in 12 bytes, the lower four of all 16, then the upper two of them.

    Codes are in 4 ... 11 for the numbers -4 ... 3.
    """
    bits = _two_bits(x["qs"])
    third = x["hmask"][..., None, :] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    low, high = x["scales"][..., :8], x["scales"][..., 8:]
    upper = np.concatenate([high >> shift & 3 for shift in (0, 2, 4, 6)], axis=-1) << 4
    scales = (np.concatenate([low & 15, low >> 4], axis=-1) | upper).view(np.int8) - np.int8(32)
    codes = (bits | third.reshape(bits.shape) << 2) + np.uint8(4)
    return Affine(codes, _to_float32(x["d"]) * scales, zero=8)


def _iq4_nl(x: Records) -> Affine:
    return Affine(IQ4_CODES[_nibbles(x["qs"], 16)], _to_float32(x["d"]))


def _iq4_xs(x: Records) -> Affine:
    """Each scale has six bits, less 32: the lower four in scales_l, the upper two in the 16 bits of scales_h."""
    low = np.stack([x["scales_l"] & 15, x["scales_l"] >> 4], axis=-1).reshape(*x.shape, 8)
    high = (x["scales_h"][..., None] >> np.arange(0, 16, 2, dtype=np.uint16) & 3).astype(np.uint8)
    scales = (low | high << 4).view(np.int8) - np.int8(32)
    return Affine(IQ4_CODES[_nibbles(x["qs"], 16)], _to_float32(x["d"]) * scales)


def _mxfp4(x: Records) -> Affine:
    return Affine(FP4_CODES[_nibbles(x["qs"], 16)], np.ldexp(f32(1), x["e"].astype(int) - 128)[..., None])


def _kind(name: str, block: int, affine: Callable[[Records], Affine], **fields: str) -> QuantType:
    record = np.dtype(list(fields.items()))
    halves = [field for field, dtype in fields.items() if dtype == "<f2"]

    def records(arrays: Sequence[Any]) -> Records:
        data = np.asarray(arrays[0])
        return np.ascontiguousarray(data).view(record)

    def of_rows(arrays: Sequence[np.ndarray]) -> Affine:
        """Records (R, B) -> codes (R, groups, numbers of one), the rest (R, groups)."""
        found = records(arrays)
        R, B = found.shape
        codes, scale, offset, zero = affine(found)
        G = B * math.prod(scale.shape[2:])
        scale, offset = scale.reshape(R, G), None if offset is None else offset.reshape(R, G)
        return Affine(codes.reshape(R, G, B * block // max(G, 1)), scale, offset, zero)

    def scales(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        found = records(arrays)
        return [found[field] for field in halves]

    return QuantType(name, block, (Field("data", "uint8", record.itemsize),), affine=of_rows, scales=scales)


GGML: tuple[QuantType, ...] = (
    _kind("Q8_0", 32, _q8_0, d="<f2", qs="(32,)i1"),
    _kind("Q4_0", 32, _q4_0, d="<f2", qs="(16,)u1"),
    _kind("Q4_1", 32, _q4_1, d="<f2", m="<f2", qs="(16,)u1"),
    _kind("Q5_0", 32, _q5_0, d="<f2", qh="(4,)u1", qs="(16,)u1"),
    _kind("Q5_1", 32, _q5_1, d="<f2", m="<f2", qh="(4,)u1", qs="(16,)u1"),
    _kind("MXFP4", 32, _mxfp4, e="u1", qs="(16,)u1"),
    _kind("IQ4_NL", 32, _iq4_nl, d="<f2", qs="(16,)u1"),
    _kind("IQ4_XS", 256, _iq4_xs, d="<f2", scales_h="<u2", scales_l="(4,)u1", qs="(128,)u1"),
    _kind("Q2_K", 256, _q2_k, scales="(16,)u1", qs="(64,)u1", d="<f2", dmin="<f2"),
    _kind("Q3_K", 256, _q3_k, hmask="(32,)u1", qs="(64,)u1", scales="(12,)u1", d="<f2"),
    _kind("Q4_K", 256, _q4_k, d="<f2", dmin="<f2", scales="(12,)u1", qs="(128,)u1"),
    _kind("Q5_K", 256, _q5_k, d="<f2", dmin="<f2", scales="(12,)u1", qh="(32,)u1", qs="(128,)u1"),
    _kind("Q6_K", 256, _q6_k, ql="(128,)u1", qh="(64,)u1", scales="(16,)i1", d="<f2"),
)
