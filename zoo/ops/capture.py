"""The state of a CUDA graph's capture, for code that caches arrays.

A graph reads the addresses of its capture.  Cached arrays that it reads must stay alive for as long as it is replayed;
arrays made during a capture are in the graph's own memory, and have no values before a replay.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..typing import Array

_thread = threading.local()


@contextmanager
def capturing() -> Iterator[list[Array]]:
    """A context of a capture by this thread; cached arrays that are read are appended to the list."""
    _thread.reads = []
    try:
        yield _thread.reads
    finally:
        _thread.reads = None


def current() -> list[Array] | None:
    """The cached arrays that this thread's capture has read; None if there is no capture."""
    return getattr(_thread, "reads", None)
