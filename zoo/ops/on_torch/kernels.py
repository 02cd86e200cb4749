"""The Triton kernels as the ops see them: an engine, which is imported when the first tensor comes that may use it."""

from __future__ import annotations

from types import ModuleType

from torch import Tensor

from ... import plugins


def usable(x: Tensor, *others: Tensor | None) -> bool:
    """Whether kernels run on tensors of this device and element type, and no gradient is wanted of any of them."""
    return plugins.engine("triton").usable(x, *others)


def kernel(name: str) -> ModuleType:
    """The module of a kernel: "attention", "norm", ..."""
    return plugins.engine(f"triton.{name}")
