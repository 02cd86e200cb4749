"""Reused memory: scratch buffers of each thread, and results that are no longer referenced."""

from __future__ import annotations

import math
import sys
import threading

import numpy as np

KEEP = 64 << 20  # bytes of results that each thread keeps for reuse
GROWTH_DIVISOR, MAX_SLACK = 4, 2  # a new buffer has a quarter more than is asked for, and serves down to half its size
MIN_REUSED_BYTES = 1 << 18  # bytes below which malloc is as fast
MIN_ALIGNED_BYTES = 1 << 14  # bytes below which alignment does not pay
ALIGN = 64  # bytes

_local = threading.local()
# Without a GIL a reference count does not show that an array is unused.
_counts = getattr(sys, "_is_gil_enabled", lambda: True)() and hasattr(sys, "getrefcount")
_probe = [np.empty(1)]
_IDLE_REFERENCES = sys.getrefcount(_probe[0]) if _counts else 0  # references to an array that is only in a list


def scratch(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An uninitialised array; the same thread's next call with this name returns the same memory.

    Ops share names, and so memory that is warm in the caches: a buffer is unused once its op returns or calls another.
    "work" and "work 2" are a block of an elementwise op; "block" and "tiles" parts of images and heads;
    "columns", "product", "rows" and "rows out" parts of matrix products; "widened" and "rest" quantised matrices.
    """
    size = math.prod(shape)
    try:
        buffer = _local.buffers[name, dtype]
    except (AttributeError, KeyError):
        buffer = None
    if buffer is None or buffer.size < size:
        buffer = _align(_empty(size, dtype), size)
        if buffer.nbytes <= KEEP // 8:
            vars(_local).setdefault("buffers", {})[name, dtype] = buffer
    return buffer[:size].reshape(shape)


def result(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An uninitialised array for a result.

    Large ones are reused once the caller has dropped them and every view of them: the pages of a new one would cost as
    much as a layer norm.
    """
    size = math.prod(shape)
    nbytes = size * dtype.itemsize + ALIGN
    if nbytes < MIN_ALIGNED_BYTES:
        return np.empty(shape, dtype)
    if nbytes < MIN_REUSED_BYTES or nbytes > KEEP // 2 or not _counts:
        return _align(_empty(size, dtype), size).reshape(shape)
    try:
        kept = _local.kept
    except AttributeError:
        kept = _local.kept = []
    fitting = [
        (kept[i].nbytes, i)
        for i in range(len(kept))
        if nbytes <= kept[i].nbytes <= MAX_SLACK * nbytes
        and kept[i].dtype == dtype
        and sys.getrefcount(kept[i]) == _IDLE_REFERENCES
    ]
    if fitting:
        kept.append(kept.pop(min(fitting)[1]))
    else:
        kept.append(_empty(size + size // GROWTH_DIVISOR, dtype))
        total = sum(b.nbytes for b in kept)
        while total > KEEP:
            total -= kept.pop(0).nbytes
    return _align(kept[-1], size).reshape(shape)


def _empty(size: int, dtype: np.dtype) -> np.ndarray:
    return np.empty(size + ALIGN // dtype.itemsize, dtype)


def _align(buffer: np.ndarray, size: int) -> np.ndarray:
    """The part of a buffer that begins at a cache line: vector loads that straddle two of them take twice as long."""
    start = -buffer.__array_interface__["data"][0] % ALIGN // buffer.itemsize
    return buffer[start : start + size]
