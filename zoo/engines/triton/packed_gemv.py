"""A quantised matrix times one row: read as it is stored, dequantised in registers.  Layouts: `zoo.quant.kinds`.

Shapes: I inputs, O outputs, G groups of columns: 32 of four bits, or 16 of a byte, which are 16 bytes of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import DTYPES
from .activations import activate
from .configs import multiprocessors, table
from .packed import QUANT_TYPES, begin_product, of_blocks
from .rows import ceil_div, launch

MAGIC = 0x4B000000  # the bits of 2 ** 23 as float32, whose mantissa counts in ones


class PackedGemvConfig(NamedTuple):
    """A program makes block_o outputs, and reads block_g groups of their rows at a time."""

    block_o: int
    block_g: int
    warps: int


# Each lane takes one group of each row: it sums a block's numbers alone, before it scales the sum.
PACKED_GEMV = PackedGemvConfig(4, 32, 1)
NIBBLES_HOPPER, BYTES_HOPPER = PackedGemvConfig(1, 64, 1), PackedGemvConfig(1, 128, 2)  # ranked on an H100
PACKED_GEMV_64_LANES = PackedGemvConfig(4, 64, 1)  # gfx942 has 64 lanes a warp


def suits(x: Tensor, kind: str) -> bool:
    """True if `packed_gemv` takes x (..., I) and a matrix of this kind: one row, of a type in `DTYPES`."""
    return kind in QUANT_TYPES and x.dtype in DTYPES and x.numel() == x.shape[-1]


def packed_gemv_config(x: Tensor, kind: str, outputs: int) -> PackedGemvConfig:
    """The config for x (..., I) and a matrix of this kind with `outputs` rows."""
    if table(x) == "sm_90":
        config = BYTES_HOPPER if kind.startswith("INT8") else NIBBLES_HOPPER
    else:
        config = PACKED_GEMV_64_LANES if table(x) == "gfx942" else PACKED_GEMV
        few = outputs < 8 * config.block_o * multiprocessors(x)
        if few or x.dtype == torch.float32:  # fewer outputs each keep more programs busy, and need fewer registers
            config = config._replace(block_o=2)
    return config._replace(block_g=min(config.block_g, triton.next_power_of_2(ceil_div(x.shape[-1], 32))))


def packed_gemv_candidates(x: Tensor, kind: str, outputs: int) -> list[PackedGemvConfig]:
    """Configs that may be fastest, `packed_gemv_config` first."""
    others = (
        PackedGemvConfig(o, 32 * warps * lanes, warps) for o, warps, lanes in product((1, 2, 4, 8), (1, 2, 4), (1, 2))
    )
    return list(dict.fromkeys((packed_gemv_config(x, kind, outputs), *others)))


def packed_gemv(
    x: Tensor,
    kind: str,
    fields: Sequence[Tensor],
    bias: Tensor | None = None,
    act: str | None = None,
    residual: Tensor | None = None,
    *,
    config: PackedGemvConfig | None = None,
) -> Tensor:
    """act(x @ weight.T + bias) + residual of one row, summed in float32 and rounded once, at the end.

    x (..., I) with one row; fields of a matrix (O, I) of that kind; bias (O,), residual (..., O) -> (..., O).
    """
    takes = f"packed_gemv takes one row of {', '.join(map(str, DTYPES))}"
    given, out = begin_product(x, kind, fields, act, suits(x, kind), takes)
    data, scale, zero, *factors = given
    outputs, inputs = len(data), x.shape[-1]
    config = config or packed_gemv_config(x, kind, outputs)
    of_bytes = given.per == 1
    launch(
        _bytes_kernel if of_bytes else _nibbles_kernel, ceil_div(outputs, config.block_o), x.reshape(-1).contiguous(),
        data if of_bytes else data.view(torch.int32), scale, *factors, *(() if of_bytes else (zero, MAGIC)),
        None if bias is None else bias.contiguous(), None if residual is None else residual.reshape(-1).contiguous(),
        out, outputs, inputs, data.stride(0) if of_bytes else scale.shape[1],
        ACT=act, EVEN=inputs % (config.block_g * (16 if of_bytes else 32)) == 0, SIZE=given.size, BO=config.block_o,
        BG=config.block_g, warps=config.warps,
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["outputs"])
def _bytes_kernel(
    x, data, scale, offset, scale_step, offset_step, bias, residual, out, outputs, inputs, width,
    ACT: tl.constexpr, EVEN: tl.constexpr, SIZE: tl.constexpr, BO: tl.constexpr, BG: tl.constexpr,
):  # fmt: skip
    """data (outputs, width) int8; scale (outputs,) or, as offset, (outputs, width / SIZE).

    EVEN: inputs is a multiple of 16 BG.
    """
    rows = tl.program_id(0) * BO + tl.arange(0, BO)
    row = tl.minimum(rows, outputs - 1).to(tl.int64)
    groups = tl.arange(0, BG)
    columns = groups[:, None] * 16 + tl.arange(0, 16)[None, :]
    x += columns
    data += row[:, None, None] * width + columns[None, :, :]
    total = tl.zeros((BO, BG), tl.float32)
    for first in tl.range(0, inputs, BG * 16):
        if EVEN:
            q = tl.load(data + first)
            v = tl.load(x + first).to(tl.float32)
        else:
            inside = first + columns < inputs
            q = tl.load(data + first, mask=inside[None, :, :], other=0)
            v = tl.load(x + first, mask=inside, other=0.0).to(tl.float32)
        sums = tl.sum(q.to(tl.float32) * v[None, :, :], 2)
        if SIZE > 0:
            block = (first + groups * 16) // SIZE
            at, live = row[:, None] * (width // SIZE) + block[None, :], (block < width // SIZE)[None, :]
            sums *= of_blocks(scale, scale_step, at, live, EVEN, SIZE)
            if offset is not None:
                sums += of_blocks(offset, offset_step, at, live, EVEN, SIZE) * tl.sum(v, 1)[None, :]
        total += sums
    y = tl.sum(total, 1)
    if SIZE == 0:
        y *= tl.load(scale + row)
    _finish(y, bias, residual, out, rows, outputs, ACT)


@triton.jit(do_not_specialize=["outputs", "magic"])
def _nibbles_kernel(
    x, words, scale, offset, scale_step, offset_step, zero, magic, bias, residual, out, outputs, inputs, blocks,
    ACT: tl.constexpr, EVEN: tl.constexpr, SIZE: tl.constexpr, BO: tl.constexpr, BG: tl.constexpr,
):  # fmt: skip
    """words (outputs, 4 blocks) of eight numbers, the first in the lowest bits; scale, offset, zero (outputs, blocks).

    zero: taken off each number; None for 8, or where there is an offset.  EVEN: inputs is a multiple of 32 BG.
    """
    rows = tl.program_id(0) * BO + tl.arange(0, BO)
    row = tl.minimum(rows, outputs - 1).to(tl.int64)
    groups = tl.arange(0, BG)
    places = groups[:, None] * 4 + tl.arange(0, 4)[None, :]
    columns = places[:, :, None] * 8 + tl.arange(0, 8)[None, None, :]
    words += row[:, None, None] * (blocks * 4) + places[None, :, :]
    at = row[:, None] * blocks + groups[None, :]
    total = tl.zeros((BO, BG), tl.float32)
    for first in tl.range(0, tl.cdiv(inputs, 32), BG):
        live = (first + groups < blocks)[None, :]
        s = of_blocks(scale, scale_step, at + first, live, EVEN, SIZE)
        if EVEN:
            w = tl.load(words + first * 4)
            v = tl.load(x + first * 32 + columns).to(tl.float32)
        else:
            w = tl.load(words + first * 4, mask=live[:, :, None], other=0)
            v = tl.load(x + first * 32 + columns, mask=first * 32 + columns < inputs, other=0.0).to(tl.float32)
        even, odd = tl.split(tl.reshape(v, (BG, 4, 2, 2, 2)))
        v0_4, v2_6 = tl.split(even)
        v1_5, v3_7 = tl.split(odd)
        v0, v4 = tl.split(v0_4)
        v1, v5 = tl.split(v1_5)
        v2, v6 = tl.split(v2_6)
        v3, v7 = tl.split(v3_7)
        # Numbers are not shifted, so they are 16, 256 or 4096 times too large: x is scaled down by as much.
        upper = w >> 16
        q = _number(w, 15, magic) * v0[None, :, :]
        q += _number(w, 15 << 4, magic) * (v1 * 0.0625)[None, :, :]
        q += _number(w, 15 << 8, magic) * (v2 * 0.00390625)[None, :, :]
        q += _number(w, 15 << 12, magic) * (v3 * 0.000244140625)[None, :, :]
        q += _number(upper, 15, magic) * v4[None, :, :]
        q += _number(upper, 15 << 4, magic) * (v5 * 0.0625)[None, :, :]
        q += _number(upper, 15 << 8, magic) * (v6 * 0.00390625)[None, :, :]
        q += _number(upper, 15 << 12, magic) * (v7 * 0.000244140625)[None, :, :]
        # In (q - zero) x the sum of x is the same for all rows; it also multiplies an offset.
        sums = tl.sum(((v0 + v1) + (v2 + v3)) + ((v4 + v5) + (v6 + v7)), 1)[None, :]
        if offset is not None:
            total += s * tl.sum(q, 2) + of_blocks(offset, offset_step, at + first, live, EVEN, SIZE) * sums
        elif zero is not None:
            z = of_blocks(zero, None, at + first, live, EVEN, SIZE)
            total += s * (tl.sum(q, 2) - z * sums)
        else:
            total += s * (tl.sum(q, 2) - 8 * sums)
    _finish(tl.sum(total, 1), bias, residual, out, rows, outputs, ACT)


@triton.jit
def _number(words, BITS: tl.constexpr, magic):
    """The integer in these bits of the words, as float32.

    The bits go into the mantissa of 2 ** 23: GPUs convert integers at a fraction of their rate of additions.  magic is
    an argument of the kernel, since one instruction masks and sets only if one of the constants is in a register.
    """
    return ((words & BITS) | magic).to(tl.float32, bitcast=True) - 8388608.0


@triton.jit
def _finish(y, bias, residual, out, rows, outputs, ACT: tl.constexpr):
    """Store act(y + bias) + residual."""
    live = rows < outputs
    if bias is not None:
        y += tl.load(bias + rows, mask=live, other=0.0).to(tl.float32)
    EXACT: tl.constexpr = out.dtype.element_ty == tl.float32
    y = activate(y, ACT, EXACT)
    if residual is not None:
        y += tl.load(residual + rows, mask=live, other=0.0).to(tl.float32)
    tl.store(out + rows, y.to(out.dtype.element_ty), mask=live)
