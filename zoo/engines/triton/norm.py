"""Layer norm and root mean square norm, of x or of x + residual: each row is read once, and held in registers.

Ba et al. 2016, https://arxiv.org/abs/1607.06450; Zhang et al. 2019, https://arxiv.org/abs/1910.07467.
Shapes: M rows of D.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...errors import UnsupportedError
from .rows import MAX_ROW, RowConfig, as_rows, ceil_div, launch, row_config


def layer_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    residual: Tensor | None = None,
    *,
    config: RowConfig | None = None,
) -> Tensor:
    """`zoo.ops.layer_norm`: x, residual (..., D), weight, bias (D,) -> (..., D).  x + residual is not rounded.

    Raises UnsupportedError if D is more than `rows.MAX_ROW`, as all norms here do.
    """
    out, _ = _norm(x, residual, weight, bias, eps, None, config)
    return out


def add_layer_norm(
    x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor, eps: float, *, config: RowConfig | None = None
) -> tuple[Tensor, Tensor]:
    """(LayerNorm(sum), sum) of sum = x + residual, which is rounded to the dtype of x before it is normalised.

    x, residual (..., D), weight, bias (D,) -> two of (..., D).
    """
    return _norm(x, residual, weight, bias, eps, torch.empty(x.shape, dtype=x.dtype, device=x.device), config)


def rms_norm(x: Tensor, weight: Tensor, eps: float, *, config: RowConfig | None = None) -> Tensor:
    """`zoo.ops.rms_norm`: x (..., D), weight (D,) -> (..., D); the quotient is rounded before weight multiplies it."""
    out, _ = _norm(x, None, weight, None, eps, None, config)
    return out


def add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor, eps: float, *, config: RowConfig | None = None
) -> tuple[Tensor, Tensor]:
    """(RMSNorm(sum), sum) of sum = x + residual, which is rounded to the dtype of x before it is normalised.

    x, residual (..., D), weight (D,) -> two of (..., D).
    """
    return _norm(x, residual, weight, None, eps, torch.empty(x.shape, dtype=x.dtype, device=x.device), config)


def _norm(
    x: Tensor,
    residual: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    eps: float,
    sums: Tensor | None,
    config: RowConfig | None,
) -> tuple[Tensor, Tensor]:
    """The norm, and `sums`, into which x + residual is written; without a bias, the root mean square norm."""
    D = x.shape[-1]
    if D > MAX_ROW:
        raise UnsupportedError(f"the kernels of norms take rows of up to {MAX_ROW}, found {D}")
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not out.numel():
        return out, out if sums is None else sums
    rows = as_rows(x)
    residuals = None if residual is None else as_rows(residual)
    config = config or row_config(x)
    launch(
        _norm_kernel, ceil_div(len(rows), config.block_m), rows, residuals, weight, bias, out, sums, len(rows),
        rows.stride(0), 0 if residuals is None else residuals.stride(0), eps,
        D=D, BM=config.block_m, BD=triton.next_power_of_2(D), warps=config.warps,
    )  # fmt: skip
    return out, out if sums is None else sums


@triton.jit(do_not_specialize=["M"])
def _norm_kernel(
    x, residual, weight, bias, out, sums, M,
    x_m, residual_m,
    eps,
    D: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """x_m and residual_m: the strides from row to row; out and sums are contiguous."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.arange(0, BD)[None, :]
    inside = (rows < M) & (columns < D)
    rows = rows.to(tl.int64)
    value = tl.load(x + rows * x_m + columns, mask=inside, other=0.0).to(tl.float32)
    if residual is not None:
        value += tl.load(residual + rows * residual_m + columns, mask=inside, other=0.0).to(tl.float32)
    if sums is not None:
        rounded = value.to(sums.dtype.element_ty)
        tl.store(sums + rows * D + columns, rounded, mask=inside)
        value = rounded.to(tl.float32)
    if bias is not None:
        # Divided exactly: in a row of equal numbers what is left would be multiplied by 1 / sqrt(eps).
        value -= tl.div_rn(tl.sum(value, 1, keep_dims=True), D * 1.0)
        value = tl.where(columns < D, value, 0.0)
    value *= 1 / tl.sqrt(tl.sum(value * value, 1, keep_dims=True) / D + eps)
    scale = tl.load(weight + columns, mask=columns < D, other=0.0).to(tl.float32)
    if bias is not None:
        value = value * scale + tl.load(bias + columns, mask=columns < D, other=0.0).to(tl.float32)
    else:
        value = value.to(out.dtype.element_ty).to(tl.float32) * scale
    tl.store(out + rows * D + columns, value.to(out.dtype.element_ty), mask=inside)
