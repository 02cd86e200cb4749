"""Work on hostile data in a confined process (see `child`), started at the first request, killed if it takes too much.

    process = Confined(Job(Path("job.py"), "function", "reading maps"))
    answer = process.ask(data, most=1 << 20)

A process serves one owner, say one checkpoint: a hostile file that took it over must not reach the data of another.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import marshal
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import UnsupportedError
from . import child
from .child import ANSWER, DONE, FAILED, MAX_MESSAGE, REQUEST, STOPPED

START = 60.0  # seconds for the process to be ready
_ENVIRONMENT = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # what a Python may need to start
_OUT_OF_TIME = -signal.SIGXCPU if hasattr(signal, "SIGXCPU") else None


class Job(NamedTuple):
    """A function for the process to call on marshalled arguments; it returns bytes."""

    file: Path  # the module: it imports no part of zoo, and has a function `prepare()` that is called first
    function: str
    task: str  # for messages: "rendering chat templates"
    packages: tuple[str, ...] = ()  # that the module imports
    extra: str = ""  # of zoo, by which they are installed
    seconds: int = 3  # of the processor, for one request
    patience: float = 4.0  # seconds of the clock, on a busy machine or one that cannot limit the processor's
    memory: int = 224 << 20  # bytes of address space, beyond the process's own and those for a request
    memory_per_byte: int = 32  # of a request


class StoppedError(Exception):
    """The function took too much time, memory or depth, or the process died of it."""


class FailedError(Exception):
    """The function raised an exception."""


class Confined:
    """A confined process for one job; threads may share it, and a fork starts one of its own."""

    def __init__(self, job: Job):
        self._job = job
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        _EVERY.add(self)

    def __del__(self) -> None:
        self._stop()

    def ask(self, *request: Any, most: int) -> bytes:
        """The function's answer, of at most `most` bytes, to arguments of Python's plain types."""
        job, data = self._job, marshal.dumps(request)
        data = REQUEST.pack(len(data), job.memory + job.memory_per_byte * len(data), job.seconds) + data
        with self._lock:
            is_new = self._process is None or self._process.poll() is not None
            if is_new:
                self._start()
            began = time.monotonic()
            answer = self._exchange(data, job.patience, most)
            if answer is None and not is_new:  # it may have been killed while it was idle
                self._start()
                answer = self._exchange(data, max(job.patience - (time.monotonic() - began), 0.5), most)
            if answer is None:
                raise StoppedError("the process died of it")
            if answer[0] == STOPPED:
                self._stop()  # it may still hold what it took
        status, result = answer
        if status != DONE:
            raise {FAILED: FailedError}.get(status, StoppedError)(result.decode("utf-8", "replace"))
        return result

    def close(self) -> None:
        """End the process; the next request starts another."""
        with self._lock:
            self._stop()

    def _start(self) -> None:
        self._stop()
        folders: dict[str, None] = {}
        for name in self._job.packages:
            if (spec := importlib.util.find_spec(name)) is None or spec.origin is None:
                raise UnsupportedError(
                    f"{self._job.task} needs {name}, which is not installed: install zoo with its extra "
                    f"{self._job.extra!r}"
                )
            folders[str(Path(spec.origin).parent.parent)] = None
        needs = f"{self._job.task} needs a Python process of its own"
        if not sys.executable or getattr(sys, "frozen", False):
            raise UnsupportedError(f"{needs}, and there is no Python to start")
        command = [sys.executable, "-I", "-S", "-B", child.__file__, str(self._job.file), self._job.function, *folders]
        try:
            self._process = subprocess.Popen(
                command,
                bufsize=0,  # nothing is left in a fork to be written
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name in _ENVIRONMENT},
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as e:
            raise UnsupportedError(f"{needs}, which cannot be started: {e}") from None
        if self._exchange(b"", START, 0) is None:
            packages = f" with {' and '.join(self._job.packages)}" if self._job.packages else ""
            raise UnsupportedError(f"{needs}, which does not start: {sys.executable}{packages}")

    def _exchange(self, request: bytes, seconds: float, most: int) -> tuple[bytes, bytes] | None:
        """Status and bytes of the answer; None if the process has died."""
        assert self._process is not None
        watch = _Watch(self._process, seconds)
        try:
            status, size = ANSWER.unpack(_transfer(self._process, request, ANSWER.size))
            if size <= (most if status == DONE else 4 * MAX_MESSAGE):
                return status, _transfer(self._process, b"", size)
            self._stop()
            return STOPPED, b"its answer is too long"
        except (OSError, EOFError):
            pass
        except BaseException:  # Ctrl-C: the answer is still to come, and must not be taken for the next one's
            self._stop()
            raise
        finally:
            if watch.ended():
                self._stop()
        code = self._stop()
        if watch.late or (code is not None and code == _OUT_OF_TIME):
            return STOPPED, b"it takes too long"
        return None

    def _stop(self) -> int | None:
        """End the process, if there is one; its return code, which is negative for a signal."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        _close_pipes(process)
        return process.wait()

    def forget(self) -> None:
        """In a fork: the process stays the parent's, and only this end of its pipes is closed."""
        process, self._process, self._lock = self._process, None, threading.Lock()
        if process is not None:
            _close_pipes(process)
            process.returncode = 0


class _Watch:
    """A timer that kills a process, unless `ended` is called before."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float):
        self.late, self._over, self._lock, self._process = False, False, threading.Lock(), process
        self._timer = threading.Timer(seconds, self._kill)
        self._timer.daemon = True
        self._timer.start()

    def _kill(self) -> None:
        with self._lock:
            if not self._over:
                self.late = True
                self._process.kill()

    def ended(self) -> bool:
        """Stop the timer; True if it has killed the process."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            return self.late


def _transfer(process: subprocess.Popen[bytes], request: bytes, size: int) -> bytes:
    """Send a request, and read `size` bytes."""
    assert process.stdin is not None
    assert process.stdout is not None
    left = memoryview(request)
    while left:
        left = left[process.stdin.write(left) :]
    parts = []
    while size:
        if not (part := process.stdout.read(min(size, 1 << 20))):
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


_EVERY: weakref.WeakSet[Confined] = weakref.WeakSet()


@atexit.register
def _close_every() -> None:
    for process in list(_EVERY):
        process.close()


def _forget_every() -> None:
    for process in list(_EVERY):
        process.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_every)
