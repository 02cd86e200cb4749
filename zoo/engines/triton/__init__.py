"""The Triton kernels, and the tensors that they are used for.

They run on NVIDIA GPUs of compute capability 8.0 and above, and on AMD GPUs that Triton supports.  Everything else, CPU
tensors among it, is computed by torch's own functions.  ZOO_KERNELS=off in the environment turns them off.

`interpreting()` runs them on CPU tensors in Triton's interpreter, to test kernels without a GPU.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache

import torch
from torch import Tensor

from ...errors import UnsupportedError
from ...optional import pip_install
from ...warning import warn

MIN_CAPABILITY = (8, 0)  # the first compute capability with bfloat16 and asynchronous copies
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
INTERPRETED_ARCHITECTURE = "sm_90"  # its configs are used if there is no GPU

_interpreted = False


def usable(x: Tensor, *others: Tensor | None) -> bool:
    """True if the kernels take tensors of this device and element type; warns once for a GPU that they do not run on.

    False if x or one of the others requires a gradient: kernels compute none.
    """
    if x.dtype not in DTYPES:
        return False
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, *others)):
        return False
    if x.device.type != "cuda":
        return _interpreted
    return _runs_on(x.device.index or 0)


def architecture(x: Tensor) -> str:
    """The name that configs are chosen by: "sm_80", "sm_90", "gfx942", ... of the GPU that x is on."""
    return _architecture(x.device.index or 0) if x.device.type == "cuda" else INTERPRETED_ARCHITECTURE


def on_device(x: Tensor) -> AbstractContextManager[object]:
    """The context in which a kernel on x is launched: Triton launches on the current device."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


def unit_last(x: Tensor) -> Tensor:
    """x, or a copy of it if the elements of its last axis do not follow one another."""
    return x if x.stride(-1) == 1 else x.contiguous()


@contextmanager
def interpreting() -> Iterator[None]:
    """A context in which kernels run on CPU tensors too.  TRITON_INTERPRET=1 must be set when they are imported."""
    global _interpreted
    if os.environ.get("TRITON_INTERPRET") != "1":
        raise UnsupportedError(
            "kernels run on CPU tensors only where TRITON_INTERPRET=1 is set before they are imported"
        )
    before, _interpreted = _interpreted, True
    try:
        yield
    finally:
        _interpreted = before


@lru_cache(None)
def _runs_on(index: int) -> bool:
    if os.environ.get("ZOO_KERNELS", "on") == "off":
        return False
    reason = _why_not(index)
    if reason:
        warn(f"cuda:{index} runs without zoo's kernels, by torch's own functions: {reason}")
    return not reason


def _why_not(index: int) -> str:
    try:
        import triton  # noqa: F401
    except ImportError as e:
        return f"triton cannot be imported ({e}): {pip_install('gpu')}"
    capability = torch.cuda.get_device_capability(index)
    if torch.version.hip is None and capability < MIN_CAPABILITY:
        have, want = (".".join(map(str, pair)) for pair in (capability, MIN_CAPABILITY))
        return f"{torch.cuda.get_device_name(index)} has compute capability {have}, and they need {want}"
    if not (os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")):
        return "Triton compiles what launches a kernel, and finds no C compiler: apt-get install gcc, or name one in CC"
    return ""


@lru_cache(None)
def _architecture(index: int) -> str:
    properties = torch.cuda.get_device_properties(index)
    if torch.version.hip is not None:
        return str(properties.gcnArchName).partition(":")[0]
    return f"sm_{properties.major}{properties.minor}"
