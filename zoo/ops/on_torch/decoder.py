"""What Llama computes between products: root mean square norms, rotary positions, gated activations."""

from __future__ import annotations

import torch
from torch import Tensor

from .activations import ACT


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return wide.to(x.dtype) * weight


def rotary(positions: Tensor, frequencies: tuple[float, ...], scale: float, like: Tensor) -> tuple[Tensor, Tensor]:
    of = torch.tensor(frequencies, dtype=torch.float32, device=positions.device)
    angles = positions.to(torch.float32)[..., None] * of
    return angles.cos() * scale, angles.sin() * scale


def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    cos, sin = cos[:, :, None], sin[:, :, None]
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


def gated(x: Tensor, act: str | None) -> Tensor:
    gate, up = x.chunk(2, -1)
    return ACT[act](gate) * up
