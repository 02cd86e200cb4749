"""Finds the backend of an array, and says what holds of arrays of that kind."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..errors import InputError, UnsupportedError, nearest
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


# An activation's name in configs -> the backends' name.
ACTIVATIONS: dict[str, str | None] = {
    **{name: name for name in ("gelu", "quick_gelu", "gelu_10", "relu", "relu2", "relu6", "leaky_relu", "silu")},
    **{name: name for name in ("mish", "hardswish", "hardsigmoid", "sigmoid", "tanh")},
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate"), "gelu_tanh"),
    "gelu_python": "gelu",
    "swish": "silu",
    "linear": None,
}


def activation(name: str | None) -> str | None:
    """The backends' name of a config's activation `name`; None is the identity."""
    if name is None:
        return None
    if name not in ACTIVATIONS:
        raise UnsupportedError(f"activation {name!r} is not implemented{nearest(name, ACTIVATIONS)}")
    return ACTIVATIONS[name]


def reads_prepared_weights(x: Array) -> bool:
    """True if `conv2d` of x reads the result of `prepare_conv` instead of the weight's elements."""
    return isinstance(x, np.ndarray)


def accepts_full_cache(like: Array) -> bool:
    """True if `attention` skips the keys that no query sees, so that it may be given a whole cache."""
    return backend(like).accepts_full_cache(like)


def is_cuda(like: Array) -> bool:
    """True if an array is on a GPU."""
    return getattr(like, "is_cuda", False)


def all_true(mask: Array) -> bool:
    """True if a bool array is known to be all true; False for one on a GPU, which would have to be waited for."""
    return backend(mask).all_true(mask)


def to_numpy(x: Array) -> np.ndarray:
    """A C-contiguous NumPy array of the same values (float32 if x is a narrower float)."""
    return backend(x).to_numpy(x)
