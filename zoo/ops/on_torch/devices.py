"""What lies where: values that may be looked at without waiting, and numbers that stay on a device."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from ..capture import current


def on_host(x: Tensor) -> bool:
    """Whether the values of x can be looked at without waiting for a device."""
    return x.device.type == "cpu"


def constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    """The numbers as a float32 tensor on a device, to which they are copied once."""
    x = _constant(values, device)
    if (reads := current()) is not None:
        reads.append(x)
    return x


@lru_cache(1024)
def _constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, device=device)
