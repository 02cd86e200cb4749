"""Finds the backend of an array."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..errors import InputError
from ..quant import QuantTensor
from ..typing import Array

_backends: dict[type, ModuleType] = {}


def backend(x: Array | QuantTensor) -> ModuleType:
    """The module with the ops for arrays like `x`, or like the arrays of a QuantTensor."""
    if isinstance(x, QuantTensor):
        x = x.parts[0].arrays[0]
    return _backends.get(type(x)) or _find(type(x))


def register(cls: type, module: ModuleType) -> None:
    """Make `module` the backend of arrays of a class."""
    _backends[cls] = module


def _find(cls: type) -> ModuleType:
    if issubclass(cls, np.ndarray):
        from . import on_numpy

        return _backends.setdefault(cls, on_numpy)
    if any(base.__module__.partition(".")[0] == "torch" for base in cls.__mro__):
        from . import on_torch

        return _backends.setdefault(cls, on_torch)
    raise InputError(f"expected a numpy.ndarray or a torch.Tensor, found {cls.__module__}.{cls.__qualname__}")
