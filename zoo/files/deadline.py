"""A deadline for a call that cannot be ended, such as a library's download."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def run_within(seconds: Callable[[], float], call: Callable[[], T]) -> T:
    """The result of a call in a thread of its own.

    TimeoutError: it has taken longer than `seconds()`, which may grow meanwhile; the thread is left behind.
    """
    answers: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((True, call()))
        except BaseException as e:
            answers.put((False, e))

    began = time.monotonic()
    threading.Thread(target=run, daemon=True).start()
    while (left := began + seconds() - time.monotonic()) > 0:
        try:
            is_result, value = answers.get(timeout=min(left, 1.0))
        except queue.Empty:
            continue
        if is_result:
            return value
        raise value
    raise TimeoutError(f"not done in {seconds():g} s")
