"""Work on hostile data in a confined process (see `child`), started at the first request, killed if it takes too much.

    process = Confined(Job(Path("job.py"), "function", "reading maps"))
    answer = process.ask(data, most=1 << 20)

A process serves one owner, say one checkpoint or PDF: a hostile file that took it over must not reach another's data.
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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

from ..errors import UnsupportedError
from ..optional import pip_install
from . import child
from .child import (
    ANSWER,
    MAX_MESSAGE,
    PART_HEADER,
    REQUEST,
    STATUS_DONE,
    STATUS_FAILED,
    STATUS_PART,
    STATUS_STOPPED,
)

START = 60.0  # seconds for the process to be ready
IDLE_DEATH_SECONDS = 0.5  # a process that dies so soon after a request may have been killed while it was idle
MAX_PART = 1 << 20  # bytes of a file at a time
PIPE = 1 << 20  # bytes that a pipe holds on Linux, for images
_ENVIRONMENT = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # what a Python may need to start
_OUT_OF_TIME = -signal.SIGXCPU if hasattr(signal, "SIGXCPU") else None


class Job(NamedTuple):
    """A function for the process to call on marshalled arguments; it returns bytes."""

    file: Path  # the module: it imports no part of zoo, and has a function `prepare()` that is called first
    function: str
    task: str  # for messages: "rendering chat templates"
    packages: tuple[str, ...] = ()  # the packages that the module imports
    extra: str = ""  # zoo's extra that installs them
    seconds: int = 3  # seconds of the processor, for one request
    wall_seconds: float = 4.0  # seconds of the clock, on a busy machine or one that cannot limit the processor's
    memory: int = 224 << 20  # bytes of address space, beyond the process's own and those for a request
    memory_per_byte: int = 32  # bytes more for each byte of a request's arguments
    prestart: bool = False  # once two processes have been needed, the next is started ahead of its need


class StoppedError(Exception):
    """The function took too much time, memory or depth, or the process died of it."""


class FailedError(Exception):
    """The function raised an exception.  kind: the name of its class.  why: its message."""

    def __init__(self, text: str):
        super().__init__(text)
        self.kind, _, self.why = text.partition(": ")


class Confined:
    """A confined process for one job; threads may share it, and a fork starts one of its own.

    first: a request that each new process answers before any other, say to open a file; data, memory: as for `ask`.
    fetch: called by the job for parts of that file, with an offset and the most bytes; an exception of it is passed on.
    """

    def __init__(
        self,
        job: Job,
        *first: Any,
        data: bytes = b"",
        memory: int = 0,
        fetch: Callable[[int, int], bytes] | None = None,
    ):
        self._job, self._fetch = job, fetch
        self._first = self._pack_request(first, data, memory) if first else ()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        _PROCESSES.add(self)

    def __del__(self) -> None:
        self._stop()

    def ask(self, *request: Any, most: int, memory: int = 0) -> bytes | bytearray:
        """The function's answer, of at most `most` bytes, to arguments of Python's plain types.

        memory: bytes that it may take beyond those of the job.
        """
        parts, patience = self._pack_request(request, b"", memory), self._job.wall_seconds
        with self._lock:
            is_new = self._process is None or self._process.poll() is not None
            if is_new:
                self._start()
            began = time.monotonic()
            answer = self._exchange(parts, patience, most)
            if answer is None and not is_new and time.monotonic() - began < IDLE_DEATH_SECONDS:
                self._start()
                answer = self._exchange(parts, patience, most)
            return self._result(answer)

    def _pack_request(self, request: tuple[Any, ...], data: bytes, memory: int) -> tuple[bytes, ...]:
        job, arguments = self._job, marshal.dumps(request)
        memory += job.memory + job.memory_per_byte * len(arguments) + len(data)
        return REQUEST.pack(len(arguments), len(data), memory, job.seconds) + arguments, data

    def _result(self, answer: tuple[bytes, bytes | bytearray] | None) -> bytes | bytearray:
        if answer is None:
            raise StoppedError(f"the process died of it, as where it takes more than {self._job.memory >> 20} MiB")
        status, result = answer
        if status == STATUS_STOPPED:
            self._stop()  # it may still hold what it took
        if status != STATUS_DONE:
            raise {STATUS_FAILED: FailedError}.get(status, StoppedError)(result.decode("utf-8", "replace"))
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
                    f"{self._job.task} needs {name}, which is not installed: {pip_install(self._job.extra)}"
                )
            folders[str(Path(spec.origin).parent.parent)] = None
        needs = f"{self._job.task} needs a Python process of its own"
        if not sys.executable or getattr(sys, "frozen", False):
            raise UnsupportedError(f"{needs}, and there is no Python to start")
        command = (sys.executable, "-I", "-S", "-B", child.__file__, str(self._job.file), self._job.function, *folders)
        try:
            self._process = _start_process(command, spare=self._job.prestart)
        except OSError as e:
            raise UnsupportedError(f"{needs}, which cannot be started: {e}") from None
        if self._exchange((), START, 0) is None:
            packages = f" with {' and '.join(self._job.packages)}" if self._job.packages else ""
            raise UnsupportedError(f"{needs}, which does not start: {sys.executable}{packages}")
        if self._first:
            try:
                self._result(self._exchange(self._first, self._job.wall_seconds, MAX_MESSAGE))
            except BaseException:
                self._stop()
                raise

    def _exchange(self, request: Iterable[bytes], seconds: float, most: int) -> tuple[bytes, bytes | bytearray] | None:
        """Status and bytes of the answer; None if the process has died."""
        if self._process is None:  # killed as it answered the request before, at the last moment of its time
            return STATUS_STOPPED, b"it takes too long"
        watch = _Watch(self._process, seconds)
        try:
            for part in request:
                _send(self._process, part)
            wants_part = (STATUS_PART, PART_HEADER.size)
            while (head := ANSWER.unpack(_receive(self._process, ANSWER.size))) == wants_part:
                part = self._part(*PART_HEADER.unpack(_receive(self._process, PART_HEADER.size)))
                _send(self._process, PART_HEADER.pack(len(part), 0))
                _send(self._process, part)
            status, size = head
            if size <= (most if status == STATUS_DONE else 4 * MAX_MESSAGE):
                return status, _receive(self._process, size)
            self._stop()
            return STATUS_STOPPED, b"its answer is too long"
        except (OSError, EOFError):
            pass
        except BaseException:  # Ctrl-C: the answer is still to come, and must not be taken for the next one's
            self._stop()
            raise
        finally:
            if watch.stop():
                self._stop()
        code = self._stop()
        if watch.late:
            return STATUS_STOPPED, f"it takes too long, more than {seconds:g} s".encode()
        if code is not None and code == _OUT_OF_TIME:
            return STATUS_STOPPED, f"it takes too long, more than {self._job.seconds} s of the processor".encode()
        return None

    def _part(self, offset: int, most: int) -> bytes:
        return b"" if self._fetch is None else self._fetch(offset, min(most, MAX_PART))

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
    """A timer that kills a process, unless `stop` is called before."""

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

    def stop(self) -> bool:
        """Stop the timer; True if it has killed the process."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            return self.late


def _send(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    left = memoryview(data)
    while left:
        left = left[process.stdin.write(left) :]


def _receive(process: subprocess.Popen[bytes], size: int) -> bytearray:
    """The next `size` bytes; EOFError if there are fewer."""
    assert process.stdout is not None
    data = bytearray(size)
    left = memoryview(data)
    while left:
        if not (read := process.stdout.readinto(left)):  # type: ignore[attr-defined]
            raise EOFError
        left = left[read:]
    return data


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


_PROCESSES: weakref.WeakSet[Confined] = weakref.WeakSet()
# By command, a process that waits for its first request; None until a second one is needed.
_SPARE_PROCESSES: dict[tuple[str, ...], subprocess.Popen[bytes] | None] = {}


def _start_process(command: tuple[str, ...], spare: bool) -> subprocess.Popen[bytes]:
    """A process that nobody has used; with `spare`, once one has been needed, the next is started as well."""
    was_used, kept = command in _SPARE_PROCESSES, _SPARE_PROCESSES.pop(command, None)
    process = kept if kept is not None and kept.poll() is None else _popen(command)
    if spare:
        _SPARE_PROCESSES[command] = _popen(command) if was_used else None
    return process


def _popen(command: tuple[str, ...]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        command,
        bufsize=0,  # nothing is left in a fork to be written
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name in _ENVIRONMENT},
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError, AttributeError):  # fewer bytes are permitted, or it is not Linux
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)  # type: ignore[union-attr]
    return process


@atexit.register
def _close_every() -> None:
    for process in list(_PROCESSES):
        process.close()
    while _SPARE_PROCESSES:
        _, spare = _SPARE_PROCESSES.popitem()
        if spare is not None:
            spare.kill()
            _close_pipes(spare)
            spare.wait()


def _forget_every() -> None:
    for process in list(_PROCESSES):
        process.forget()
    for spare in filter(None, _SPARE_PROCESSES.values()):
        _close_pipes(spare)
        spare.returncode = 0
    _SPARE_PROCESSES.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_every)
