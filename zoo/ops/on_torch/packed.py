"""Packed matrices on torch: how they lie there, and widened in plain torch where no kernel takes them as they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ...packed import KINDS as ALL
from ...packed import Packed, Rows


def _int8(data: Tensor, scale: Tensor) -> Tensor:
    return data * scale[:, None]


def _int8_blocks(data: Tensor, scale: Tensor) -> Tensor:
    blocks = data.unflatten(1, (scale.shape[1], -1))
    return (blocks * scale.float()[..., None]).flatten(1)


def _int4_blocks(data: Tensor, scale: Tensor) -> Tensor:
    return _int8_blocks(_nibbles(data).to(torch.int8) - 8, scale)


def _uint4_blocks(data: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    every = _nibbles(data).to(torch.int16).unflatten(1, (scale.shape[1], -1))
    return _int8_blocks((every - zero[..., None]).flatten(1), scale)


def _nibbles(data: Tensor) -> Tensor:
    return torch.stack([data & 15, data >> 4], -1).flatten(1)


# Fields of some rows (R, ...) -> their numbers (R, width), of float32 or as they are.
KINDS: dict[str, Callable[..., Tensor]] = {
    "F64": lambda data: data,
    "F32": lambda data: data,
    "F16": lambda data: data,
    "INT8": _int8,
    "INT8_32": _int8_blocks,
    "INT4_32": _int4_blocks,
    "UINT4_32": _uint4_blocks,
}


def _records(data: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Bytes (E, B size) -> float16 (E, B), which each record begins with, and its other bytes (E, B, size - 2)."""
    records = data.unflatten(1, (-1, size))
    return records[..., :2].contiguous().view(torch.float16)[..., 0], records[..., 2:]


def _q8_0(data: Tensor) -> tuple[Tensor, Tensor]:
    scale, bytes_ = _records(data, 34)
    return bytes_.flatten(1).view(torch.int8), scale


def _q4_0(data: Tensor) -> tuple[Tensor, Tensor]:
    scale, halves = _records(data, 18)
    return _of_neighbours(halves), scale


def _q5_0(data: Tensor) -> tuple[Tensor, Tensor]:
    scale, rest = _records(data, 22)
    fifth = rest[..., :4, None] >> torch.arange(8, dtype=torch.uint8, device=data.device) & 1
    bits = torch.cat([rest[..., 4:] & 15, rest[..., 4:] >> 4], -1) | fifth.flatten(2) << 4
    return (bits.to(torch.int8) - 16).flatten(1), scale


def _of_neighbours(halves: Tensor) -> Tensor:
    """Bytes (E, B, 16) of the i-th and the (16 + i)-th number -> (E, 16 B) of the 2i-th and the next."""
    every = torch.cat([halves & 15, halves >> 4], -1)
    return (every[..., 0::2] | every[..., 1::2] << 4).flatten(1)


# Of llama.cpp's kinds those whose numbers, to the bit, are those of a kind that can be read 16 bytes at a time.
SAME: dict[str, tuple[str, Callable[[Tensor], tuple[Tensor, Tensor]]]] = {
    "Q8_0": ("INT8_32", _q8_0),
    "Q4_0": ("INT4_32", _q4_0),
    "Q5_0": ("INT8_32", _q5_0),
}


def place(stored: Rows, device: str) -> Rows | None:
    """Rows as they lie on a device; None where their kind is not one that lies there."""
    if stored.kind.name not in KINDS and stored.kind.name not in SAME:
        return None
    moved = stored.map(lambda array: torch.from_numpy(np.array(array)).to(device))
    if stored.kind.name in KINDS:
        return moved
    name, fields = SAME[stored.kind.name]
    return Rows(ALL[name], stored.columns, fields(moved.arrays[0]))


def dequantise(rows: Rows, dtype: torch.dtype) -> Tensor:
    """-> (E, D)."""
    return _rows(rows).to(dtype)


def take(matrix: Packed, ids: Tensor) -> Tensor:
    """Rows (..., D) of the matrix's dtype.  ids (...)."""
    flat, begin = ids.reshape(-1), 0
    found: Tensor | None = None
    for part in matrix.parts:  # no row is asked for by its place alone: a GPU would have to be waited for
        mine = _rows(part[(flat - begin).clamp(0, len(part) - 1)])
        found = mine if found is None else torch.where((flat >= begin)[:, None], mine, found)
        begin += len(part)
    assert found is not None
    return found.to(matrix.dtype).reshape(*ids.shape, matrix.columns)


def _rows(part: Rows) -> Tensor:
    return KINDS[part.kind.name](*part.arrays)[:, : part.columns]
