"""The Triton kernels: an engine, imported with the first tensor that may use it."""

from __future__ import annotations

from types import ModuleType

from torch import Tensor

from ... import plugins


def usable(x: Tensor, *others: Tensor | None) -> bool:
    """True if kernels run on tensors of this device and element type, and none of them requires a gradient."""
    return plugins.kernels().usable(x, *others)


def kernel(name: str) -> ModuleType:
    """The module of a kernel: "attention", "norm", ..."""
    return plugins.kernels(name)
