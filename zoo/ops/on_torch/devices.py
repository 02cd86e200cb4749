"""Values that can be read without waiting for a device, and constants that stay on one."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from ..capture import current


def on_host(x: Tensor) -> bool:
    """True if the values of x can be read without waiting for a device."""
    return x.device.type == "cpu"


def constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    """The numbers as a float32 tensor on a device, copied there once."""
    x = _constant(values, device)
    if (reads := current()) is not None:
        reads.append(x)
    return x


@lru_cache(1024)
def _constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, device=device)
