"""Processes of this machine that share the items of a job."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from .ops.on_numpy import threads as numpy_threads

ITEMS_AHEAD = 2  # items for each process that are drawn before their turn to be yielded

Item = TypeVar("Item")
Result = TypeVar("Result")

_do: Callable[[Any], Any]  # in a process of `Process`: the function that it calls


class Process:
    """A process that calls `do` with one item after the other; `replace` starts a new one after an item has ended it.

    do: is pickled, once for each process.  threads: of NumPy in it; None leaves the default.
    """

    def __init__(self, do: Callable[[Any], Any], threads: int | None = None):
        self._arguments = (do, threads)
        self.replace()

    def replace(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, context, _start, self._arguments)

    def submit(self, item: Any) -> Future[Any]:
        try:
            return self._pool.submit(_call, item)
        except BrokenProcessPool:  # it ended while it had nothing to do
            self.replace()
            return self._pool.submit(_call, item)

    def end(self) -> None:
        """End the process at once, also while it computes."""
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            process.terminate()
        self._pool.shutdown(wait=False, cancel_futures=True)


def share(
    do: Callable[[Item], Result], items: Iterable[Item], jobs: int, died: Callable[[Item], Result]
) -> Iterator[Result]:
    """Yield `do(item)` for each item, in order, computed by `jobs` processes; with one job, by this process.

    An item that ended its process yields `died(item)`.  Items are drawn as they are needed.
    """
    if jobs == 1:
        return map(do, items)
    return in_processes(do, items, jobs, died)


def in_processes(
    do: Callable[[Item], Result], items: Iterable[Item], jobs: int, died: Callable[[Item], Result]
) -> Iterator[Result]:
    """`share`, but never computed by this process."""
    with Processes(do, jobs) as processes:
        yield from processes.share(items, died)


class Processes:
    """`jobs` processes that call `do`, for several `share`s one after the other; they end with the context."""

    def __init__(self, do: Callable[[Any], Any], jobs: int):
        threads = max(1, numpy_threads.count() // jobs)
        self._processes = [Process(do, threads) for _ in range(jobs)]

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.end()

    def share(self, items: Iterable[Item], died: Callable[[Item], Result]) -> Iterator[Result]:
        """Yield `do(item)` for each item, in order, or `died(item)` where that ended its process."""
        free, busy = list(self._processes), {}
        waiting: deque[tuple[Item, Future[Result]]] = deque()
        items, more = iter(items), True
        while True:
            while more and free and len(waiting) < len(self._processes) * ITEMS_AHEAD:
                for item in items:
                    process = free.pop()
                    future = process.submit(item)
                    busy[future] = process
                    waiting.append((item, future))
                    break
                else:
                    more = False
            if not waiting:
                return
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                process = busy.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    process.replace()
                free.append(process)
            while waiting and waiting[0][1].done():
                item, future = waiting.popleft()
                yield died(item) if isinstance(future.exception(), BrokenProcessPool) else future.result()


def _start(do: Callable[[Any], Any], threads: int | None) -> None:
    global _do
    _do = do
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its processes
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if threads is not None:
        numpy_threads.set_count(threads)


def _end_with_parent() -> None:
    """A parent that was killed cannot end this process, which would wait for items for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(item: Any) -> Any:
    return _do(item)
