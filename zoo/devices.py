"""From the device that a user names to the backend of ops, the device's name there, and the engine that runs models."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from . import plugins
from .errors import UnsupportedError


class Placement(NamedTuple):
    """The place of a model's arrays, and what runs it."""

    backend: ModuleType  # `zoo.ops.on_numpy` or `zoo.ops.on_torch`
    device: str  # the backend's name of the device: "cpu", "cuda:1"
    engine: ModuleType | None = None  # one of `zoo.plugins.DEVICES`, instead of the backend

    @property
    def is_numpy(self) -> bool:
        from .ops import on_numpy

        return self.backend is on_numpy


def placement(device: str | None, *, trainable: bool = False) -> Placement:
    """The placement of a device: None or "cpu", "onnx", "onnx:cuda", "torch:cpu", "cuda", "cuda:1".

    trainable: the model needs gradients, which only torch computes.  UnsupportedError: an unknown device, one that this
    machine does not have, or one that cannot train.
    """
    from .ops import on_numpy

    if device is None or str(device) in ("cpu", "numpy"):
        found = Placement(on_numpy, "cpu")
    elif (name := str(device).partition(":")[0]) in plugins.DEVICES:
        engine = plugins.engine(name)
        engine.check(str(device))
        found = Placement(on_numpy, "cpu", engine)
    else:
        found = _on_torch(str(device))
    if trainable and found.is_numpy:
        raise UnsupportedError(
            f"trainable=True needs gradients, which only torch computes: the device is {device or 'cpu'!r}, expected "
            "'torch:cpu', 'cuda' or 'cuda:1'"
        )
    return found


def _on_torch(device: str) -> Placement:
    try:
        import torch
    except ImportError:
        raise UnsupportedError(
            f"device {device!r} needs torch, which is not installed: install zoo with its extra 'gpu'"
        ) from None
    from .ops import on_torch

    name = device.removeprefix("torch:") if device != "torch" else "cpu"
    try:
        found = torch.device(name)
    except RuntimeError:
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise UnsupportedError(
            f"device {device!r} is not supported, expected 'cpu', 'cuda', 'cuda:1', 'torch:cpu' or 'onnx'"
        )
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise UnsupportedError(
            f"device {device!r}: torch {torch.__version__} finds {torch.cuda.device_count()} CUDA GPUs; "
            "'cpu' works everywhere"
        )
    return Placement(on_torch, name)
