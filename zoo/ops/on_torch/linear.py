"""Linear layers: products by torch, what follows them by zoo's kernels where these run."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ...packed import Packed
from .activations import ACT
from .kernels import usable
from .packed import dequantise


def linear(
    x: Tensor,
    weight: Tensor | Packed | tuple[Tensor, ...],
    bias: Tensor | tuple[Tensor, ...] | None,
    act: str | None,
    residual: Tensor | None,
) -> Tensor:
    if isinstance(weight, tuple):
        weight = torch.cat(weight)
    elif isinstance(weight, Packed):
        weight = dequantise(weight, x.dtype)
    if isinstance(bias, tuple):
        bias = torch.cat(bias)
    if usable(x, weight, bias, residual):
        if x.numel() == x.shape[-1]:  # one row: the weight is read once, for which a product is not made
            from .kernels import gemv

            if gemv.suits(x, weight) and (act is None or act in gemv.activations.ACTS):
                return gemv.gemv(x, weight, bias, act, residual)
        if act is not None:
            from .kernels import activations

            if act in activations.ACTS:
                y = activations.bias_act_(F.linear(x, weight), bias, act)
                return y if residual is None else y + residual
    if act is bias is None and residual is not None and residual.shape == (*x.shape[:-1], len(weight)):
        y = torch.addmm(residual.reshape(-1, len(weight)), x.reshape(-1, x.shape[-1]), weight.T)
        return y.reshape(residual.shape)
    y = ACT[act](F.linear(x, weight, bias))
    return y if residual is None else y + residual
