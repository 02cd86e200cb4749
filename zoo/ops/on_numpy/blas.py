"""The BLAS that NumPy calls: its thread count, and the processor that it is for."""

from __future__ import annotations

import ctypes
import glob
import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

# Cores for which OpenBLAS has kernels that multiply small matrices without packing them: those with AVX-512.
CORES_WITHOUT_PACKING = {"skylakex", "cooperlake", "sapphirerapids"}


class Control(NamedTuple):
    get: Callable[[], int]
    set: Callable[[int], object]
    core: str | None = None  # OpenBLAS's name of the processor: "Haswell" is also Zen 3


@cache
def needs_no_packing() -> bool:
    """True if small products are known to need no packing."""
    control = find()
    return control is not None and (control.core or "").lower() in CORES_WITHOUT_PACKING


@cache
def find() -> Control | None:
    """Functions that read and set the thread count; None if NumPy's BLAS has none."""
    np.dot(np.ones((2, 2)), np.ones((2, 2)))  # a BLAS that loads lazily is loaded now
    for path in _libraries():
        try:
            library = ctypes.PyDLL(path)  # PyDLL keeps the GIL: these calls take nanoseconds
        except OSError:
            continue
        for prefix in ("scipy_openblas", "openblas"):
            for suffix in ("64_", "_64", ""):
                control = _openblas(library, prefix, suffix)
                if control:
                    return control
    return _by_threadpoolctl()


def _openblas(library: ctypes.PyDLL, prefix: str, suffix: str) -> Control | None:
    try:
        get, put = (getattr(library, f"{prefix}_{verb}_num_threads{suffix}") for verb in ("get", "set"))
    except AttributeError:
        return None
    get.argtypes, get.restype, put.argtypes, put.restype = (), ctypes.c_int, (ctypes.c_int,), None
    return Control(get, put, _core(library, f"{prefix}_get_corename{suffix}"))


def _core(library: ctypes.PyDLL, function: str) -> str | None:
    name = getattr(library, function, None)
    if name is None:
        return None
    name.argtypes, name.restype = (), ctypes.c_char_p
    return (name() or b"").decode("ascii", "replace") or None


def _libraries() -> Iterator[str]:
    """Yield the OpenBLAS in NumPy's wheel, then any that the process has loaded from elsewhere."""
    package = os.path.dirname(np.__file__)
    folders = [os.path.join(os.path.dirname(package), "numpy.libs")]
    folders += [os.path.join(package, name) for name in (".libs", ".dylibs")]
    for folder in folders:
        yield from sorted(glob.glob(os.path.join(folder, "*openblas*")))
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "blas" in line}
    except OSError:
        return
    # Other packages have their own OpenBLAS, which NumPy does not call.
    yield from sorted(p for p in paths if p.startswith("/") and ".libs/" not in p)


def _by_threadpoolctl() -> Control | None:
    try:
        from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    controllers = ThreadpoolController().select(user_api="blas").lib_controllers
    if len(controllers) != 1:
        return None
    core = getattr(controllers[0], "architecture", None)
    return Control(controllers[0].get_num_threads, controllers[0].set_num_threads, core)
