"""Fork-join over threads, with BLAS set to one thread meanwhile.

NumPy releases the GIL inside its loops and products, so threads that each take a share of a layer's features (product,
bias, activation, while the share is in cache) keep all cores busy.  Their number follows OMP_NUM_THREADS, the CPU
affinity and the cgroup's quota, or `set_count` (for users: `zoo.set_num_threads`).
"""

from __future__ import annotations

import math
import operator
import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from weakref import WeakSet

import numpy as np

from ...errors import InputError
from . import blas

MAX_THREADS = 1024  # the largest thread count
MIN_PARALLEL_NS = 200_000  # nanoseconds of work below which waking another thread costs more than it saves

_lock = threading.Lock()
_chosen: int | None = None
_limit: int | None = None
_control: blas.Control | None = None


def set_count(n: int | None) -> None:
    """Use n threads (1: only the caller's) from now on; None restores the machine's default."""
    global _chosen
    if n is not None and (
        isinstance(n, bool) or not hasattr(n, "__index__") or not 1 <= operator.index(n) <= MAX_THREADS
    ):
        raise InputError(f"a thread count must be a whole number from 1 to {MAX_THREADS}, or None, found {n!r:.50}")
    _chosen = None if n is None else operator.index(n)


def count(cost: float = math.inf) -> int:
    """The number of threads that an op may use now; cost: as for `run`."""
    global _limit, _control
    if cost <= MIN_PARALLEL_NS:
        return 1
    if _limit is None:
        _control, _limit = blas.find(), limit()
    if _chosen is not None:
        return _chosen
    if _control is None:
        return 1  # a BLAS that cannot be set to one thread would add its threads to ours
    with _lock:  # a lower count set elsewhere, for example by threadpoolctl, applies here too
        return min(_limit, _saved or _control.get())


def as_many_in_blas() -> bool:
    """True if BLAS itself would use as many threads as we may: several, and no caller has set it to one."""
    return _chosen is None and count() > 1 and not len(_inside) and _control is not None and _control.get() == _limit


def limit() -> int:
    """The threads that the environment, the CPU affinity and the cgroup allow."""
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity else os.cpu_count() or 1
    limits = [cpus, _from_environment(os.environ), cgroup_quota(_read)]
    return max(1, min(n for n in limits if n is not None))


def _from_environment(environ) -> int | None:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        first = environ.get(name, "").partition(",")[0].strip()  # OMP's may list one count for each level of nesting
        if first.isdigit() and int(first) > 0:
            return int(first)
    return None


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except (OSError, UnicodeDecodeError):
        return None


def cgroup_quota(read: Callable[[str], str | None]) -> int | None:
    """The CPUs that the process's cgroups (version 1 or 2) allow; None: no limit.  read(path): a file's text."""
    quotas = []
    for line in (read("/proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            folders, names = ["/sys/fs/cgroup"], ("cpu.max",)
        elif "cpu" in controllers.split(","):
            folders, names = (
                ["/sys/fs/cgroup/cpu", f"/sys/fs/cgroup/{controllers}"],
                ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
            )
        else:
            continue
        steps = [step for step in path.split("/") if step not in ("", "..")]
        for folder in folders:
            for depth in range(len(steps) + 1):  # a parent's quota binds its children
                texts = [read("/".join([folder, *steps[:depth], name])) for name in names]
                quotas.append(parse_quota(" ".join(text or "" for text in texts)))
    quotas = [q for q in quotas if q is not None]
    return max(1, math.floor(min(quotas))) if quotas else None


def parse_quota(text: str) -> float | None:
    """CPUs from `quota period`: "150000 100000" is 1.5; "max 100000" and "-1 100000" are no limit."""
    fields = text.split()
    if len(fields) != 2 or not all(f.isdigit() for f in fields) or "0" in fields:
        return None
    return int(fields[0]) / int(fields[1])


# The first of several callers sets BLAS to one thread, the last resets it


class _Token:
    """One caller.  Weakly referenced: if an interrupt skips _leave, it disappears with the caller's frame."""


_inside: WeakSet[_Token] = WeakSet()
_saved: int | None = None


def _enter(token: _Token) -> None:
    global _saved
    with _lock:
        if not _inside and _control and _saved is None:
            _saved = _control.get()
            if _saved != 1:
                _control.set(1)
        _inside.add(token)


def _leave(token: _Token) -> None:
    global _saved
    with _lock:
        _inside.discard(token)
        if not _inside and _control and _saved is not None:
            if _saved != 1 and _control.get() == 1:  # another count was set by someone else meanwhile, and stays
                _control.set(_saved)
            _saved = None


# The workers take shares of queued jobs; a caller finishes its job even if none is free


class _Job:
    def __init__(self, fn: Callable[[int], object], n: int):
        self.fn, self.n = fn, n
        self.todo = list(range(n - 1, -1, -1))
        self.finished: list[int] = []
        self.done: SimpleQueue[None] = SimpleQueue()
        self.error: BaseException | None = None
        self.cancelled = False

    def work(self) -> None:
        while not self.cancelled:
            try:
                i = self.todo.pop()  # atomic, also without a GIL
            except IndexError:
                return
            if self.error is None:
                try:
                    self.fn(i)
                except BaseException as e:
                    self.error = e
            self.finished.append(i)
            if len(self.finished) == self.n:
                self.done.put(None)


class _Worker(threading.Thread):
    def __init__(self, jobs: SimpleQueue[_Job]):
        super().__init__(name="zoo-worker", daemon=True)
        self.jobs = jobs
        self.job: _Job | None = None

    def run(self) -> None:
        with np.errstate(all="ignore"):
            while True:
                job = self.jobs.get()
                self.job = job
                job.work()
                self.job = job = None


_jobs: SimpleQueue[_Job] = SimpleQueue()
_workers: list[_Worker] = []


def run(fn: Callable[[int], object], n: int, cost: float) -> None:
    """Call fn(0) ... fn(n - 1) on the caller's thread and idle workers; exceptions are raised here.

    cost: roughly the nanoseconds that one thread would take for all.
    """
    threads = count()
    token = _Token()
    try:
        _enter(token)
        with np.errstate(all="ignore"):
            # Each concurrent caller counts as a thread, so that many of them do not overload the machine.
            helpers = min(n, threads - len(_inside) + 1) - 1
            if helpers <= 0 or cost <= MIN_PARALLEL_NS or _jobs.qsize() > 4 * threads:
                for i in range(n):
                    fn(i)
            else:
                _share(_Job(fn, n), helpers)
    finally:
        _leave(token)


def _share(job: _Job, helpers: int) -> None:
    with _lock:
        while len(_workers) < helpers:
            worker = _Worker(_jobs)
            worker.start()
            _workers.append(worker)
    try:
        for _ in range(helpers):
            _jobs.put(job)
        job.work()
        while len(job.finished) < job.n:
            job.done.get()
    except (
        BaseException
    ):  # KeyboardInterrupt between two statements: no worker may still write when the caller continues
        job.cancelled = True
        _settle(job)
        raise
    finally:
        job.fn = _do_nothing  # a worker that wakes up late must not keep arrays alive
    error, job.error = job.error, None
    if error is not None:
        raise error


def _do_nothing(i: int) -> None:
    pass


def _settle(job: _Job) -> None:
    while True:
        try:
            while any(worker.job is job for worker in _workers):
                time.sleep(0.0005)
            return
        except KeyboardInterrupt:  # one is being handled already, and a share takes milliseconds
            continue


def _after_fork() -> None:
    """Reset the state in a child process, which has no workers and no other callers."""
    global _lock, _jobs, _workers, _inside, _saved
    _lock, _jobs, _workers, _inside = threading.Lock(), SimpleQueue(), [], WeakSet()
    if _control and _saved is not None:
        _control.set(_saved)
    _saved = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
