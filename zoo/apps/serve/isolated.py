"""Models in processes of their own, `zoo serve --isolate`: one that dies or hangs takes no other along.

The server asks a model's process over a pair of sockets (`frames`), and starts it again where it ends.  There are no
turns between processes: the system shares the processor among them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse

from ...ops.on_numpy import threads as numpy_threads
from ..tables.batch import ExtractorConfig
from . import model_process
from .app import LAST_EVENT, PROBLEM, RESPONSES, error_event
from .errors import ApiError
from .frames import Answer, Kind, Link, ModelRequest, State
from .logs import logger
from .models import TABLES, Models, Served

SILENCE_SECONDS = 60.0  # without a message of a process, which sends one each second
QUICK_DEATH_SECONDS = 60.0  # a process that lives shorter is started again later and later
MAX_PAUSE = 60.0  # seconds before a process is started again
Frame = tuple[Kind, bytes] | ApiError


class IsolatedModels(Models):
    """`Models`, each in its own process.  A step that takes longer than `seconds`, which no answer may, is a hang.

    log: its level and format.
    """

    is_isolated = True

    def __init__(
        self,
        names: Sequence[str],
        *,
        tables: ExtractorConfig | None = None,
        log: tuple[str, str] = ("info", "text"),
        **settings: Any,
    ):
        super().__init__(names, tables=tables, **settings)
        for one in self.all.values():
            own = {**settings, "tables": tables} if one.id == TABLES else settings
            names = [] if one.id == TABLES else [one.name]
            one.worker = ModelProcess(one, self.seconds, names, own, numpy_threads.count(), log)

    def load(self) -> None:
        """Nothing: the processes load their models while `serving` lasts, and end with it."""

    stop = load

    @contextlib.asynccontextmanager
    async def serving(self, failed: Callable[[], None]) -> AsyncIterator[None]:
        def check() -> None:
            if self.has_failed:
                failed()

        running = [asyncio.create_task(one.worker.run(check)) for one in self.all.values()]
        try:
            yield
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


class ModelProcess:
    """The process of a model.  seconds: the most for a step.  arguments: of `model_process.main`, after the socket."""

    def __init__(self, one: Served, seconds: float, *arguments: Any):
        self.one, self.seconds, self.restarts = one, seconds, 0
        self.pid: int | None = None
        self._arguments = arguments
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Frame]] = {}
        self._counters: dict[str, float] = {}
        self._link: Link | None = None
        self._heard = 0.0
        self._why = ""  # the process has ended

    def counters(self) -> dict[str, float]:
        return {**self._counters, "restarts": self.restarts}

    async def run(self, loaded: Callable[[], None]) -> None:
        """Keep the process running until this is cancelled.  loaded: called when a model is loaded, or cannot be."""
        pause, was_loaded = 0.0, False
        while True:
            began = time.monotonic()
            await self._run_once(loaded)
            was_loaded |= self.one.kind is not None
            if self.one.error is None and not was_loaded:
                self.one.error = f"{self._why} while it was loaded"
                logger.error("%s: cannot be loaded: %s", self.one.id, self.one.error)
                loaded()
            self._lose()
            if self.one.error is not None:
                return
            pause = 0.0 if time.monotonic() - began > QUICK_DEATH_SECONDS else min(max(1.0, 2 * pause), MAX_PAUSE)
            self.restarts += 1
            logger.error("%s: %s; it is started again in %g s", self.one.id, self._why, pause)
            await asyncio.sleep(pause)

    async def _run_once(self, loaded: Callable[[], None]) -> None:
        """Start the process, and wait for its end, or end it: `_why` says which."""
        ours, theirs = socket.socketpair()
        over = asyncio.Event()

        def receive(number: int, kind: Kind, message: bytes) -> None:
            if kind is Kind.STATE:
                self._take_state(msgspec.msgpack.decode(message, type=State), loaded)
            elif number in self._waiting:
                self._waiting[number].put_nowait((kind, message))

        arguments = theirs, *self._arguments
        process = multiprocessing.get_context("spawn").Process(target=model_process.main, args=arguments, daemon=True)
        self._why, self._heard = "", time.monotonic()
        try:
            try:
                await asyncio.to_thread(process.start)
            except OSError as e:
                self._why = f"its process cannot be started: {e}"
                return
            theirs.close()
            self.pid = process.pid
            create = asyncio.get_running_loop().create_connection
            _, self._link = await create(lambda: Link(receive, over.set), sock=ours)
            while not over.is_set():
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(over.wait(), 1.0)
                if self.one.error is not None or self._why:
                    break
                if time.monotonic() - self._heard > SILENCE_SECONDS:
                    self._why = f"its process has said nothing for {SILENCE_SECONDS:g} s"
                    break
        finally:
            if self._link is not None:
                self._link.transport.abort()
            self._link, self.pid = None, None
            ours.close()
            theirs.close()
            if process.pid is not None:
                process.kill()  # it may compute, or hang
                await asyncio.to_thread(process.join)
        self._why = self._why or _reason(process.exitcode)

    def _take_state(self, state: State, loaded: Callable[[], None]) -> None:
        was = self.one.kind, self.one.error
        self._heard, self._counters = time.monotonic(), state.counters
        self.one.kind, self.one.error = state.kind, state.error
        if was != (state.kind, state.error):
            loaded()
        if state.busy > self.seconds:
            self._why = f"a step of its process takes {state.busy:.0f} s, more than an answer may (--timeout)"

    def _lose(self) -> None:
        """The process is gone: answer the requests that it had."""
        self.one.kind = None
        problem = f"the model {self.one.id} has failed and is started again: this request has no answer"
        for frames in self._waiting.values():
            frames.put_nowait(ApiError(503, problem, code="model_failed", wait=2))

    async def answer(self, asked: ModelRequest, scope: Any) -> Response:
        """The answer of the process.  ApiError: the process ended before.  scope: gets the problem, for the log."""
        if self._link is None:
            raise ApiError(503, f"the model {self.one.id} is being started", code="model_loading", wait=2)
        number, frames = next(self._numbers), asyncio.Queue[Frame]()
        self._waiting[number] = frames
        try:
            self._link.send(number, Kind.REQUEST, asked)
            head = msgspec.msgpack.decode(_message(await frames.get())[1], type=Answer)
        except BaseException:
            self._leave(number, is_over=False)
            raise
        if head.body is None:
            parts, end = _parts(frames, scope), lambda: self._leave(number, is_over=False)
            response: Response = _Stream(parts, head.status, on_end=end)
        else:
            self._leave(number, is_over=True)
            scope[PROBLEM] = head.problem
            response = Response(head.body, head.status)
        response.raw_headers = head.headers
        return response

    def _leave(self, number: int, is_over: bool) -> None:
        """Nobody waits for a request's answer any more."""
        del self._waiting[number]
        if not is_over and self._link is not None:
            self._link.send(number, Kind.LEAVE)


class _Stream(StreamingResponse):
    """An answer in parts.  on_end: called at its end, also where the client has left before the first of them."""

    def __init__(self, parts: AsyncIterator[bytes], status: int, on_end: Callable[[], None]):
        super().__init__(parts, status)
        self._on_end = on_end

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()


async def _parts(frames: asyncio.Queue[Frame], scope: Any) -> AsyncIterator[bytes]:
    count = 0  # of events
    try:
        while (frame := _message(await frames.get()))[0] is not Kind.END:
            count += frame[1].count(b"\n\n")
            yield frame[1]
        scope[PROBLEM] = frame[1].decode()
    except ApiError as e:
        scope[PROBLEM] = str(e)
        yield error_event(e, scope["path"], count) + (b"" if scope["path"] == RESPONSES else LAST_EVENT)


def _message(frame: Frame) -> tuple[Kind, bytes]:
    if isinstance(frame, ApiError):
        raise frame
    return frame


def _reason(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with status {code}"
