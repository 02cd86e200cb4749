"""A model's process of `zoo serve --isolate`: the server's own application for one model, asked over a socket."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request

from ...ops.on_numpy import threads as numpy_threads
from .app import PROBLEM, request_handlers
from .errors import as_api_error
from .frames import Answer, Kind, Link, ModelRequest, State
from .keys import client
from .listening import unblock_stderr
from .logs import configure_log
from .models import Models

STATE_SECONDS = 1.0  # between two messages about the process


def main(
    ours: socket.socket, names: list[str], settings: Mapping[str, Any], threads: int | None, log: tuple[str, str]
) -> None:
    """Serve until the other end of the socket is closed.  settings: of `Models`.  threads: of NumPy.  log: its level
    and format.
    """
    configure_log(*log)
    unblock_stderr()
    for one in (signal.SIGINT, signal.SIGTERM):  # which may come to all processes: the server finishes what runs
        signal.signal(one, signal.SIG_IGN)
    if threads is not None:
        numpy_threads.set_count(threads)
    asyncio.run(_serve(ours, Models(names, **settings)))


async def _serve(ours: socket.socket, models: Models) -> None:
    loop, requests = asyncio.get_running_loop(), dict[int, _Exchange]()
    routes = request_handlers(models)

    def receive(number: int, kind: Kind, message: bytes) -> None:
        if kind is Kind.LEAVE:
            if number in requests:
                requests[number].gone.set()
        else:
            asked = msgspec.msgpack.decode(message, type=ModelRequest)
            one = requests[number] = _Exchange(number, asked, link)
            one.task = loop.create_task(one.answer(routes[asked.path]))
            one.task.add_done_callback(lambda _: requests.pop(number, None))

    def lose() -> None:
        os._exit(0)  # also where a thread computes, whose result nobody needs

    _, link = await loop.create_connection(lambda: Link(receive, lose), sock=ours)
    loading = asyncio.create_task(asyncio.to_thread(models.load))
    await asyncio.wait({loading}, timeout=STATE_SECONDS)
    probe, began = loading, time.monotonic()  # a call of the threads that tokenize: all may hang
    while True:
        if probe.done():
            probe, began = asyncio.create_task(asyncio.to_thread(int)), time.monotonic()
        (one,) = models.all.values()
        begins = [worker.since for worker in {one.worker, one.calls} - {None}] + [None if probe is loading else began]
        busy = max((time.monotonic() - begin for begin in begins if begin is not None), default=0.0)
        counters = {} if one.worker is None else one.worker.counters()
        link.send(0, Kind.STATE, State(one.kind, one.error, busy, counters))
        await (asyncio.sleep(STATE_SECONDS) if loading.done() else asyncio.wait({loading}, timeout=STATE_SECONDS))


class _Exchange:
    """A request that is being answered."""

    def __init__(self, number: int, asked: ModelRequest, link: Link):
        self.number, self.asked, self.link = number, asked, link
        self.gone = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._head: Answer | None = None
        self._scope: dict[str, Any] = {}
        self._is_read = self._is_begun = False

    async def answer(self, do: Any) -> None:
        client.set(self.asked.client)
        self._scope |= {"type": "http", "method": "POST", "path": self.asked.path, "query_string": b"", "headers": []}
        self._scope |= {"http_version": "1.1", "scheme": "http", "root_path": "", "asgi": {"version": "3.0"}}
        try:
            response = await do(Request(self._scope, self.receive))
            await response(self._scope, self.receive, self.send)
        except Exception as e:  # no client waits for ever
            error = as_api_error(e)
            self._scope[PROBLEM] = str(error)
            self._head = self._head if self._is_begun else Answer(error.status, [], None)
            await self.send({"type": "http.response.body", "body": b""})

    async def receive(self) -> dict[str, Any]:
        if not self._is_read:
            self._is_read = True
            return {"type": "http.request", "body": self.asked.body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._head = Answer(message["status"], list(message["headers"]), None)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._head is not None:
            if not more:
                self._head.body, self._head.problem = body, self._scope.get(PROBLEM, "")
            self.link.send(self.number, Kind.ANSWER, self._head)
            self._is_begun = True
        if body and (more or self._head is None):
            self.link.send(self.number, Kind.PART, body)
        if not more and self._head is None:
            self.link.send(self.number, Kind.END, self._scope.get(PROBLEM, "").encode(errors="replace"))
        self._head = None
