"""Quantised matrices on torch: their layout on a device, and dequantising in plain torch if no kernel takes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ...quant import FP4_CODES, IQ4_CODES, QUANT_TYPES, QuantRows, QuantTensor


def _numbers(
    data: Tensor,
    scale: Tensor | None = None,
    zero: Tensor | None = None,
    offset: Tensor | None = None,
    scale_step: Tensor | None = None,
    offset_step: Tensor | None = None,
) -> Tensor:
    """Dequantise the fields of R rows -> (R, width), float32 or the stored type."""
    if scale is None:
        return data.view(torch.bfloat16) if data.dtype == torch.uint16 else data
    if scale.ndim == 1:
        return data * scale[:, None]
    if scale.dtype == torch.uint8 and scale_step is None:  # FP4_32
        codes = torch.from_numpy(FP4_CODES).to(data.device)[torch.stack([data & 15, data >> 4], -1).flatten(1).int()]
        factors = torch.ldexp(torch.ones_like(scale, dtype=torch.float32), scale.int() - 128)
        return (codes.float().unflatten(1, (scale.shape[1], -1)) * factors[..., None]).flatten(1)
    if data.dtype == torch.uint8:
        data = torch.stack([data & 15, data >> 4], -1).flatten(1)
        data = data if zero is not None or offset is not None else data.to(torch.int8) - 8
    blocks = data.float().unflatten(1, (scale.shape[1], -1))
    if zero is not None:
        blocks -= zero[..., None]
    blocks *= _factors(scale, scale_step)
    if offset is not None:
        blocks += _factors(offset, offset_step)
    return blocks.flatten(1)


def _factors(each: Tensor, step: Tensor | None) -> Tensor:
    """Factors (R, blocks), times the steps if there are any -> (R, blocks, 1) float32."""
    wide = each.float()
    if step is not None:
        wide = (wide.unflatten(1, (step.shape[1], -1)) * step.float()[..., None]).flatten(1)
    return wide[..., None]


# llama.cpp's records (E, B, bytes of one) -> the fields of another QuantType.  `zoo.quant.ggml` describes the bytes.


def _q8_0(x: Tensor) -> tuple[Tensor, ...]:
    return x[..., 2:].flatten(1).view(torch.int8), _float16_at(x, 0)


def _q4_0(x: Tensor) -> tuple[Tensor, ...]:
    return _pairs(_nibbles(x[..., 2:], 16)), _float16_at(x, 0)


def _q4_1(x: Tensor) -> tuple[Tensor, ...]:
    return _pairs(_nibbles(x[..., 4:], 16)), _float16_at(x, 0), _float16_at(x, 2)


def _q5_0(x: Tensor) -> tuple[Tensor, ...]:
    bits = _nibbles(x[..., 6:], 16) | _fifth_bits(x[..., 2:6])
    return (bits.to(torch.int8) - 16).flatten(1), _float16_at(x, 0)


def _q5_1(x: Tensor) -> tuple[Tensor, ...]:
    bits = _nibbles(x[..., 8:], 16) | _fifth_bits(x[..., 4:8])
    return bits.flatten(1).view(torch.int8), _float16_at(x, 0), _float16_at(x, 2)


def _mxfp4(x: Tensor) -> tuple[Tensor, ...]:
    return _pairs(_nibbles(x[..., 1:], 16)), x[..., 0].contiguous()


def _iq4_nl(x: Tensor) -> tuple[Tensor, ...]:
    return _iq4(x[..., 2:]), _float16_at(x, 0)


def _iq4_xs(x: Tensor) -> tuple[Tensor, ...]:
    """A scale for each 32 numbers becomes two, for each 16."""
    by = torch.tensor([0, 2, 4, 6], dtype=torch.uint8, device=x.device)
    high = (x[..., 2:4, None] >> by & 3).flatten(2)
    low = torch.stack([x[..., 4:8] & 15, x[..., 4:8] >> 4], -1).flatten(2)
    scales = ((low | high << 4).to(torch.int8) - 32).repeat_interleave(2, -1)
    return _iq4(x[..., 8:]), scales.flatten(1), _float16_at(x, 0)


def _iq4(qs: Tensor) -> Tensor:
    """Bytes (E, B, n) -> (E, 2 B n) int8."""
    return torch.from_numpy(IQ4_CODES).to(qs.device)[_nibbles(qs, 16).int()].flatten(1)


def _q2_k(x: Tensor) -> tuple[Tensor, ...]:
    scales = x[..., :16]
    data, steps = _pairs(_two_bits(x[..., 16:80])), (_float16_at(x, 80), -_float16_at(x, 82))
    return data, (scales & 15).flatten(1), (scales >> 4).flatten(1), *steps


def _q3_k(x: Tensor) -> tuple[Tensor, ...]:
    third = x[..., None, :32] >> torch.arange(8, dtype=torch.uint8, device=x.device)[:, None] & 1
    bits = _two_bits(x[..., 32:96]) | third.flatten(2) << 2
    low, high = x[..., 96:104], x[..., 104:108]
    upper = torch.cat([high >> shift & 3 for shift in (0, 2, 4, 6)], -1) << 4
    scales = (torch.cat([low & 15, low >> 4], -1) | upper).to(torch.int8) - 32
    return (bits.to(torch.int8) - 4).flatten(1), scales.flatten(1), _float16_at(x, 108)


def _q4_k(x: Tensor) -> tuple[Tensor, ...]:
    return _pairs(_nibbles(x[..., 16:], 32)), *_scales_and_minima(x)


def _q5_k(x: Tensor) -> tuple[Tensor, ...]:
    fifth = (x[..., None, 16:48] >> torch.arange(8, dtype=torch.uint8, device=x.device)[:, None] & 1) << 4
    bits = _nibbles(x[..., 48:], 32) | fifth.flatten(2)
    return bits.flatten(1).view(torch.int8), *_scales_and_minima(x)


def _q6_k(x: Tensor) -> tuple[Tensor, ...]:
    by = torch.tensor([0, 2, 4, 6], dtype=torch.uint8, device=x.device)[:, None]
    high = x[..., 128:192].unflatten(-1, (2, 1, 32)) >> by & 3
    bits = _nibbles(x[..., :128], 64) | high.flatten(2) << 4
    return (bits.to(torch.int8) - 32).flatten(1), x[..., 192:208].flatten(1).view(torch.int8), _float16_at(x, 208)


def _float16_at(x: Tensor, at: int) -> Tensor:
    return x[..., at : at + 2].contiguous().view(torch.float16)[..., 0]


def _nibbles(qs: Tensor, width: int) -> Tensor:
    """Bytes (..., n * width) -> (..., 2 * n * width): the lower halves of `width` of them, then the upper."""
    bytes_ = qs.unflatten(-1, (-1, width))
    return torch.cat([bytes_ & 15, bytes_ >> 4], -1).flatten(-2)


def _two_bits(qs: Tensor) -> Tensor:
    """Bytes (..., 64) -> (..., 256): of each 32 of them the lowest two bits, then the next two, ..."""
    by = torch.tensor([0, 2, 4, 6], dtype=torch.uint8, device=qs.device)[:, None]
    return (qs.unflatten(-1, (2, 1, 32)) >> by & 3).flatten(-3)


def _pairs(bits: Tensor) -> Tensor:
    """(E, B, N) of four bits -> (E, B N / 2): two neighbours in a byte."""
    return (bits[..., 0::2] | bits[..., 1::2] << 4).flatten(1)


def _fifth_bits(qh: Tensor) -> Tensor:
    """Bytes (..., 4) -> (..., 32) of 0 or 16."""
    return (qh[..., None] >> torch.arange(8, dtype=torch.uint8, device=qh.device) & 1).flatten(-2) << 4


def _scales_and_minima(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The fields of Q4_K and Q5_K after their data; offsets are minima with the other sign."""
    low, high, both = x[..., 4:8], x[..., 8:12], x[..., 12:16]
    scales = torch.cat([low & 63, both & 15 | low >> 2 & 48], -1)
    minima = torch.cat([high & 63, both >> 4 | high >> 2 & 48], -1)
    return scales.flatten(1), minima.flatten(1), _float16_at(x, 0), -_float16_at(x, 2)


# llama.cpp's types -> types with the same numbers, to the bit, that kernels can read 16 bytes at a time.
EQUIVALENT_TYPES: dict[str, tuple[str, Callable[[Tensor], tuple[Tensor, ...]]]] = {
    "Q8_0": ("INT8_32", _q8_0),
    "Q4_0": ("INT4_32", _q4_0),
    "Q4_1": ("UINT4_OFFSET", _q4_1),
    "Q5_0": ("INT8_32", _q5_0),
    "Q5_1": ("INT8_OFFSET", _q5_1),
    "MXFP4": ("FP4_32", _mxfp4),
    "IQ4_NL": ("INT8_32", _iq4_nl),
    "IQ4_XS": ("INT8_K16", _iq4_xs),
    "Q2_K": ("UINT4_K16", _q2_k),
    "Q3_K": ("INT8_K16", _q3_k),
    "Q4_K": ("UINT4_K", _q4_k),
    "Q5_K": ("INT8_K", _q5_k),
    "Q6_K": ("INT8_K16", _q6_k),
}


def keep(stored: QuantRows, device: str) -> QuantRows:
    """Rows for `linear` and `embedding` on a device; llama.cpp's records are rearranged."""
    moved = stored.map(lambda array: torch.from_numpy(np.array(array)).to(device))
    if stored.kind.name not in EQUIVALENT_TYPES:
        return moved
    name, fields = EQUIVALENT_TYPES[stored.kind.name]
    records = moved.arrays[0].unflatten(1, (-1, stored.kind.fields[0].per_block))
    return QuantRows(QUANT_TYPES[name], stored.columns, fields(records))


def dequantise(rows: QuantRows, dtype: torch.dtype) -> Tensor:
    """The numbers (E, D)."""
    return _rows(rows).to(dtype)


def take(matrix: QuantTensor, ids: Tensor) -> Tensor:
    """The rows `ids` (...) -> (..., D) of the matrix's dtype."""
    flat, begin = ids.reshape(-1), 0
    found: Tensor | None = None
    for part in matrix.parts:  # every part is read for every id: a selection would wait for the GPU
        mine = _rows(part[(flat - begin).clamp(0, len(part) - 1)])
        found = mine if found is None else torch.where((flat >= begin)[:, None], mine, found)
        begin += len(part)
    assert found is not None
    return found.to(matrix.dtype).reshape(*ids.shape, matrix.columns)


def _rows(part: QuantRows) -> Tensor:
    return _numbers(**part.kind.name_fields(part.arrays))[:, : part.columns]
