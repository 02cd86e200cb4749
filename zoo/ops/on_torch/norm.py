"""Norms and softmax: zoo's kernels if they run, else torch's functions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .kernels import kernel, usable


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float, residual: Tensor | None) -> Tensor:
    if usable(x, weight, bias, residual):
        return kernel("norm").layer_norm(x, weight, bias, eps, residual)
    return F.layer_norm(x if residual is None else x + residual, weight.shape, weight, bias, eps)


def add_layer_norm(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    if usable(x, residual, weight, bias):
        return kernel("norm").add_layer_norm(x, residual, weight, bias, eps)
    total = x + residual
    return F.layer_norm(total, weight.shape, weight, bias, eps), total


def group_norm(x: Tensor, weight: Tensor, bias: Tensor, groups: int, eps: float) -> Tensor:
    return F.group_norm(x.permute(0, 3, 1, 2), groups, weight, bias, eps).permute(0, 2, 3, 1)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    if usable(x, weight):
        return kernel("norm").rms_norm(x, weight, eps)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return wide.to(x.dtype) * weight


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    if usable(x, residual, weight):
        return kernel("norm").add_rms_norm(x, residual, weight, eps)
    total = x + residual
    return rms_norm(total, weight, eps), total


def softmax(x: Tensor) -> Tensor:
    if usable(x):
        return kernel("softmax").softmax(x)
    return torch.softmax(x, -1).masked_fill((x == float("-inf")).all(-1, keepdim=True), 0.0)
