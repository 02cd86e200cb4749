"""Captures of CUDA graphs, as far as those need to know who compute once and keep the result.

A graph reads where its numbers lay when it was captured.  What was kept before must stay there for as long as the graph
is replayed; what is made while it is captured lies in memory of its own, and says nothing before a replay.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..typing import Array

_thread = threading.local()


@contextmanager
def capturing() -> Iterator[list[Array]]:
    """A capture by this thread; the list gets what was kept before and is read now."""
    _thread.reads = []
    try:
        yield _thread.reads
    finally:
        _thread.reads = None


def current() -> list[Array] | None:
    """What the capture of this thread has read of kept arrays; None where there is no capture."""
    return getattr(_thread, "reads", None)
