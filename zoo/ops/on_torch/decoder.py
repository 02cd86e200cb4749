"""Rotary positions, gated activations and writes to a cache: zoo's kernels if they run, else torch's functions."""

from __future__ import annotations

import torch
from torch import Tensor

from .activations import ACT
from .devices import constant
from .kernels import kernel, usable


def rotary(positions: Tensor, frequencies: tuple[float, ...], scale: float, like: Tensor) -> tuple[Tensor, Tensor]:
    angles = positions.to(torch.float32)[..., None] * constant(frequencies, positions.device)
    cos, sin = angles.cos(), angles.sin()
    return (cos, sin) if scale == 1 else (cos * scale, sin * scale)


def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    if usable(x):
        return kernel("rope").rope(x, cos, sin)
    cos, sin = cos[:, :, None], sin[:, :, None]
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


def rope_write_(
    q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor, keys: Tensor, values: Tensor, start: Tensor
) -> Tensor:
    if usable(q, k, v, keys, values):
        return kernel("rope").rope_write_(q, k, v, cos, sin, keys, values, start)
    write_(keys, rope(k, cos, sin), start)
    write_(values, v, start)
    return rope(q, cos, sin)


def write_(out: Tensor, x: Tensor, start: Tensor) -> Tensor:
    at = start[:, None]
    if x.shape[1] > 1:
        at = at + torch.arange(x.shape[1], device=x.device)
    return out.scatter_(1, at.reshape(*at.shape, *(1 for _ in x.shape[2:])).expand(x.shape), x)


def glu(x: Tensor, act: str | None) -> Tensor:
    if usable(x):
        activations = kernel("activations")
        if act in activations.ACTS:
            return activations.glu(x, act)
    gate, up = x.chunk(2, -1)
    return ACT[act](gate) * up
