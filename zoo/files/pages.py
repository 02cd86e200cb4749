"""The memory that pages of mapped files take."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

RELEASE_INTERVAL = 0.005  # seconds between releases of an array that is read


def mapping_of(array: np.ndarray) -> tuple[mmap.mmap | None, int]:
    """The mapped file that an array is a view of, or None, and where in it the array begins."""
    base: Any = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    if not isinstance(base, mmap.mmap):
        return None, 0
    return base, array.ctypes.data - np.frombuffer(base, np.uint8).ctypes.data


def release(array: np.ndarray) -> None:
    """Release the memory of a mapped array that was copied elsewhere; a later access reads the file again."""
    base, begin = mapping_of(array)
    if base is None or not array.nbytes or not hasattr(base, "madvise"):
        return
    page = begin // mmap.PAGESIZE * mmap.PAGESIZE
    base.madvise(mmap.MADV_DONTNEED, page, begin + array.nbytes - page)


@contextmanager
def calling_meanwhile(call: Callable[[], object], every: float) -> Iterator[None]:
    """A context in which a thread calls a function every few seconds, and once more at the end."""
    ends = threading.Event()

    def run() -> None:
        last = False
        while not last:
            last = ends.wait(every)
            call()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def releasing(array: np.ndarray) -> AbstractContextManager[None]:
    """A context that releases the memory of a mapped array every few seconds while another library reads it."""
    return calling_meanwhile(partial(release, array), RELEASE_INTERVAL)
