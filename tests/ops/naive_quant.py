"""Quantised matrices, a number at a time in float64: the naive twin of `zoo.quant`."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np


def dequantise(matrix):
    """The numbers of a QuantTensor (E, D), one at a time."""
    return np.concatenate([[_row(part, e) for e in range(len(part))] for part in matrix.parts])


def _row(part, e):
    fields = part.kind.name_fields([array[e] for array in part.arrays])
    data = fields["data"]
    match part.kind.name:
        case "F64" | "F32" | "F16":
            return np.asarray(data, np.float64)
        case "BF16":
            return np.asarray((data.astype(np.uint32) << 16).view(np.float32), np.float64)
        case "INT8":
            return np.array([float(data[d]) * float(fields["scale"]) for d in range(part.columns)])
        case "FP4_32":
            codes, scales = _nibbles(data), fields["scale"]
            return np.array([_fp4(codes[d]) * 2.0 ** (int(scales[d // 32]) - 127) for d in range(part.columns)])
        case "UINT4_32":
            data, zeros, scales = _nibbles(data), fields["zero"], fields["scale"]
            return np.array([(data[d] - int(zeros[d // 32])) * float(scales[d // 32]) for d in range(part.columns)])
        case "INT4_32" | "INT8_32" | "UINT4_OFFSET" | "INT8_OFFSET" | "UINT4_K" | "UINT4_K16" | "INT8_K" | "INT8_K16":
            data = [n - 8 for n in _nibbles(data)] if part.kind.name == "INT4_32" else data
            data = _nibbles(data) if part.kind.name.startswith("UINT4") else data
            size = 16 if part.kind.name.endswith("K16") else 32
            out = []
            for d in range(part.columns):
                scale, offset = float(fields["scale"][d // size]), 0.0
                if "scale_step" in fields:
                    scale *= float(fields["scale_step"][d // 256])
                if "offset" in fields:
                    offset = float(fields["offset"][d // size])
                if "offset_step" in fields:
                    offset *= float(fields["offset_step"][d // 256])
                out.append(int(data[d]) * scale + offset)
            return np.array(out)
    return numbers(part.kind.name, data)[: part.columns]


def _nibbles(data):
    return [int(byte) >> shift & 15 for byte in data for shift in (0, 4)]


def numbers(kind: str, data: np.ndarray) -> np.ndarray:
    """A row's bytes (blocks * size,) -> its numbers (blocks * block,) float64."""
    block, size, number = KINDS[kind]
    records = [data[at : at + size].tobytes() for at in range(0, len(data), size)]
    return np.array([number(record, i) for record in records for i in range(block)])


def _half(record: bytes, at: int) -> float:
    return struct.unpack_from("<e", record, at)[0]


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _nibble(record: bytes, at: int, i: int, width: int) -> int:
    """Number i of four bits: of each 2 * width numbers the first half is in the lower bits of `width` bytes."""
    part, within = divmod(i, 2 * width)
    byte = record[at + part * width + within % width]
    return byte & 15 if within < width else byte >> 4


def _fifth(record: bytes, at: int, i: int) -> int:
    return 16 * (record[at + i // 8] >> i % 8 & 1)


def _q8_0(r: bytes, i: int) -> float:
    return _half(r, 0) * _signed(r[2 + i])


def _q4_0(r: bytes, i: int) -> float:
    return _half(r, 0) * (_nibble(r, 2, i, 16) - 8)


def _q4_1(r: bytes, i: int) -> float:
    return _half(r, 0) * _nibble(r, 4, i, 16) + _half(r, 2)


def _q5_0(r: bytes, i: int) -> float:
    return _half(r, 0) * (_nibble(r, 6, i, 16) + _fifth(r, 2, i) - 16)


def _q5_1(r: bytes, i: int) -> float:
    return _half(r, 0) * (_nibble(r, 8, i, 16) + _fifth(r, 4, i)) + _half(r, 2)


def _fp4(code: int) -> float:
    """A sign, two bits of an exponent from 1 on, 0 for numbers below 1, and a bit of a fraction."""
    exponent, fraction = code >> 1 & 3, code & 1
    size = (1 + fraction / 2) * 2.0 ** (exponent - 1) if exponent else fraction / 2
    return -size if code >> 3 else size


def _mxfp4(r: bytes, i: int) -> float:
    return 2.0 ** (r[0] - 127) * _fp4(_nibble(r, 1, i, 16))


IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def _iq4_nl(r: bytes, i: int) -> float:
    return _half(r, 0) * IQ4[_nibble(r, 2, i, 16)]


def _iq4_xs(r: bytes, i: int) -> float:
    part = i // 32
    low = r[4 + part // 2] >> 4 * (part % 2) & 15
    high = int.from_bytes(r[2:4], "little") >> 2 * part & 3
    return _half(r, 0) * (low + 16 * high - 32) * IQ4[_nibble(r, 8, i, 16)]


def _two_bits(r: bytes, at: int, i: int) -> int:
    """Number i of two bits: of each 128 numbers the first 32 are in the lowest bits of 32 bytes."""
    return r[at + i // 128 * 32 + i % 32] >> 2 * (i % 128 // 32) & 3


def _q2_k(r: bytes, i: int) -> float:
    both = r[i // 16]
    return _half(r, 80) * (both & 15) * _two_bits(r, 16, i) - _half(r, 82) * (both >> 4)


def _q3_k(r: bytes, i: int) -> float:
    part = i // 16
    low = r[96 + part % 8] >> 4 * (part // 8) & 15
    high = r[104 + part % 4] >> 2 * (part // 4) & 3
    third = r[i % 32] >> i // 32 & 1
    return _half(r, 108) * (low + 16 * high - 32) * (_two_bits(r, 32, i) + 4 * third - 4)


def _six_bits(r: bytes, part: int) -> tuple[int, int]:
    """The scale and the minimum of a part, from the 12 bytes that begin at 4."""
    s = r[4:16]
    if part < 4:
        return s[part] & 63, s[part + 4] & 63
    return s[part + 4] & 15 | s[part - 4] >> 6 << 4, s[part + 4] >> 4 | s[part] >> 6 << 4


def _q4_k(r: bytes, i: int) -> float:
    scale, minimum = _six_bits(r, i // 32)
    return _half(r, 0) * scale * _nibble(r, 16, i, 32) - _half(r, 2) * minimum


def _q5_k(r: bytes, i: int) -> float:
    scale, minimum = _six_bits(r, i // 32)
    fifth = 16 * (r[16 + i % 32] >> i // 32 & 1)
    return _half(r, 0) * scale * (_nibble(r, 48, i, 32) + fifth) - _half(r, 2) * minimum


def _q6_k(r: bytes, i: int) -> float:
    half, within = divmod(i, 128)
    upper = r[128 + 32 * half + within % 32] >> 2 * (within // 32) & 3
    return _half(r, 208) * _signed(r[192 + i // 16]) * (_nibble(r, 0, i, 64) + 16 * upper - 32)


# name -> numbers of a block, bytes of a record, function of one number.
KINDS: dict[str, tuple[int, int, Callable[[bytes, int], float]]] = {
    "Q8_0": (32, 34, _q8_0),
    "Q4_0": (32, 18, _q4_0),
    "Q4_1": (32, 20, _q4_1),
    "Q5_0": (32, 22, _q5_0),
    "Q5_1": (32, 24, _q5_1),
    "MXFP4": (32, 17, _mxfp4),
    "IQ4_NL": (32, 18, _iq4_nl),
    "IQ4_XS": (256, 136, _iq4_xs),
    "Q2_K": (256, 84, _q2_k),
    "Q3_K": (256, 110, _q3_k),
    "Q4_K": (256, 144, _q4_k),
    "Q5_K": (256, 176, _q5_k),
    "Q6_K": (256, 210, _q6_k),
}
