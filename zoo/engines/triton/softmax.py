"""Softmax over the last axis.  Shapes: M rows of D."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .rows import MAX_ROW, RowConfig, as_rows, ceil_div, launch, row_config

LOG2E = tl.constexpr(1.4426950408889634)
LONG_BLOCK = 8192  # elements of a long row that a program holds at a time
LONG_WARPS = 16


def softmax(x: Tensor, *, config: RowConfig | None = None) -> Tensor:
    """`zoo.ops.softmax`: x (..., D) -> (..., D); a row of -inf gives zeros.

    Rows of up to `rows.MAX_ROW` are read once, longer ones twice.
    """
    D = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    rows = as_rows(x)
    if D > MAX_ROW:
        launch(_long_softmax_kernel, len(rows), rows, out, rows.stride(0), D, BD=LONG_BLOCK, warps=LONG_WARPS)
        return out
    config = config or row_config(x)
    launch(
        _softmax_kernel, ceil_div(len(rows), config.block_m), rows, out, len(rows), rows.stride(0), D,
        BM=config.block_m, BD=triton.next_power_of_2(D), warps=config.warps,
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["M"])
def _softmax_kernel(x, out, M, x_m, D, BM: tl.constexpr, BD: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.arange(0, BD)[None, :]
    inside = (rows < M) & (columns < D)
    rows = rows.to(tl.int64)
    value = tl.load(x + rows * x_m + columns, mask=inside, other=float("-inf")).to(tl.float32)
    value = tl.exp2((value - _finite(tl.max(value, 1, keep_dims=True))) * LOG2E)
    value = value / _not_zero(tl.sum(value, 1, keep_dims=True))
    tl.store(out + rows * D + columns, value.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _long_softmax_kernel(x, out, x_m, D, BD: tl.constexpr):
    """One program a row: every lane keeps the largest of its columns, and the sum of exponentials relative to it."""
    row = tl.program_id(0).to(tl.int64)
    x += row * x_m
    out += row * D
    top = tl.full((BD,), float("-inf"), tl.float32)
    total = tl.zeros((BD,), tl.float32)
    for first in tl.range(0, D, BD):
        columns = first + tl.arange(0, BD)
        value = tl.load(x + columns, mask=columns < D, other=float("-inf")).to(tl.float32)
        highest = tl.maximum(top, value)
        shift = _finite(highest)
        total = total * tl.exp2((top - shift) * LOG2E) + tl.exp2((value - shift) * LOG2E)
        top = highest
    shift = _finite(tl.max(top, 0))
    total = _not_zero(tl.sum(total * tl.exp2((top - shift) * LOG2E), 0))
    for first in tl.range(0, D, BD):
        columns = first + tl.arange(0, BD)
        value = tl.load(x + columns, mask=columns < D, other=float("-inf")).to(tl.float32)
        value = tl.exp2((value - shift) * LOG2E) / total
        tl.store(out + columns, value.to(out.dtype.element_ty), mask=columns < D)


@triton.jit
def _finite(top):
    """The number to subtract from values whose maximum is `top`: 0 if all of them are -inf."""
    return tl.where(top == float("-inf"), 0.0, top)


@triton.jit
def _not_zero(total):
    return tl.where(total == 0, 1.0, total)
