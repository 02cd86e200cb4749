"""A quantised matrix times several rows: a tile is dequantised in registers and multiplied by the tensor cores.

Shapes: M rows, I inputs, O outputs.  Layouts: `zoo.quant.kinds`.
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
from .configs import SHARED_MEMORY, multiprocessors, table
from .packed import QUANT_TYPES, begin_product, of_blocks
from .rows import as_rows, ceil_div, launch

FEW_ROWS = 16  # rows, as in a batch of sequences that are decoded


class PackedDotConfig(NamedTuple):
    """A tile has block_o outputs of block_m rows; `stages` pieces of block_k columns are on their way at a time."""

    block_o: int
    block_m: int
    block_k: int
    warps: int
    stages: int


# For up to FEW rows, and for more, of 16 bits.  With few rows Hopper too takes small tiles, of its older tensor cores.
PACKED_DOT: dict[str, tuple[PackedDotConfig, PackedDotConfig]] = {
    "sm_80": (PackedDotConfig(32, 16, 128, 2, 4), PackedDotConfig(128, 64, 64, 8, 3)),
    "sm_89": (PackedDotConfig(32, 16, 64, 2, 4), PackedDotConfig(128, 64, 64, 8, 2)),
    "sm_90": (PackedDotConfig(32, 16, 128, 2, 4), PackedDotConfig(128, 64, 64, 8, 3)),
    "gfx942": (PackedDotConfig(32, 16, 64, 2, 1), PackedDotConfig(64, 64, 64, 4, 1)),
    "fallback": (PackedDotConfig(32, 16, 64, 2, 1), PackedDotConfig(64, 64, 64, 4, 1)),
}
FLOAT32 = PackedDotConfig(32, 16, 32, 4, 2)  # exact products are made without tensor cores


def suits(x: Tensor, kind: str) -> bool:
    """True if `packed_dot` takes x (..., I) and a matrix of this kind.

    It takes at most FEW rows of float32: cuBLAS multiplies more of them faster by the dequantised matrix.
    """
    few = x.numel() <= FEW_ROWS * x.shape[-1]
    return kind in QUANT_TYPES and x.dtype in DTYPES and x.numel() > 0 and (few or x.dtype != torch.float32)


def packed_dot_config(x: Tensor, kind: str, outputs: int) -> PackedDotConfig:
    """The config for x (..., I) and a matrix of this kind with `outputs` rows."""
    if x.dtype == torch.float32:
        return FLOAT32
    rows = x.numel() // x.shape[-1]
    few, many = PACKED_DOT[table(x)]
    if rows > 2 * FEW_ROWS:
        # With more columns ptxas makes each product wait for the one before.
        serial = kind.startswith("INT8_") and table(x) == "sm_90"
        return many._replace(block_k=32, stages=many.stages + 1) if serial else many
    if rows > FEW_ROWS:
        return few._replace(block_m=2 * FEW_ROWS, block_k=64)
    # With half as many outputs each, twice as many programs are busy.
    return few if outputs >= 4 * few.block_o * multiprocessors(x) else few._replace(block_o=16, warps=1)


def packed_dot_candidates(x: Tensor, kind: str, outputs: int) -> list[PackedDotConfig]:
    """Configs that may be fastest, `packed_dot_config` first."""
    first, room = packed_dot_config(x, kind, outputs), SHARED_MEMORY[table(x)]
    few = x.numel() <= FEW_ROWS * x.shape[-1]
    others = (
        PackedDotConfig(*c)
        for c in product((16, 32, 64, 128), (16,) if few else (32, 64, 128), (32, 64, 128), (1, 2, 4, 8), (1, 2, 3, 4))
        if 2 <= c[0] * c[1] / (c[3] * 32) <= 64  # sums a lane
        and c[0] >= 16 * c[3] / 2
        and (c[0] + c[1]) * c[2] * x.element_size() * c[4] <= room
    )
    return list(dict.fromkeys((first, *others)))


def packed_dot(
    x: Tensor,
    kind: str,
    fields: Sequence[Tensor],
    bias: Tensor | None = None,
    act: str | None = None,
    residual: Tensor | None = None,
    *,
    config: PackedDotConfig | None = None,
) -> Tensor:
    """act(x @ weight.T + bias) + residual, summed in float32 and rounded once, at the end.

    Kinds with blocks are rounded to the type of x before the product, as a dequantised matrix is.
    x (..., I); fields of a matrix (O, I) of that kind; bias (O,), residual (..., O) -> (..., O).
    """
    takes = f"packed_dot takes rows of 16 bits, or up to {FEW_ROWS} of float32,"
    given, out = begin_product(x, kind, fields, act, suits(x, kind), takes)
    outputs, inputs = len(given.data), x.shape[-1]
    config = config or packed_dot_config(x, kind, outputs)
    rows = as_rows(x)
    tiles = ceil_div(len(rows), config.block_m)
    launch(
        _packed_dot_kernel, tiles * ceil_div(outputs, config.block_o), rows, *given,
        None if bias is None else bias.contiguous(),
        None if residual is None else residual.expand(out.shape).reshape(-1, outputs).contiguous(), out, len(rows),
        outputs, inputs, rows.stride(0), given.data.stride(0), tiles,
        ACT=act, EVEN=inputs % config.block_k == 0, PER=given.per, SIZE=given.size, BO=config.block_o,
        BM=config.block_m, BK=config.block_k, warps=config.warps, num_stages=config.stages,
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["M", "outputs", "tiles"])
def _packed_dot_kernel(
    x, data, scale, zero, offset, scale_step, offset_step, bias, residual, out, M, outputs, inputs,
    x_m,
    width, tiles,
    ACT: tl.constexpr, EVEN: tl.constexpr, PER: tl.constexpr, SIZE: tl.constexpr, BO: tl.constexpr, BM: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """data (outputs, width), a byte of PER numbers: int8, or uint8 of two; scale (outputs,) or, as offset and zero,
    one for each SIZE numbers.  EVEN: inputs is a multiple of BK.

    The programs of one tile of outputs follow one another, so that it is in a cache for all but the first.
    """
    o = tl.program_id(0) // tiles * BO + tl.arange(0, BO)
    m = tl.program_id(0) % tiles * BM + tl.arange(0, BM)
    row = tl.minimum(o, outputs - 1).to(tl.int64)
    columns = tl.arange(0, BK)
    bytes = tl.arange(0, BK // PER)
    x += tl.minimum(m, M - 1).to(tl.int64)[:, None] * x_m + columns[None, :]
    data += row[:, None] * width + bytes[None, :]
    if SIZE > 0:
        of_block = tl.arange(0, BK // SIZE)
        blocks = width * PER // SIZE
        at = row[:, None] * blocks + of_block[None, :]
    total = tl.zeros((BO, BM), tl.float32)
    for first in tl.range(0, inputs, BK):
        if EVEN:
            v = tl.load(x + first)
            stored = tl.load(data + first // PER)
        else:
            v = tl.load(x + first, mask=(first + columns < inputs)[None, :], other=0.0)
            stored = tl.load(data + first // PER, mask=(first // PER + bytes < width)[None, :], other=0)
        if PER == 2:
            w = tl.interleave((stored & 15).to(tl.float32), (stored >> 4).to(tl.float32))
        else:
            w = stored.to(tl.float32)
        if SIZE > 0:
            now, live = at + first // SIZE, (first // SIZE + of_block < blocks)[None, :]
            s = of_blocks(scale, scale_step, now, live, EVEN, SIZE)
            if zero is not None:
                w -= _repeat_blocks(of_blocks(zero, None, now, live, EVEN, SIZE), BO, BK, SIZE)
            elif PER == 2 and offset is None:
                w -= 8
            w *= _repeat_blocks(s, BO, BK, SIZE)
            if offset is not None:
                w += _repeat_blocks(of_blocks(offset, offset_step, now, live, EVEN, SIZE), BO, BK, SIZE)
        total = tl.dot(w.to(v.dtype), tl.trans(v), total, input_precision="ieee")
    live = o < outputs
    if SIZE == 0:
        total *= tl.load(scale + row)[:, None]
    if bias is not None:
        total += tl.load(bias + o, mask=live, other=0.0).to(tl.float32)[:, None]
    EXACT: tl.constexpr = out.dtype.element_ty == tl.float32
    y = tl.trans(activate(total, ACT, EXACT))
    inside = (m < M)[:, None] & live[None, :]
    place = m.to(tl.int64)[:, None] * outputs + o[None, :]
    if residual is not None:
        y += tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + place, y.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _repeat_blocks(of_blocks, BO: tl.constexpr, BK: tl.constexpr, SIZE: tl.constexpr):
    """(BO, BK / SIZE) -> (BO, BK): the value of each block, repeated for each of its numbers."""
    return tl.reshape(tl.broadcast_to(of_blocks[:, :, None], (BO, BK // SIZE, SIZE)), (BO, BK))
