"""Connections with deadlines: half a head, an answer that nobody reads, and health routes that answer in a crowd."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")
pytest.importorskip("uvicorn", reason="needs uvicorn, of the extra serve")

import uvicorn

from zoo.apps.serve.app import Gate
from zoo.apps.serve.connections import Connections
from zoo.apps.serve.listening import is_loopback, listen

LONG = 16 << 20  # bytes of an answer: more than the buffers of a connection


async def answer(scope: Any, _: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    body = b"x" * (LONG if scope["path"] == "/long" else 2)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def crowded(_: Any, __: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 503, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


@contextmanager
def served(**limits: Any) -> Iterator[tuple[int, Connections]]:
    connections = Connections(crowded, **limits)
    with listen("127.0.0.1", 0) as at:
        config = uvicorn.Config(answer, http=connections.protocol(), log_level="critical", ws="none", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([at])), daemon=True)
        thread.start()
        try:
            yield at.getsockname()[1], connections
        finally:
            server.should_exit = True
            thread.join(60)


def opened(port: int, text: bytes = b"") -> socket.socket:
    one = socket.create_connection(("127.0.0.1", port), timeout=60)
    one.sendall(text)
    return one


def ask(port: int, path: str = "/") -> bytes:
    with opened(port, f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()) as one:
        return b"".join(iter(lambda: one.recv(1 << 16), b""))


def is_closed(one: socket.socket) -> bool:
    """True once the server has ended the connection, waited for as long as the test may take."""
    try:
        return one.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nX-A: "])
def test_a_head_has_a_deadline(begun):
    with served(head_seconds=0.2) as (port, connections), opened(port, begun) as one:
        assert is_closed(one)
        assert ask(port).startswith(b"HTTP/1.1 200")
        assert not connections.without_head


def test_a_head_that_comes_byte_by_byte_has_one_too():
    with served(head_seconds=0.5) as (port, _), opened(port, b"GET / HTTP/1.1\r\n") as one:

        def drip() -> None:
            while True:
                one.sendall(b"X")
                time.sleep(0.05)

        with pytest.raises(ConnectionError):
            drip()  # whenever the server closes it


def test_a_head_is_bounded():
    with served(head_seconds=60) as (port, _), opened(port, b"GET / HTTP/1.1\r\nX-A: ") as one:
        with pytest.raises(ConnectionError):  # noqa: PT012 - whenever the server closes it
            while True:
                one.sendall(b"x" * 4096)
        assert ask(port).startswith(b"HTTP/1.1 200")


def test_a_client_that_reads_nothing_is_left():
    with served(send_seconds=0.3) as (port, connections), opened(port, b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n") as one:
        end = time.monotonic() + 60
        while not connections.count:
            time.sleep(0.01)
        while connections.count and time.monotonic() < end:
            time.sleep(0.05)
        assert not connections.count
        got = 0
        with pytest.raises(ConnectionError):  # noqa: PT012 - the rest of the answer is never sent
            while part := one.recv(1 << 20):
                got += len(part)
            raise ConnectionResetError
        assert got < LONG
        assert len(ask(port, "/long")) > LONG


def test_too_many_connections_get_the_other_application():
    """Of connections whose requests are being answered none is ended for another."""
    with served(most=4, per_address=100) as (port, connections), ExitStack() as held:
        for _ in range(4):
            held.enter_context(opened(port, b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n"))
        while connections.count < 4 or connections.without_head:
            time.sleep(0.01)
        assert ask(port).startswith(b"HTTP/1.1 503")


def test_one_address_has_a_share():
    with served(most=100, per_address=3) as (port, connections), ExitStack() as held:
        for _ in range(3):
            held.enter_context(opened(port, b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n"))
        while connections.count < 3 or connections.without_head:
            time.sleep(0.01)
        assert ask(port).startswith(b"HTTP/1.1 503")


@pytest.mark.parametrize("limits", [{"most": 4, "per_address": 100}, {"most": 100, "per_address": 4}])
def test_half_heads_keep_nobody_out(limits):
    with served(head_seconds=600, **limits) as (port, connections), ExitStack() as held:
        lines = [held.enter_context(opened(port, b"GET / HTTP/1.1\r\n")) for _ in range(12)]
        for one in lines[:8]:
            assert is_closed(one)
        for _ in range(3):
            assert ask(port).startswith(b"HTTP/1.1 200")
        assert connections.count <= 4


@pytest.mark.skipif(sys.platform == "darwin", reason="needs further loopback addresses, which macOS has not")
def test_the_address_with_most_connections_makes_place():
    with served(most=6, per_address=100, head_seconds=600) as (port, _), ExitStack() as held:
        few = held.enter_context(opened(port, b"GET / HTTP/1.1\r\n"))
        for _ in range(12):
            one = held.enter_context(socket.socket())
            one.bind(("127.0.0.2", 0))
            one.connect(("127.0.0.1", port))
        assert ask(port).startswith(b"HTTP/1.1 200")
        few.sendall(b"Host: a\r\nConnection: close\r\n\r\n")
        assert few.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_health_answers_in_a_crowd():
    pytest.importorskip("prometheus_client", reason="needs prometheus_client, of the extra serve")
    import prometheus_client

    class Metrics:
        running = prometheus_client.Gauge("running", "", registry=None)
        count = staticmethod(lambda *_: None)

    gate: Any = Gate(answer, Metrics(), "127.0.0.1", None, [], 10)
    for path, status in {"/health": 200, "/v1/models": 503}.items():
        sent: list[Any] = []

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": path, "headers": [(b"host", b"localhost")]}
        asyncio.run(gate.answer_when_full(scope, None, send))
        assert sent[0]["status"] == status


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *((host, True) for host in ("127.0.0.1", "127.0.0.2", "127.255.0.3", "::1", "[::1]", "localhost", "LOCALHOST")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "example.org", "")),
    ],
)
def test_every_loopback_address_is_one(host, expected):
    assert is_loopback(host) is expected
