"""What lies where: values that may be looked at without waiting, and numbers that stay on a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import torch
from torch import Tensor

_holders: dict[int, list[Tensor]] = {}


def on_host(x: Tensor) -> bool:
    """Whether the values of x can be looked at without waiting for a device."""
    return x.device.type == "cpu"


def constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    """The numbers as a float32 tensor on a device, to which they are copied once."""
    x = _constant(values, device)
    for holder in list(_holders.values()):
        holder.append(x)
    return x


@contextmanager
def holding() -> Iterator[list[Tensor]]:
    """The constants that are asked for within the context: whoever keeps the list keeps them where they lie."""
    held: list[Tensor] = []
    _holders[id(held)] = held
    try:
        yield held
    finally:
        del _holders[id(held)]


@lru_cache(1024)
def _constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, device=device)
