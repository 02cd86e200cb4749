"""A call that may take only so long."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class _Stopped(BaseException):
    """Raised in a call that is no longer waited for."""


def within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` gives or raises; TimeoutError where it has not ended after so many seconds.

    It runs in a thread of its own, which ends with its next step in Python when nobody waits for it any longer, after
    the time is up or Ctrl-C.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as e:
            errors.append(e)

    thread: Any = threading.Thread(target=work, daemon=True, name="zoo deadline")
    thread.start()
    try:
        thread.join(min(seconds, threading.TIMEOUT_MAX))
        if thread.is_alive():
            raise TimeoutError(f"not done after {seconds:.0f} s")
    finally:
        if thread.is_alive():
            stop = ctypes.pythonapi.PyThreadState_SetAsyncExc
            stop(ctypes.c_ulong(thread.ident), ctypes.py_object(_Stopped))
    if errors:
        raise errors[0]
    return results[0]
