"""Numbers below 1.2e-38 are zeros while ONNX Runtime computes, on x86-64 with Linux.

Softmax makes such numbers of keys that a mask hides, and Intel's processors stop for each: masked softmax took five
times as long (Sapphire Rapids).  ONNX Runtime's option is for its own threads, and for the thread that makes the first
session of a process, which keeps it.  So the calling thread is set here, and gets its own setting back.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager

OPTION = "session.set_denormal_as_zero"
# Bytes of C's fenv_t, the place of the register MXCSR in it, and its bits "flush to zero" and "denormals are zeros".
SIZE, MXCSR, FLUSH = 32, 28, 0x8040


def _library() -> ctypes.PyDLL | None:
    """C's library, if `fenv_t` is known; PyDLL keeps the GIL: these calls take nanoseconds."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    try:
        library = ctypes.PyDLL(None)
        return library if library.fegetenv and library.fesetenv else None
    except (AttributeError, OSError):
        return None


_c = _library()
FLUSHES = _c is not None


@contextmanager
def flushing() -> Iterator[None]:
    """A context in which numbers below 1.2e-38 are zeros in this thread, where the system allows it."""
    if _c is None:
        yield
        return
    before = ctypes.create_string_buffer(SIZE)
    _c.fegetenv(before)
    mxcsr = int.from_bytes(before.raw[MXCSR:], sys.byteorder) | FLUSH
    _c.fesetenv(before.raw[:MXCSR] + mxcsr.to_bytes(SIZE - MXCSR, sys.byteorder))
    try:
        yield
    finally:
        _c.fesetenv(before)
