"""What a server and a model's process send each other, over a pair of sockets: frames, of any request beside others.

A frame is a header (the request's number, the kind, the length) and a message in MessagePack.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import msgspec

HEADER = struct.Struct("<QBI")
MAX_FRAME = 1 << 30  # bytes; more is no honest frame


class Kind(IntEnum):
    """REQUEST and LEAVE, its client's, go to the model's process; ANSWER, PART and END come from it, and STATE."""

    REQUEST = 1
    LEAVE = 2
    STATE = 3
    ANSWER = 4
    PART = 5
    END = 6


class ModelRequest(msgspec.Struct, array_like=True):
    """A request, whose body is JSON."""

    path: str
    client: str
    body: bytes


class Answer(msgspec.Struct, array_like=True):
    """An answer.  body: None where it comes in parts, after which END has the problem.  problem: for the log."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes | None
    problem: str = ""


class State(msgspec.Struct, array_like=True):
    """What a process says of itself, once a second.  busy: seconds for which it has computed its longest step."""

    kind: str | None
    error: str | None
    busy: float
    counters: dict[str, float]


class Link(asyncio.Protocol):
    """One end of the pair.  received: gets each frame; lost: called when the other end is gone."""

    def __init__(self, received: Callable[[int, Kind, bytes], None], lost: Callable[[], None]):
        self._received, self._lost, self._bytes = received, lost, bytearray()
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost()

    def data_received(self, data: bytes) -> None:
        self._bytes += data
        while len(self._bytes) >= HEADER.size:
            number, kind, size = HEADER.unpack_from(self._bytes)
            if size > MAX_FRAME:
                self.transport.abort()
                return
            if len(self._bytes) < HEADER.size + size:
                return
            message = bytes(memoryview(self._bytes)[HEADER.size : HEADER.size + size])
            del self._bytes[: HEADER.size + size]
            self._received(number, Kind(kind), message)

    def send(self, number: int, kind: Kind, message: Any = None) -> None:
        """Send a frame: bytes as they are, and other messages in MessagePack."""
        data = message if isinstance(message, bytes) else msgspec.msgpack.encode(message)
        self.transport.write(HEADER.pack(number, kind, len(data)) + data)
