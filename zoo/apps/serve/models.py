"""The checkpoints of a server: loaded one after another while the server already answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import InputError, ZooError, nearest
from ...generate import PREFIX_CACHE_BYTES
from ...tasks import load_task
from ...tasks.base import TextTask
from ...tasks.causal_rerank import CausalRerank
from ...tasks.generate import Generate
from ...text.token_bytes import TokenBytes
from ..tables import TableExtractor
from ..tables.batch import ExtractorConfig
from .errors import ApiError
from .generations import GenerateWorker
from .logs import logger
from .workers import CallWorker, FairLock, TextWorker, Worker

TEXTS = ("embed", "rerank", "classify")  # tasks whose requests are computed together
TABLES = "tables"  # the id of the table extractor


@dataclass
class Served:
    """A checkpoint.  kind: what it is for, None until it is loaded; error: why it could not be loaded."""

    id: str
    name: str
    created: int
    kind: str | None = None
    task: Any = None  # what zoo.load gives, or a TableExtractor
    worker: Any = None
    calls: Any = None  # the CallWorker of /v1/run
    error: str | None = None
    bytes_of: Any = None  # the TokenBytes of a language model


class Models:
    """The checkpoints of a server.

    queue: the most requests that may wait for a model.  rows: the most generations at once.  context: the most tokens
    of a generation.  kept: bytes of keys and values of earlier prompts, for each model.  seconds: the most for an
    answer.  tables: the models of /v1/tables, if any.  url_hosts: from which images of messages are fetched.
    options: as for `zoo.load`.
    """

    is_isolated = False  # whether a model's worker gets requests as they came, for a process of its own

    def __init__(
        self,
        names: Sequence[str],
        *,
        queue: int = 256,
        rows: int = 8,
        context: int | None = None,
        kept: int = PREFIX_CACHE_BYTES,
        seconds: float = 600,
        tables: ExtractorConfig | None = None,
        url_hosts: Sequence[str] = (),
        **options: Any,
    ):
        self.queue, self.rows, self.context, self.kept, self.seconds = queue, rows, context, kept, seconds
        self.tables, self.url_hosts, self.options, self._turn = tables, frozenset(url_hosts), options, FairLock()
        self.all: dict[str, Served] = {}
        now = int(time.time())
        for name in names:
            own = os.path.basename(os.path.abspath(name)) if os.path.isdir(name) else name
            if own in self.all or own == TABLES:
                raise InputError(f"two models have the name {own!r}: expected different ones")
            self.all[own] = Served(own, name, now)
        if tables is not None:
            self.all[TABLES] = Served(TABLES, TABLES, now)
        if not self.all:
            raise InputError("no model to serve: expected a name, or --tables")

    def load(self) -> None:
        """Load the models that are not loaded yet; an error is logged, and is the answer to requests for that model."""
        for one in self.all.values():
            if one.kind is not None:
                continue
            began = time.monotonic()
            try:
                task, worker = self._load_task(one)
            except ZooError as e:
                one.error = str(e)
            except MemoryError:
                one.error = "not enough memory"
            except Exception as e:
                one.error = f"{type(e).__name__}: {e}"
            else:
                one.worker, one.task, one.calls, one.kind = worker, task, one.calls or worker, _kind_of(task)
            if one.error is None:
                logger.info("%s: loaded in %.1f s", one.id, time.monotonic() - began)
            else:
                logger.error("%s: cannot be loaded: %s", one.id, one.error)

    def _load_task(self, one: Served) -> tuple[Any, Worker]:
        if one.id == TABLES and self.tables is not None:
            return self.tables.extractor(), CallWorker(one.id, self._turn, self.queue)
        task: Any = load_task(one.name, **self.options)
        if isinstance(task, Generate):
            one.bytes_of = TokenBytes(task.tokenizer)
            return task, GenerateWorker(task, one.id, self._turn, self.queue, self.rows, self.kept)
        if task.name in TEXTS and isinstance(task, TextTask) and not isinstance(task, CausalRerank):
            one.calls = CallWorker(one.id, self._turn, self.queue)
            return task, TextWorker(task, one.id, self._turn, self.queue)
        return task, CallWorker(one.id, self._turn, self.queue)  # of /v1/run

    @property
    def unready_models(self) -> list[str]:
        """A line for each model that cannot answer."""
        return [f"{one.id}: {one.error or 'is being loaded'}" for one in self.all.values() if one.kind is None]

    @property
    def has_failed(self) -> bool:
        """True if none could be loaded."""
        return all(one.error is not None for one in self.all.values())

    def find(self, name: str | None, *kinds: str) -> Served:
        """The model of a request, of one of the kinds (none given: of any); without a name the only such model."""
        if name is None:
            fitting = [one for one in self.all.values() if not kinds or one.kind is None or one.kind in kinds]
            if len(fitting) != 1:
                known = ", ".join(one.id for one in fitting) or "none"
                raise ApiError(400, f"model is missing; those for this endpoint: {known}", param="model")
            one = fitting[0]
        elif (found := self.all.get(name)) is None:
            message = f"the model {name!r:.200} is not served here, only {', '.join(self.all)}{nearest(name, self.all)}"
            raise ApiError(404, message, code="model_not_found", param="model")
        else:
            one = found
        if one.error is not None:
            raise ApiError(503, f"the model {one.id} could not be loaded: {one.error}", code="model_failed")
        if one.kind is None:
            raise ApiError(503, f"the model {one.id} is being loaded", code="model_loading", wait=2)
        if kinds and one.kind not in kinds:
            raise ApiError(
                400,
                f"{one.id} is a model for {one.kind}, and this path needs one for {' or '.join(kinds)}",
                param="model",
            )
        return one

    def context_of(self, one: Served) -> int:
        """The most tokens of a generation with its prompt."""
        return min(one.task.max_tokens, self.context or one.task.max_tokens)

    @contextlib.asynccontextmanager
    async def serving(self, failed: Callable[[], None]) -> AsyncIterator[None]:
        """Load the models meanwhile, and stop them at the end.  failed: called where none can be loaded."""

        def load() -> None:
            self.load()
            if self.has_failed:
                failed()

        loading = threading.Thread(target=load, name="loading", daemon=True)
        loading.start()
        yield
        if not loading.is_alive():
            await asyncio.to_thread(self.stop)

    def stop(self) -> None:
        """Finish the waiting requests, and end the threads."""
        for one in self.all.values():
            for worker in {one.worker, one.calls} - {None}:
                worker.stop()


def _kind_of(task: Any) -> str:
    if isinstance(task, TableExtractor):
        return TABLES
    shared = task.name in TEXTS and not isinstance(task, TextTask)  # by tasks of texts and of images
    return f"{task.name} of {task.kind.reads}s" if shared else str(task.name)
