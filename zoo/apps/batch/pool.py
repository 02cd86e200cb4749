"""Processes that share a job."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from ...ops.on_numpy import threads

AHEAD = 2  # items that wait for each process

Item = TypeVar("Item")
Result = TypeVar("Result")


def shared(
    make: Callable[[], Callable[[Item], Result]],
    items: Iterable[Item],
    jobs: int,
    lost: Callable[[Item], Result],
    *,
    here: bool = True,
) -> Iterator[Result]:
    """What each item gives, in their order, by `jobs` processes; with one, by this one.

    make: gives what does the work, once a process; for several processes it is picklable, as items and results are.
    lost: the result of an item that ended the process it was at.  here: whether one process may be this one.  Items are
    drawn as they are needed.
    """
    if jobs == 1 and here:
        yield from map(make(), items)
    else:
        yield from _Pool(make, jobs).map(iter(items), lost)


# Of a process of a pool.
_make: Callable[[], Callable[[Any], Any]] | None = None
_work: Callable[[Any], Any] | None = None


def _start(share: int, make: Callable[[], Callable[[Any], Any]]) -> None:
    global _make
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that is asked ends the others
    threads.set_count(share)
    _make = make


def _result(item: Any) -> Any:
    global _work
    if _work is None:
        assert _make is not None
        _work = _make()  # here, where an error reaches the process that asks
    return _work(item)


class _Pool:
    """Processes that share items.  One that dies (of memory, of a broken file) costs the item that it was at."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]], jobs: int):
        self.make, self.jobs = make, jobs
        self.share = max(1, threads.count() // jobs)

    def map(self, items: Iterator[Item], lost: Callable[[Item], Result]) -> Iterator[Result]:
        suspects: deque[Item] = deque()  # one of them ended a process: each is tried alone
        running: deque[tuple[Item, Future[Result]]] = deque()
        pool, more = self._pool(), True
        try:
            while more or suspects or running:
                ahead = 1 if suspects else self.jobs * AHEAD
                while len(running) < ahead and (suspects or more):
                    if suspects:
                        item = suspects.popleft()
                    else:
                        try:
                            item = next(items)
                        except StopIteration:
                            more = False
                            break
                    try:
                        future = pool.submit(_result, item)
                    except BrokenProcessPool as e:
                        if running:  # one of these did it, and says so below
                            future = Future()
                            future.set_exception(e)
                        else:
                            pool = self._pool()
                            future = pool.submit(_result, item)
                    running.append((item, future))
                    if ahead == 1:
                        break
                if not running:
                    break
                item, future = running[0]
                try:
                    result = future.result()
                except BrokenProcessPool:
                    pool.shutdown(wait=False, cancel_futures=True)
                    pool, died = self._pool(), [item for item, _ in running]
                    running.clear()
                    if len(died) > 1:
                        suspects.extend(died)
                        continue
                    yield lost(item)
                    continue
                running.popleft()
                yield result
        finally:
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)

    def _pool(self) -> ProcessPoolExecutor:
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.jobs, mp_context=spawn, initializer=_start, initargs=(self.share, self.make))
