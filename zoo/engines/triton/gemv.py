"""A matrix times one row: decoding one sequence spends its time here, bound by how fast the matrix is read.

Shapes: I inputs, O outputs.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...errors import InputError
from . import activations
from .activations import activate
from .configs import multiprocessors, table
from .rows import ceil_div, launch

DTYPES = (torch.float16, torch.bfloat16)


class GemvConfig(NamedTuple):
    """A program makes block_o outputs, and reads block_i columns of their rows at a time."""

    block_o: int
    block_i: int
    warps: int


GEMV = GemvConfig(4, 512, 4)
GEMV_HOPPER = GemvConfig(4, 2048, 8)  # ranked on an H100


def suits(x: Tensor, weight: Tensor) -> bool:
    """True if `gemv` takes x (..., I) and weight (O, I): one row, and both of the same type of 16 bits."""
    return x.dtype == weight.dtype and x.dtype in DTYPES and x.numel() == weight.shape[1] and weight.stride(1) == 1


def gemv_config(weight: Tensor) -> GemvConfig:
    """The config for weight (O, I)."""
    outputs, inputs = weight.shape
    config = GEMV_HOPPER if table(weight) == "sm_90" else GEMV
    if outputs < 4 * config.block_o * multiprocessors(weight):  # fewer outputs each keep more programs busy
        config = config._replace(block_o=1, block_i=1024)
    return config._replace(block_i=min(config.block_i, triton.next_power_of_2(inputs)))


def gemv_candidates(weight: Tensor) -> list[GemvConfig]:
    """Configs that may be fastest for weight (O, I), `gemv_config` first."""
    others = (
        GemvConfig(o, i, warps)
        for o, i, warps in product((1, 2, 4, 8, 16), (128, 256, 512, 1024, 2048), (1, 2, 4, 8))
        if 8 <= o * i / (warps * 32) <= 64  # elements a lane
    )
    return list(dict.fromkeys((gemv_config(weight), *others)))


def gemv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    act: str | None = None,
    residual: Tensor | None = None,
    *,
    config: GemvConfig | None = None,
) -> Tensor:
    """act(x @ weight.T + bias) + residual of one row, summed in float32 and rounded once, at the end.

    x (..., I) with one row, weight (O, I), bias (O,), residual (..., O) with one row -> (..., O).
    """
    if not suits(x, weight):
        raise InputError(
            f"gemv takes one row and a matrix of the same 16 bits, found {tuple(x.shape)} of {x.dtype} "
            f"and {tuple(weight.shape)} of {weight.dtype}"
        )
    activations.check(act)
    outputs, inputs = weight.shape
    out = torch.empty((*x.shape[:-1], outputs), dtype=x.dtype, device=x.device)
    config = config or gemv_config(weight)
    launch(
        _gemv_kernel, ceil_div(outputs, config.block_o), x.reshape(-1).contiguous(), weight,
        None if bias is None else bias.contiguous(), None if residual is None else residual.reshape(-1).contiguous(),
        out, outputs, inputs, weight.stride(0),
        ACT=act, EVEN=inputs % config.block_i == 0, BO=config.block_o, BI=config.block_i, warps=config.warps,
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["outputs"])
def _gemv_kernel(
    x, weight, bias, residual, out, outputs, inputs,
    weight_o,
    ACT: tl.constexpr, EVEN: tl.constexpr, BO: tl.constexpr, BI: tl.constexpr,
):  # fmt: skip
    """EVEN: inputs is a multiple of BI."""
    rows = tl.program_id(0) * BO + tl.arange(0, BO)
    columns = tl.arange(0, BI)
    x += columns
    weight += tl.minimum(rows, outputs - 1).to(tl.int64)[:, None] * weight_o + columns[None, :]
    total = tl.zeros((BO, BI), tl.float32)
    for first in tl.range(0, inputs, BI):
        if EVEN:
            w = tl.load(weight + first)
            v = tl.load(x + first)
        else:
            inside = first + columns < inputs
            w = tl.load(weight + first, mask=inside[None, :], other=0.0)
            v = tl.load(x + first, mask=inside, other=0.0)
        total += w.to(tl.float32) * v.to(tl.float32)[None, :]
    y = tl.sum(total, 1)
    live = rows < outputs
    if bias is not None:
        y += tl.load(bias + rows, mask=live, other=0.0).to(tl.float32)
    y = activate(y, ACT, False)
    if residual is not None:
        y += tl.load(residual + rows, mask=live, other=0.0).to(tl.float32)
    tl.store(out + rows, y.to(out.dtype.element_ty), mask=live)
