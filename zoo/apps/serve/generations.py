"""The thread that generates tokens of all requests together, and the pieces of text that it sends them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...errors import ZooError
from ...generate import ContinuousBatch, Request, Step
from ...generate.text import TextStream
from .errors import ApiError
from .workers import Call, CallWorker, FairLock, as_exception, tell

MAX_WAIT = 0.01  # seconds for which tokens of a stream may wait for the next ones: each delivery wakes the event loop


class Piece(NamedTuple):
    """A token of a choice, and the text that it makes certain."""

    choice: int
    text: str
    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]
    reason: str | None


Pieces = list[Piece] | Exception


class Choice:
    """A continuation that is being generated; its pieces go to a queue that the choices of a request share.

    stream: True if someone waits for each of them, False if for the last.
    """

    def __init__(
        self, index: int, request: Request, text: TextStream, pieces: asyncio.Queue[Pieces], stream: bool = True
    ):
        self.index, self.request, self.text, self.pieces, self.stream = index, request, text, pieces, stream
        self.held: list[Piece] = []
        self.loop = asyncio.get_running_loop()

    def piece(self, step: Step) -> Piece | Exception:
        if step.token is None:
            return step.error or ZooError("a token is missing")
        text, reason = self.text.add(step.token.id), step.token.reason
        if self.text.stopped:
            reason, self.request.cancelled = "stop", True
        if reason:
            text += self.text.finish()
        return Piece(self.index, text, step.token.id, step.token.logprob, step.top, reason)


class GenerateWorker(CallWorker):
    """Generates tokens by continuous batching, and calls functions between its steps."""

    def __init__(self, task: Any, name: str, turn: FairLock, most: int, rows: int, kept: int):
        self.batch: ContinuousBatch = task.continuous_batch(rows, kept=kept)
        self._choices: dict[Request, Choice] = {}
        self.tokens, self._delivered = 0, 0.0
        super().__init__(name, turn, most)

    def counters(self) -> dict[str, float]:
        batch = self.batch
        own = {"queue": len(self.queue) + batch.waiting, "tokens": self.tokens, "rows": batch.rows}
        prompts = {"prompt_tokens": batch.prompt_tokens, "reused": batch.reused}
        return {**own, **prompts, "prefix_bytes": batch.prefixes.bytes}

    def put_all(self, choices: Sequence[Choice]) -> None:
        """Queue the choices of a request, all or none."""
        with self.ready:
            if len(self.queue) + self.batch.waiting + len(choices) > self.most + self.batch.max_rows:
                raise ApiError(429, f"{self.most} generations wait already", code="queue_full", wait=1)
            self.queue.extend(choices)
            self.ready.notify()

    def work(self) -> None:
        while True:
            with self.ready:
                self.since = None
                self.ready.wait_for(lambda: self.queue or self.batch.rows or self.batch.waiting or self.stopping)
                if self.stopping and not (self.queue or self.batch.rows or self.batch.waiting):
                    return
                new = [*self.queue]
                self.queue.clear()
            self.since = time.monotonic()
            for one in new:
                if isinstance(one, Call):
                    self.answer(one)
                else:
                    self._choices[one.request] = one
                    self.batch.add(one.request)
            if not (self.batch.rows or self.batch.waiting):
                continue
            self.since = began = time.monotonic()
            try:
                with self.turn:
                    steps = self.batch.step()
                found = [(self._choices[step.request], step) for step in steps]
                # A step may have two tokens of a row that joins, and the first of them may be its last.
                sent = [(choice, choice.piece(step)) for choice, step in found if not choice.request.cancelled]
            except BaseException as e:
                wrong, left = as_exception(e), self.batch.close()
                sent = [(choice, wrong) for request in left if (choice := self._choices.get(request))]
            self.tokens += len(sent)
            now = time.monotonic()
            # The next step takes about as long as this one, unless it has a prompt to compute, or has to wait.
            late = self.batch.waiting or self.turn.is_wanted or now + (now - began) - self._delivered > MAX_WAIT
            self._deliver(sent, bool(late))
            if late:
                self._delivered = now
            held = {request for request, choice in self._choices.items() if request.cancelled}
            held |= {choice.request for choice, piece in sent if not isinstance(piece, Piece) or piece.reason}
            for request in held:
                del self._choices[request]

    def _deliver(self, new: Sequence[tuple[Choice, Piece | Exception]], late: bool) -> None:
        """Send the pieces that must not wait for further ones; late: those of streams too."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Queue[Pieces], Pieces]]] = {}
        for choice, piece in new:
            if not isinstance(piece, Piece):
                by_loop.setdefault(choice.loop, []).append((choice.pieces, piece))
                continue
            choice.held.append(piece)
            if piece.reason or (late and choice.stream):
                by_loop.setdefault(choice.loop, []).append((choice.pieces, choice.held))
                choice.held = []
        for loop, pieces in by_loop.items():
            tell(loop, _put, pieces)


def _put(pieces: list[tuple[asyncio.Queue[Pieces], Pieces]]) -> None:
    for queue, some in pieces:
        queue.put_nowait(some)
