"""From the device that a user names to the backend of ops, the device's name there, and the engine that runs models."""

from __future__ import annotations

import importlib.util
import os
from contextlib import suppress
from types import ModuleType
from typing import NamedTuple

from . import plugins
from .errors import UnsupportedError, nearest

AUTO = "auto"


class Placement(NamedTuple):
    """The place of a model's arrays, and what runs it."""

    backend: ModuleType  # `zoo.ops.on_numpy` or `zoo.ops.on_torch`
    device: str  # the backend's name of the device: "cpu", "cuda:1"
    engine: plugins.DeviceEngine | None = None  # one of `zoo.plugins.DEVICES`, instead of the backend

    @property
    def is_numpy(self) -> bool:
        from .ops import on_numpy

        return self.backend is on_numpy


def resolve_device(device: str | None, dtype: str | None = None) -> str | None:
    """The device that "auto" stands for; any other device is returned as it is.

    "auto" is ZOO_DEVICE from the environment if that is set, else the first that this machine has of a CUDA GPU, ONNX
    Runtime (with onnx, which builds its graphs; it computes in float32, so not for another dtype) and NumPy.  For
    "bfloat16" and "float16" it is OpenVINO, where it is installed and the processor computes in them.
    """
    if device != AUTO:
        return device
    named = os.environ.get("ZOO_DEVICE", "").strip()
    if named and named != AUTO:
        return named
    if _has_cuda():
        return "cuda"
    if not (_is_installed("onnx") and _is_installed("onnxruntime")):
        return None
    if dtype in ("bfloat16", "float16") and _is_installed("openvino"):
        with suppress(UnsupportedError):  # the processor has no such numbers
            plugins.device_engine("openvino").check("openvino", dtype)
            return "openvino"
    return "onnx" if dtype in (None, "float32") else None


def engine_hint() -> str | None:
    """What to install for a faster engine on a CPU, and how much faster it is; None if it is there."""
    if _is_installed("onnx") and _is_installed("onnxruntime"):
        return None
    from .optional import pip_install

    gain = "a token of packed weights takes a sixth of the time there, an encoder two thirds to five sixths"
    return f"{pip_install('fast')} brings ONNX Runtime: {gain}"


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _has_cuda() -> bool:
    """True if torch finds a CUDA GPU; torch is imported only where a driver is installed."""
    if not _is_installed("torch"):
        return False
    import ctypes

    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")  # to look for it would start processes
    except OSError:
        return False
    import torch

    return torch.cuda.is_available()


def placement(device: str | None, *, trainable: bool = False) -> Placement:
    """The placement of a device: None or "cpu", "onnx", "onnx:cuda", "openvino", "torch:cpu", "cuda", ...

    trainable: the model needs gradients, which only torch computes.  UnsupportedError: an unknown device, one that this
    machine does not have, or one that cannot train.
    """
    from .ops import on_numpy

    if device is None or str(device) in ("cpu", "numpy"):
        found = Placement(on_numpy, "cpu")
    elif (name := str(device).partition(":")[0]) in plugins.DEVICES:
        engine = plugins.device_engine(name)
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
    if device.partition(":")[0] not in ("torch", "cuda"):
        raise _unsupported_error(device)
    try:
        import torch
    except ImportError:
        from .optional import pip_install

        raise UnsupportedError(
            f"{device!r} needs torch, which is not installed: {pip_install('gpu')}", argument="device"
        ) from None
    from .ops import on_torch

    name = device.removeprefix("torch:") if device != "torch" else "cpu"
    try:
        found = torch.device(name)
    except RuntimeError:
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise _unsupported_error(device)
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise UnsupportedError(
            f"{device!r}: torch {torch.__version__} finds {torch.cuda.device_count()} CUDA GPUs; "
            "'cpu' works everywhere",
            argument="device",
        )
    return Placement(on_torch, name)


def _unsupported_error(device: str) -> UnsupportedError:
    known = ("cpu", "onnx", "onnx:cuda", "openvino", "cuda", "cuda:1", "torch:cpu", AUTO)
    names = ", ".join(map(repr, known[:-1]))
    return UnsupportedError(
        f"{device!r} is not supported, expected {names} or {AUTO!r}{nearest(device, known)}", argument="device"
    )
