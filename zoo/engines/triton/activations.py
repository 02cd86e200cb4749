"""Activations: after a bias, in place, and as gates.  Shapes: M rows of F.

The formulas keep NaN, do not overflow, and need no vendor's library: tanh and erf are computed from exponentials.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...errors import UnsupportedError, nearest
from .rows import as_rows, ceil_div, launch

# The values of `zoo.ops.ACTIVATIONS`.
ACTS = (
    *("gelu", "gelu_tanh", "quick_gelu", "gelu_10", "relu", "relu2", "relu6", "leaky_relu"),
    *("silu", "mish", "hardswish", "hardsigmoid", "sigmoid", "tanh"),
)
LOG2E = tl.constexpr(1.4426950408889634)


class PointConfig(NamedTuple):
    """A program takes `block` elements of a row."""

    block: int
    warps: int


POINTS = PointConfig(1024, 4)  # on every architecture


def point_config(x: Tensor) -> PointConfig:
    """The config for rows x (..., F)."""
    return POINTS._replace(block=min(POINTS.block, max(128, triton.next_power_of_2(x.shape[-1]))))


def point_candidates(x: Tensor) -> list[PointConfig]:
    """Configs that may be fastest for x (..., F), `point_config` first."""
    others = (
        PointConfig(*c) for c in product((256, 512, 1024, 2048, 4096), (1, 2, 4, 8)) if 2 <= c[0] / c[1] / 32 <= 32
    )
    return list(dict.fromkeys((point_config(x), *others)))


def bias_act_(x: Tensor, bias: Tensor | None, act: str | None, *, config: PointConfig | None = None) -> Tensor:
    """act(x + bias), written into x.  x (..., F), bias (F,) -> x.  `act` is one of `ACTS`, or None for the identity."""
    check(act)
    if not x.numel() or (act is None and bias is None):
        return x
    F = x.shape[-1]
    rows = as_rows(x)
    config = config or point_config(x)
    blocks = ceil_div(F, config.block)
    launch(
        _bias_act_kernel, len(rows) * blocks, rows, bias, F, rows.stride(0), blocks,
        ACT=act, BLOCK=config.block, warps=config.warps,
    )  # fmt: skip
    return x if rows.data_ptr() == x.data_ptr() else x.copy_(rows.view(x.shape))


def glu(x: Tensor, act: str | None, *, config: PointConfig | None = None) -> Tensor:
    """`zoo.ops.glu`: act(gate) * up of x (..., 2 F), the gate first -> (..., F); rounded once, at the end."""
    check(act)
    F = x.shape[-1] // 2
    out = torch.empty((*x.shape[:-1], F), dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    rows = as_rows(x)
    config = config or point_config(out)
    blocks = ceil_div(F, config.block)
    launch(
        _glu_kernel, len(rows) * blocks, rows, out, F, rows.stride(0), blocks,
        ACT=act, BLOCK=config.block, warps=config.warps,
    )  # fmt: skip
    return out


def check(act: str | None) -> None:
    """Refuse an activation that `activate` does not have."""
    if act is not None and act not in ACTS:
        raise UnsupportedError(f"the kernels have no activation {act!r}{nearest(act, ACTS)}")


@triton.jit(do_not_specialize=["blocks"])
def _bias_act_kernel(x, bias, F, x_m, blocks, ACT: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // blocks).to(tl.int64)
    columns = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    inside = columns < F
    x += row * x_m + columns
    value = tl.load(x, mask=inside, other=0.0).to(tl.float32)
    if bias is not None:
        value += tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
    EXACT: tl.constexpr = x.dtype.element_ty == tl.float32
    tl.store(x, activate(value, ACT, EXACT).to(x.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["blocks"])
def _glu_kernel(x, out, F, x_m, blocks, ACT: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // blocks).to(tl.int64)
    columns = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    inside = columns < F
    x += row * x_m + columns
    gate = tl.load(x, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + F, mask=inside, other=0.0).to(tl.float32)
    EXACT: tl.constexpr = x.dtype.element_ty == tl.float32
    tl.store(out + row * F + columns, (activate(gate, ACT, EXACT) * up).to(out.dtype.element_ty), mask=inside)


@triton.jit
def activate(x, ACT: tl.constexpr, EXACT: tl.constexpr):
    """The activation named ACT (None: the identity) of x in float32; EXACT: more exactly than 16 bits can store."""
    if ACT == "gelu":
        y = _gelu(x, EXACT)
    elif ACT == "gelu_tanh":
        y = x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))  # (1 + tanh(u)) / 2 = sigmoid(2 u)
    elif ACT == "quick_gelu":
        y = x * tl.sigmoid(1.702 * x)
    elif ACT == "gelu_10":
        y = _clamp(_gelu(x, EXACT), -10.0, 10.0)
    elif ACT == "relu":
        y = tl.where(x < 0, 0.0, x)
    elif ACT == "relu2":
        y = tl.where(x < 0, 0.0, x * x)
    elif ACT == "relu6":
        y = _clamp(x, 0.0, 6.0)
    elif ACT == "leaky_relu":
        y = tl.where(x < 0, 0.01 * x, x)
    elif ACT == "silu":
        y = x * tl.sigmoid(x)
    elif ACT == "mish":
        e = tl.exp(tl.where(x > 20, 20.0, x))  # tanh(log(1 + e)) is 1 beyond
        y = x * (e * (e + 2) / (e * (e + 2) + 2))
    elif ACT == "hardswish":
        y = x * (_clamp(x + 3, 0.0, 6.0) / 6)
    elif ACT == "hardsigmoid":
        y = _clamp(x + 3, 0.0, 6.0) / 6
    elif ACT == "sigmoid":
        y = tl.sigmoid(x)
    elif ACT == "tanh":
        y = _tanh(x)
    else:
        y = x
    return y


@triton.jit
def _clamp(x, least, most):
    """tl.clamp that keeps NaN."""
    return tl.where(x < least, least, tl.where(x > most, most, x))


@triton.jit
def _gelu(x, EXACT: tl.constexpr):
    z = x * 0.7071067811865476
    return 0.5 * x * (1 + (tl.erf(z) if EXACT else erf(z)))


@triton.jit
def erf(x):
    """erf with an error of at most 2e-7, in a third of the instructions that the exact one takes.

    1 - erf(x) = 2 ** -(x p(x)) for x >= 0, where p is the minimax polynomial of degree 7 for the error of erf.
    """
    z = tl.abs(x)
    p = 4.536175765679218e-05 * z - 0.0004455257731024176
    p = p * z + 0.0014894760679453611
    p = p * z + 0.000774608226493001
    p = p * z - 0.02825368382036686
    p = p * z + 0.14848162233829498
    p = p * z + 0.9184163808822632
    p = p * z + 1.6279085874557495
    y = 1 - tl.exp2(-z * p)
    return tl.where(x < 0, -y, y)


@triton.jit
def _tanh(x):
    """(1 - e) / (1 + e) with e = exp(-2 |x|); its series near 0, where the difference has few digits."""
    z = tl.abs(x)
    e = tl.exp2(z * (-2 * LOG2E))
    s = x * x
    series = 0.021869488536155203 * s - 0.05396825396825397
    series = series * s + 0.13333333333333333
    series = series * s - 0.3333333333333333
    series = x + x * s * series
    y = (1 - e) / (1 + e)
    return tl.where(z < 0.3, series, tl.where(x < 0, -y, y))
