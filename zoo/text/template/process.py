"""The process that renders templates: started at the first, kept for the next, killed where one takes too much."""

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
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import UnsupportedError
from . import HEAD, LENGTH

SECONDS = 3  # of the processor, for one rendering
PATIENCE = (
    4.0  # seconds of the clock, on a machine that is busy with something else, or that cannot limit the processor's
)
START = 60.0  # for the process to be there
_OUT_OF_TIME = -signal.SIGXCPU if hasattr(signal, "SIGXCPU") else None
_SAID = 1 << 14  # bytes of what an error says, at most
_PASSED = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # what a Python may start by

# This folder as a package of its own: neither zoo, nor the user's own files, nor site-packages as a whole.
_MAIN = """
import importlib.util, sys
sys.path += sys.argv[2:]
spec = importlib.util.spec_from_file_location("template", sys.argv[1])
sys.modules["template"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from template.child import main
main()
"""


class Answer(NamedTuple):
    """What became of a template: its text, or what an error says, of a kind, at a line (0: unknown)."""

    kind: str
    line: int
    text: str


class Renderer:
    """Renders templates in a child process; of any number of threads one at a time."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def render(self, source: str, variables: Mapping[str, Any], most: int) -> Answer:
        """The text of a template, at most `most` characters, or what is wrong; variables of plain data."""
        now = datetime.now()
        clock = (*now.timetuple()[:6], now.microsecond)
        request = marshal.dumps((source, dict(variables), clock, most, SECONDS))
        request = LENGTH.pack(len(request)) + request
        with self._lock:
            started = self._child is None or self._child.poll() is not None
            if started:
                self._start()
            began = time.monotonic()
            answer = self._ask(request, PATIENCE, 4 * most)
            if answer is None and not started:  # it may have been killed while it had nothing to do
                self._start()
                answer = self._ask(request, max(PATIENCE - (time.monotonic() - began), 0.5), 4 * most)
            if answer is None or answer.kind == "stopped":  # what it took it may still hold
                self._stop()
            return answer or Answer("stopped", 0, "the process that renders it died of it")

    def close(self) -> None:
        with self._lock:
            self._stop()

    def _start(self) -> None:
        self._stop()
        folders = []
        for name in ("jinja2", "markupsafe"):
            if (spec := importlib.util.find_spec(name)) is None or spec.origin is None:
                raise UnsupportedError(
                    f"chat templates need {name}, which is not installed: install zoo with its extra 'chat'"
                )
            folders.append(str(Path(spec.origin).parent.parent))
        if not sys.executable or getattr(sys, "frozen", False):
            raise UnsupportedError("chat templates are rendered by a Python of their own, and there is none to start")
        command = [sys.executable, "-I", "-S", "-B", "-c", _MAIN, str(Path(__file__).with_name("__init__.py"))]
        try:
            self._child = subprocess.Popen(
                [*command, *dict.fromkeys(folders)],
                bufsize=0,  # nothing is left in a fork to be written
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name in _PASSED},
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as e:
            raise UnsupportedError(f"the process that renders chat templates cannot be started: {e}") from None
        ready = self._ask(b"", START, 0)
        if ready is None or ready.kind != "text":
            raise UnsupportedError(
                f"the process that renders chat templates does not start: {sys.executable}, with jinja2 3.1.6 or later"
            )

    def _ask(self, request: bytes, seconds: float, most: int) -> Answer | None:
        """The answer to a request, in so many seconds and bytes; None if the process has died of it."""
        assert self._child is not None
        watch = _Watch(self._child, seconds)
        try:
            head = _exchanged(self._child, request, HEAD.size)
            kind, line, size = HEAD.unpack(head)
            if size <= max(most, _SAID):
                text = _exchanged(self._child, b"", size).decode("utf-8", "replace")
                return Answer(kind.rstrip(b"\0").decode("ascii", "replace"), line, text)
        except (OSError, EOFError):
            pass
        except BaseException:  # Ctrl-C: an answer is still to come, which no one must take for the next one's
            self._stop()
            raise
        finally:
            if watch.ended():
                self._stop()
        ended = self._stop()
        if watch.late or (ended is not None and ended == _OUT_OF_TIME):
            return Answer("stopped", 0, "it takes too long")
        return None

    def _stop(self) -> int | None:
        """End the process, if there is one; as what it ended (a number that is negative: by that signal)."""
        child, self._child = self._child, None
        if child is None:
            return None
        child.kill()
        _close(child)
        return child.wait()

    def _forked(self) -> None:
        """In a fork of this process: the child stays its parent's, and only this end of the pipes is closed."""
        child, self._child, self._lock = self._child, None, threading.Lock()
        if child is not None:
            _close(child)
            child.returncode = 0


class _Watch:
    """Kills a process after some seconds, unless what it was to do has ended before."""

    def __init__(self, child: subprocess.Popen[bytes], seconds: float):
        self.late, self._over, self._lock, self._child = False, False, threading.Lock(), child
        self._timer = threading.Timer(seconds, self._kill)
        self._timer.daemon = True
        self._timer.start()

    def _kill(self) -> None:
        with self._lock:
            if not self._over:
                self.late = True
                self._child.kill()

    def ended(self) -> bool:
        """No more of it; whether it came too late."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            return self.late


def _exchanged(child: subprocess.Popen[bytes], request: bytes, size: int) -> bytes:
    """So many bytes of an answer, after a request."""
    assert child.stdin is not None
    assert child.stdout is not None
    left = memoryview(request)
    while left:
        left = left[child.stdin.write(left) :]
    parts = []
    while size:
        if not (part := child.stdout.read(min(size, 1 << 20))):
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _close(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


RENDERER = Renderer()
