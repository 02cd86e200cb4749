"""uvicorn's connections with deadlines: for a request's head, and for a client that does not read its answer.

A body's deadlines are those of `listening.Bodies`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .listening import CHUNK_SECONDS

MAX_CONNECTIONS = 1000
MAX_PER_ADDRESS = 500
MAX_HEAD = 64 << 10  # bytes of a request before its body


def allow_files() -> None:
    """Let this process have as many open files as its connections need, where the system allows it."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows has no such limit
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 2 * MAX_CONNECTIONS + 200
        if soft != resource.RLIM_INFINITY and soft < wanted:
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class Connections:
    """The connections of a server.

    A connection beyond `per_address` of its address takes the place of the oldest of this address that waits for a
    request's head, one beyond `most` that of the oldest of the address with most of them: half heads keep nobody out.
    crowded: the ASGI application of those for which there is no place.
    """

    def __init__(
        self,
        crowded: Any,
        most: int = MAX_CONNECTIONS,
        per_address: int = MAX_PER_ADDRESS,
        head_seconds: float = CHUNK_SECONDS,
        send_seconds: float = CHUNK_SECONDS,
    ):
        self.crowded, self.most, self.per_address = crowded, most, per_address
        self.head_seconds, self.send_seconds = head_seconds, send_seconds
        self.of_address: Counter[str] = Counter()
        self.without_head: dict[Any, None] = {}  # in the order in which they began to wait

    @property
    def count(self) -> int:
        return self.of_address.total()

    def add(self, address: str) -> bool:
        """Count a connection -> True if there are too many."""
        self.of_address[address] += 1
        if self.of_address[address] > self.per_address:
            self._make_place({address: 1})
        elif self.count > self.most:
            self._make_place(self.of_address)
        return self.count > self.most or self.of_address[address] > self.per_address

    def _make_place(self, addresses: Mapping[str, int]) -> None:
        """End the oldest connection without a head, of the address with most connections that has one."""
        oldest: dict[str, Any] = {}
        for one in self.without_head:
            if one.address in addresses:
                oldest.setdefault(one.address, one)
        if oldest:
            oldest[max(oldest, key=addresses.__getitem__)].abort()

    def remove(self, address: str) -> None:
        self.of_address[address] -= 1
        self.of_address += Counter()  # forgets those that have none

    def protocol(self) -> type:
        """The class of connections for `uvicorn.Config(http=...)`, on httptools if that is installed."""
        try:
            from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Base
        except ImportError:
            from uvicorn.protocols.http.h11_impl import H11Protocol as Base
        return type("Connection", (_Deadlines, Base), {"all": self})


class _Deadlines:
    """A part of a protocol of uvicorn."""

    all: Connections
    transport: Any
    cycle: Any
    app: Any

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.address, self._head_bytes, self._is_open = "", 0, False
        self._head_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)  # type: ignore[misc]
        self.address, self._is_open = str((transport.get_extra_info("peername") or ("",))[0]), True
        if self.all.add(self.address):
            self.app = self.all.crowded
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self._end_head()
        self.resume_writing()
        super().connection_lost(exc)  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        super().data_received(data)  # type: ignore[misc]
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_head()
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD:
            self.abort()
        elif self._head_timer is None and not self.transport.is_closing():
            self._await_head()

    def pause_writing(self) -> None:
        """The client reads nothing: its buffer and ours are full."""
        super().pause_writing()  # type: ignore[misc]
        if self._send_timer is None:
            self._send_timer = asyncio.get_running_loop().call_later(self.all.send_seconds, self.abort)

    def resume_writing(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None
        super().resume_writing()  # type: ignore[misc]

    def abort(self) -> None:
        """End the connection without waiting for what is still to be sent."""
        self._end_head()
        self._leave()
        with contextlib.suppress(OSError):
            self.transport.abort()

    def _leave(self) -> None:
        if self._is_open:
            self._is_open = False
            self.all.remove(self.address)

    def _await_head(self) -> None:
        self._head_timer = asyncio.get_running_loop().call_later(self.all.head_seconds, self.abort)
        self.all.without_head[self] = None

    def _end_head(self) -> None:
        self._head_bytes = 0
        self.all.without_head.pop(self, None)
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
