"""Threads that compute requests: calls one after another, texts together in batches of about equal length.

All models of a server take turns, since each uses all of the processor's cores.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...tasks.base import batches, text_blocks
from ...text.encodings import Encodings, rows_of_ids
from .errors import ApiError
from .lengths import limit_text

WAIT, LONGEST_WAIT = 0.003, 0.01  # seconds since the last text and the first, in which further ones may join a batch
DELIVERY_SECONDS = 0.1  # seconds for which answers may wait for others: each delivery takes a core from what computes
BATCHES = 8  # batches of a task's size that are computed together, which sorts them by length
CHARACTERS = 4  # per token of these batches are tokenized at once


class FairLock:
    """A lock that threads get in the order in which they ask for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = self._now = 0

    def __enter__(self) -> None:
        with self._changed:
            own, self._next = self._next, self._next + 1
            self._changed.wait_for(lambda: self._now == own)

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._now += 1
            self._changed.notify_all()

    @property
    def is_wanted(self) -> bool:
        """True if someone has it or waits for it."""
        return self._next > self._now


class Worker:
    """A thread with a queue.  most: requests that may wait; another gets a 429."""

    def __init__(self, name: str, turn: FairLock, most: int):
        self.turn, self.most = turn, most
        self.queue: deque[Any] = deque()
        self.ready = threading.Condition()
        self.stopping = False
        self.since: float | None = None  # when the step began that it computes; None: it waits for requests
        self.thread = threading.Thread(target=self.work, name=name, daemon=True)
        self.thread.start()

    def put(self, item: Any) -> None:
        with self.ready:
            if len(self.queue) >= self.most:
                raise ApiError(429, f"{self.most} requests wait already", code="queue_full", wait=1)
            self.queue.append(item)
            self.ready.notify()

    def stop(self) -> None:
        with self.ready:
            self.stopping = True
            self.ready.notify()
        self.thread.join()

    def counters(self) -> dict[str, float]:
        """Figures for /metrics."""
        return {"queue": len(self.queue)}

    def work(self) -> None:
        raise NotImplementedError


class Call(NamedTuple):
    """A function that a worker calls, and the future that its result is for."""

    compute: Callable[[], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class CallWorker(Worker):
    """Calls functions one after another.

    A function may return a generator, whose steps take turns of their own with other models, so that a long document
    stops nobody, and which is closed at its next step where nobody waits for the result any more.
    """

    async def run(self, compute: Callable[[], Any]) -> Any:
        loop = asyncio.get_running_loop()
        self.put(call := Call(compute, loop.create_future(), loop))
        return await call.future

    def work(self) -> None:
        while True:
            with self.ready:
                self.ready.wait_for(lambda: self.queue or self.stopping)
                if not self.queue:
                    return
                call = self.queue.popleft()
            self.answer(call)
            self.since = None

    def answer(self, call: Call) -> None:
        """Call a function, unless nobody waits for it any more."""
        if call.future.cancelled():
            return
        self.since = time.monotonic()
        try:
            with self.turn:
                result, error = call.compute(), None
            if inspect.isgenerator(result):
                result = self._finish(result, call.future)
        except BaseException as e:
            result, error = None, as_exception(e)
        tell(call.loop, _settle, call.future, result, error)

    def _finish(self, steps: Generator[Any, Any, Any], future: asyncio.Future[Any]) -> Any:
        """The result of a generator, a turn for each step; None where nobody waits for it."""
        with closing(steps):
            while not future.cancelled():
                self.since = time.monotonic()
                with self.turn:
                    try:
                        next(steps)
                    except StopIteration as e:
                        return e.value
        return None


class _Texts:
    """The texts of a request, and what is computed of them.  They become tokens part by part."""

    def __init__(
        self,
        texts: Sequence[str | list[int]],
        pairs: list[str] | None,
        truncate: bool,
        compute: Callable[[Any], Any],
        key: Any,
    ):
        self.texts, self.pairs, self.truncate, self.compute = texts, pairs, truncate, compute
        self.blocks: Iterator[list[Any]] | None = None  # of texts, or of pairs of them
        self.key = key  # requests that are computed in the same way
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.begun = self.tokens = 0  # texts that were taken into batches, and tokens of them
        self.failed = False
        self.items: list[Any] = [None] * len(texts)
        self.left = len(texts)

    @property
    def is_over(self) -> bool:
        return self.failed or self.future.cancelled()

    def fail(self, error: Exception) -> None:
        self.failed = True
        tell(self.loop, _settle, self.future, None, error)


class _Part(NamedTuple):
    """Rows of a request that are computed next."""

    of: _Texts
    rows: Sequence[Any]
    lengths: np.ndarray
    begin: int


class TextWorker(Worker):
    """Computes the rows of a TextTask, those of several requests together; long requests in parts, beside others."""

    def __init__(self, task: Any, name: str, turn: FairLock, most: int):
        self.task, self.tokens = task, 0
        self._usual = 1  # requests that were computed together the last time
        super().__init__(name, turn, most)

    async def run(
        self,
        texts: Sequence[str | list[int]],
        pairs: list[str] | None,
        compute: Callable[[Any], Any],
        *,
        truncate: bool = False,
        key: Any = None,
    ) -> tuple[list[Any], int]:
        """The item of each text from `compute`, which gets padded batches, and the number of tokens.

        texts: or the ids of each, as the model takes them, which are no more than it takes at most.
        key: only requests with the same one are computed together.
        """
        self.put(one := _Texts(texts, pairs, truncate, compute, key))
        return await one.future

    def work(self) -> None:
        while some := self._take():
            try:
                self._compute(some)
            except BaseException as e:
                for part in some:
                    part.of.fail(as_exception(e))
            self.since = None

    def counters(self) -> dict[str, float]:
        return {**super().counters(), "tokens": self.tokens}

    def _take(self) -> list[_Part]:
        """The next requests to compute; none at the end.  The rest of a request is queued again."""
        some: list[_Part] = []
        rest: list[_Texts] = []
        room, first, last = BATCHES * self.task.batch_tokens, 0.0, 0.0
        while room > 0:
            with self.ready:
                # Clients that were answered together ask again together; one alone need not wait.
                end = min(first + LONGEST_WAIT, last + WAIT) if len(some) < self._usual else 0.0
                wait = None if not some else max(0.0, end - time.monotonic())
                self.ready.wait_for(lambda: self.queue or self.stopping, wait)
                if not self.queue or (some and self.queue[0].key != some[0].of.key):
                    break
                one: _Texts = self.queue.popleft()
            if one.is_over:
                continue
            self.since = time.monotonic()
            try:
                found, size = self._next_texts(one)
            except BaseException as e:
                one.fail(as_exception(e))
                continue
            last = time.monotonic()
            first = first or last
            room -= max(int(found.lengths.sum()), size // CHARACTERS)
            some.append(_Part(one, found.rows, found.lengths, one.begun))
            one.begun += len(found.rows)
            if one.begun < len(one.texts):
                rest.append(one)
        with self.ready:
            self.queue.extend(rest)
        self._usual = len(some)
        return some

    def _next_texts(self, one: _Texts) -> tuple[Encodings, int]:
        """The tokens of a request's next texts, which are as many as are computed at once, and their characters."""
        limit = self.task.max_tokens
        if one.blocks is None:
            texts = [
                limit_text(text, limit, i, one.truncate) if isinstance(text, str) else text
                for i, text in enumerate(one.texts)
            ]
            pairs = one.pairs and [limit_text(text, limit, i, one.truncate) for i, text in enumerate(one.pairs)]
            each = texts if pairs is None else list(zip(texts, pairs, strict=True))
            one.blocks = text_blocks(each, CHARACTERS * BATCHES * self.task.batch_tokens)
        block = next(one.blocks)
        firsts, seconds = (block, None) if one.pairs is None else map(list, zip(*block, strict=True))
        options = {"truncation": True, "max_length": limit} if one.truncate else {"truncation": False}
        try:
            if isinstance(firsts[0], list):
                found = rows_of_ids(firsts, self.task.tokenizer.all_special_ids)
            else:
                found = self.task.tokenizer.encode_batch(firsts, seconds, **options)
        except InputError as e:
            raise (e if e.argument is None or e.index is None else e.about("input", one.begun + e.index)) from None
        if (longest := int(found.lengths.max())) > limit:
            at = one.begun + int(found.lengths.argmax())
            problem = f"has {longest} tokens, and the model takes at most {limit}: shorten it, or send truncate = true"
            raise InputError(problem, argument="input", index=at)
        one.tokens += int(found.lengths.sum())
        return found, sum(map(len, firsts)) + sum(map(len, seconds or ()))

    def _compute(self, some: list[_Part]) -> None:
        rows = [row for part in some for row in part.rows]
        lengths = np.concatenate([part.lengths for part in some])
        every = Encodings(rows, lengths, np.arange(len(rows)))
        of = [(part.of, part.begin + i) for part in some for i in range(len(part.rows))]
        ended: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        told = time.monotonic()
        try:
            for index in batches(lengths, self.task.batch_tokens, self.task.tokenizer.pad_token_id is not None):
                padded = self.task.tokenizer.pad(every, index, padding_side="right")
                self.since = time.monotonic()
                with self.turn:
                    items = some[0].of.compute(padded)
                for i, item in zip(index.tolist(), items, strict=True):
                    one, at = of[i]
                    one.items[at] = item
                    one.left -= 1
                    if not one.left:  # its answer does not wait for the other requests
                        result = one.items, one.tokens
                        ended.setdefault(one.loop, []).append((one.future, result))
                if (now := time.monotonic()) - told > DELIVERY_SECONDS:
                    _tell_all(ended)
                    told = now
        finally:
            _tell_all(ended)
        self.tokens += int(lengths.sum())


def as_exception(error: BaseException) -> Exception:
    """An error for a request: a worker's thread must not die of a library's panic, which is no Exception."""
    return error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error!s:.300}")


def tell(loop: asyncio.AbstractEventLoop, do: Callable[..., None], *args: Any) -> None:
    """Call a function in an event loop's thread, unless the loop has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(do, *args)


def _tell_all(ended: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]]) -> None:
    for loop, results in ended.items():
        tell(loop, _settle_all, results)
    ended.clear()


def _settle_all(results: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in results:
        _settle(future, result, None)


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():  # the client has gone
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
