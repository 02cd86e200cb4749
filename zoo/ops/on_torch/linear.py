"""Linear layers: products by torch, activations by zoo's kernels if these run."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ...quant import QuantRows, QuantTensor
from .activations import ACT
from .kernels import kernel, usable
from .quantised import dequantise


def linear(
    x: Tensor,
    weight: Tensor | QuantTensor | tuple[Tensor, ...],
    bias: Tensor | tuple[Tensor, ...] | None,
    act: str | None,
    residual: Tensor | None,
) -> Tensor:
    if isinstance(weight, tuple):
        weight = torch.cat(weight)
    if isinstance(bias, tuple):
        bias = torch.cat(bias)
    if isinstance(weight, QuantTensor):
        return _by_parts(x, weight, bias, act, residual)
    if usable(x, weight, bias, residual):
        if x.numel() == x.shape[-1]:  # one row: a kernel that is made for it reads the weight faster
            gemv = kernel("gemv")
            if gemv.suits(x, weight) and (act is None or act in gemv.activations.ACTS):
                return gemv.gemv(x, weight, bias, act, residual)
        if act is not None:
            activations = kernel("activations")
            if act in activations.ACTS:
                y = activations.bias_act_(F.linear(x, weight), bias, act)
                return y if residual is None else y + residual
    if act is bias is None and residual is not None and residual.shape == (*x.shape[:-1], len(weight)):
        y = torch.addmm(residual.reshape(-1, len(weight)), x.reshape(-1, x.shape[-1]), weight.T)
        return y.reshape(residual.shape)
    y = ACT[act](F.linear(x, weight, bias))
    return y if residual is None else y + residual


def _by_parts(x: Tensor, weight: QuantTensor, bias: Tensor | None, act: str | None, residual: Tensor | None) -> Tensor:
    """Each part of the weight makes a slice of the outputs."""
    if len(weight.parts) == 1:
        return _part(x, weight.parts[0], bias, act, residual)
    made, end = [], 0
    for part in weight.parts:
        begin, end = end, end + len(part)
        of_bias, of_residual = (None if a is None else a[..., begin:end] for a in (bias, residual))
        made.append(_part(x, part, of_bias, act, of_residual))
    return torch.cat(made, -1)


def _part(x: Tensor, part: QuantRows, bias: Tensor | None, act: str | None, residual: Tensor | None) -> Tensor:
    takes_kernels = usable(x, *(a for a in part.arrays if a.is_floating_point()), bias, residual)
    if takes_kernels and (act is None or act in kernel("activations").ACTS):
        for name in ("packed_gemv", "packed_dot"):
            module = kernel(name)
            if module.suits(x, part.kind.name):
                return getattr(module, name)(x, part.kind.name, part.arrays, bias, act, residual)
    return linear(x, dequantise(part, x.dtype), bias, act, residual)
