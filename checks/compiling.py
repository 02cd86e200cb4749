"""Compiles the cases, in several processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

from .architectures import ARCHITECTURES
from .cases import Case, tensors
from .sass import Measured, measure


class CompileJob(NamedTuple):
    """One compilation: of a case, for an architecture, in an element type."""

    case: Case
    arch: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.case.function} [{self.case.name}] {self.dtype} {self.arch}"


@dataclass(frozen=True)
class JobResult:
    """The result of a job: the kernels that it launches, in order, or the error that stopped it."""

    launches: tuple[Measured, ...] = ()
    error: str = ""


def compiled(jobs: list[CompileJob], workers: int) -> dict[CompileJob, JobResult]:
    """The result of each job, compiled in `workers` processes."""
    found = {}
    for job, result in compile_all(jobs, workers):
        found[job] = result
        _progress(f"{len(found)}/{len(jobs)} {job}")
    _progress("")
    return {job: found[job] for job in jobs}


def compile_all(jobs: list[CompileJob], workers: int) -> Iterator[tuple[CompileJob, JobResult]]:
    """Each job and its result, as they finish.  One that ends its process is tried once more, alone."""
    with tempfile.TemporaryDirectory(prefix="zoo-aot-") as scratch:
        left = set(jobs)
        for job, result in _in_processes(jobs, min(workers, len(jobs)), scratch):
            left.discard(job)
            yield job, result
        for job in [job for job in jobs if job in left]:
            alone = list(_in_processes([job], 1, scratch))
            yield alone[0] if alone else (job, JobResult(error="the compiler ended its process"))


def _in_processes(jobs: list[CompileJob], workers: int, scratch: str) -> Iterator[tuple[CompileJob, JobResult]]:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawn, _begin, (scratch,)) as pool:
        running = {pool.submit(compile_one, job): job for job in jobs}
        try:
            for done in as_completed(running):
                with contextlib.suppress(BrokenProcessPool):
                    yield running[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(scratch: str) -> None:
    os.environ.pop("TRITON_INTERPRET", None)
    os.environ["TRITON_CACHE_DIR"] = scratch  # what is compiled here is of no use to a GPU's own cache


def compile_one(job: CompileJob) -> JobResult:
    """Compile what a case launches, in this process."""
    from .capture import capture  # loads Triton, which then looks at the environment

    module, _, name = job.case.function.partition(".")
    try:
        function = getattr(import_module(f"zoo.engines.triton.{module}"), name)
        with capture(ARCHITECTURES[job.arch]) as launches:
            function(*tensors(job.case, job.dtype))
        measured = tuple(measure(launch, ARCHITECTURES[job.arch]) for launch in launches)
    except Exception as e:  # whatever stops a kernel from compiling is what is looked for
        return JobResult(error=f"{type(e).__name__}: {' '.join(str(e).split())[:400]}")
    return JobResult(measured) if measured else JobResult(error="it launches no kernel")


def _progress(text: str) -> None:
    """Show the progress, on a line that the next one replaces."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:110]}", end="", file=sys.stderr, flush=True)
