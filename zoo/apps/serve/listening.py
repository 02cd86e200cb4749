"""Listening at an address, and reading requests' bodies within limits: for `zoo serve` and `zoo demo`."""

from __future__ import annotations

import asyncio
import contextlib
import io
import ipaddress
import os
import socket
import stat
import sys
import time
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from ...errors import InputError
from .values import BYTES, values_of

CHUNK_SECONDS, REQUEST_SECONDS = 20.0, 300.0  # for the next bytes of a request, and for all of them
MAX_DRAINED_BYTES = 64 << 20  # bytes of a body that is too large are read all the same: else its client sees no answer
MAX_HELD = 160 << 20  # bytes of all requests that are being read or answered, and of the values that they become


class RefusedError(Exception):
    """A request that is refused before its body is used, with its status."""

    def __init__(self, status: int, why: str):
        super().__init__(why)
        self.status = status


class CancelScope:
    """Within the context the task that runs it can be ended from outside, once, for a reason.

    It makes no task, as `asyncio.wait_for` does: of a short request these were a third of the server's own time.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> CancelScope:
        self._task = asyncio.current_task()
        return self

    def cancel_after(self, seconds: float, reason: str) -> None:
        """End the task after some seconds, in place of the time that was set before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(0.0, seconds), self.cancel, reason)

    def cancel(self, reason: str) -> None:
        if self._task is not None and self.reason is None:
            self.reason = reason
            self._task.cancel()

    def __exit__(self, kind: Any, error: Any, _: Any) -> bool:
        """True, which swallows the cancellation, if it is this one's."""
        task, self._task = self._task, None
        if self._timer is not None:
            self._timer.cancel()
        if self.reason is None:
            return False
        others = task.uncancel() if hasattr(task, "uncancel") else 0  # type: ignore[union-attr]  # since Python 3.11
        return not others and kind is not None and issubclass(kind, asyncio.CancelledError)


class Bodies:
    """The bodies of requests that are being read or answered, bounded in bytes and values together, and in time."""

    def __init__(self) -> None:
        self._held = 0

    @contextlib.asynccontextmanager
    async def read(self, receive: Any, limit: int, values: int | None = None) -> AsyncIterator[bytes]:
        """A request's body, whose memory counts until its answer is sent.  RefusedError: it is too large or too slow.

        values: the most that it may have; the body is JSON then, and the memory of its parsed values counts too.
        """
        body, more, end = bytearray(), True, time.monotonic() + REQUEST_SECONDS
        size = came = 0
        try:
            while more:
                message = None
                with CancelScope() as ending:
                    ending.cancel_after(min(CHUNK_SECONDS, end - time.monotonic()), "slow")
                    message = await receive()
                if message is None:
                    raise RefusedError(408, "the request takes too long")
                if message["type"] == "http.disconnect":
                    raise RefusedError(400, "the request ends before its body")
                part, more = message.get("body", b""), message.get("more_body", False)
                came += len(part)
                if came > limit:
                    body.clear()
                    self._held, size = self._held - size, 0
                    if more and came < limit + MAX_DRAINED_BYTES:
                        continue
                    raise RefusedError(413, f"a request of more than {limit} bytes")
                size += self._more(len(part))
                body += part
            whole = bytes(body)
            body.clear()
            if values is not None:
                if (found := values_of(whole)) > values:
                    raise RefusedError(413, f"more than {values} values ({found} commas, colons and brackets)")
                size += self._more(BYTES * found)
            yield whole
        finally:
            self._held -= size

    def _more(self, size: int) -> int:
        if self._held + size > MAX_HELD:
            raise RefusedError(503, "too many uploads at once")
        self._held += size
        return size


def replay(body: bytes, receive: Any) -> Any:
    """An ASGI `receive` that gives a body that was read, and then what `receive` gives."""
    read = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Any:
        return read.pop() if read else await receive()

    return receive_again


class _Lossy(io.FileIO):
    """A file that drops what it cannot write at once."""

    def write(self, data: Any) -> int:
        written = super().write(data)
        return len(data) if written is None else written


def unblock_stderr() -> None:
    """Drop what is written to stderr while it is a full pipe (on Linux), for which all threads would wait.

    The panic of a library is written by the library, which holds the interpreter's lock meanwhile.
    """
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.fstat(2).st_mode):
            own = os.open("/proc/self/fd/2", os.O_WRONLY | os.O_NONBLOCK)  # others may write to the pipe as it was
            os.dup2(own, 2)
            os.close(own)
            lossy = _Lossy(2, "w", closefd=False)
            sys.stderr = io.TextIOWrapper(lossy, sys.stderr.encoding, "backslashreplace", write_through=True)  # type: ignore[type-var]


def headers_of(scope: Any) -> dict[str, str]:
    """The headers of a request, by their names in lower case."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


@lru_cache(256)
def is_here(host: str, names: frozenset[str]) -> bool:
    """True if a Host header is an address or one of `names`: no stranger's page can have its name point here."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name not in names:
            ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """True if a server that listens there is reached by this machine alone: 127.0.0.0/8, ::1, localhost."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_own_page(origin: str, host: str) -> bool:
    """True if an Origin header is that of the host's own pages."""
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at an address.  InputError: the address or port cannot be used."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        at = socket.create_server((host, port), family=family, backlog=64)
        # Connections inherit it; asyncio sets it only for sockets with a protocol, which these have not.  Without it
        # the body of an answer waits for 40 ms until the client has confirmed the head.
        at.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return at
    except (OSError, OverflowError, UnicodeError) as e:
        raise InputError(f"cannot listen at {host}, port {port}: {getattr(e, 'strerror', None) or e}") from None


def address_of(host: str, at: socket.socket) -> str:
    """The address of a server, as a browser takes it."""
    return f"http://{f'[{host}]' if ':' in host else host}:{at.getsockname()[1]}"
