"""Packed matrices on torch: widened in plain torch, where no kernel multiplies by them as they are."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ...packed import Packed, Rows


def _int8(data: Tensor, scale: Tensor) -> Tensor:
    return data * scale[:, None]


def _int8_blocks(data: Tensor, scale: Tensor) -> Tensor:
    blocks = data.unflatten(1, (scale.shape[1], -1))
    return (blocks * scale.float()[..., None]).flatten(1)


def _int4_blocks(data: Tensor, scale: Tensor) -> Tensor:
    every = torch.stack([data & 15, data >> 4], -1).flatten(1)
    return _int8_blocks(every.to(torch.int8) - 8, scale)


# Fields of some rows (R, ...) -> their numbers (R, width), of float32 or as they are.
KINDS: dict[str, Callable[..., Tensor]] = {
    "F64": lambda data: data,
    "F32": lambda data: data,
    "F16": lambda data: data,
    "INT8": _int8,
    "INT8_32": _int8_blocks,
    "INT4_32": _int4_blocks,
}


def dequantise(matrix: Packed, dtype: torch.dtype) -> Tensor:
    """-> (E, D)."""
    parts = [_rows(part).to(dtype) for part in matrix.parts]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


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
