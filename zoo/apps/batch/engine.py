"""A job in parts, by processes of this machine or by Ray's: each part is computed, written, and said to be done."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from ...errors import InputError, UnsupportedError, nearest
from .parts import LOST, Parts
from .pool import shared

ENGINES = ("local", "ray")
SHOWN = 3  # errors of a part that are told


class Computed(NamedTuple):
    """What became of a part: its rows, those of its input that are kept beside them (as `sources.Rows` has them)."""

    rows: Sequence[Mapping[str, Any]]
    kept: Any
    lost: bool = False  # whether it is worth another try


class Work(Protocol):
    """Computes parts.  One is made for each process, and loads what it needs when it needs it."""

    def digest(self, part: Any) -> str:
        """Of all that decides what `compute` gives."""
        ...

    def compute(self, part: Any) -> Computed:
        """What is wrong with a row is said in its column `error`.  ZooError: nothing of the job can be computed."""
        ...


class Job(Protocol):
    """Picklable."""

    def work(self) -> Work: ...

    def lost(self, part: Any) -> Computed:
        """For a part that ended its process."""
        ...


class Done(NamedTuple):
    number: int
    name: str  # of its file
    rows: int  # rows (or pages) of the input
    errors: int
    shown: tuple[str, ...] = ()  # some of these
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """What a job came to."""

    output: str  # a file or a folder
    rows: int  # rows (or pages) of the input
    errors: int  # rows that have a text in their column `error`
    shown: tuple[str, ...] = ()  # some of these texts
    known: int = 0  # rows of parts that were done before


def run(
    job: Job,
    parts: Sequence[Any],
    to: Parts,
    output: str | None,
    *,
    engine: str = "local",
    jobs: int | None = None,
    threads: int | None = None,
    gpu: bool = False,
    resume: bool = False,
    advance: Callable[[int], object] = lambda rows: None,
) -> Summary:
    """Compute all parts, and make one file of them if `output` names one.

    parts: with `number` and `rows`.  jobs: processes; by default 1, or as many as a Ray cluster has room for.
    threads: of each on Ray.  gpu: whether each takes a GPU of Ray's.  InputError: parts of an earlier job are there,
    and `resume` was not asked for.
    """
    check_engine(engine)
    known = to.found()
    if known and not resume:
        raise InputError(
            f"{to.folder} has {len(known)} parts of an earlier job: --resume (resume=True) goes on with them, or name "
            "another output"
        )
    do, lost = partial(_doing, job, to, known), partial(_lost, job, to)
    if engine == "ray":
        from .on_ray import on_ray

        results: Iterator[Done] = on_ray(do, parts, lost, jobs=jobs, threads=threads or 1, gpu=gpu)
    else:
        results = shared(do, parts, min(jobs or 1, len(parts)), lost)
    names: dict[int, str] = {}
    before, errors, known_rows, shown = set(known.values()), 0, 0, []
    for done in results:
        names[done.number] = done.name
        errors += done.errors
        known_rows += done.rows if done.name in before else 0
        shown += done.shown
        for text in done.warnings:
            warnings.warn(text, stacklevel=2)
        advance(done.rows)
    ordered = [names[part.number] for part in parts]
    to.keep_only(ordered)
    if output is not None:
        to.merge(ordered, output)
    count = sum(part.rows for part in parts)
    return Summary(output or to.folder, count, errors, tuple(shown[:SHOWN]), known_rows)


def check_engine(engine: str) -> None:
    if engine not in ENGINES:
        raise UnsupportedError(f"engine {engine!r} is not one of {', '.join(ENGINES)}{nearest(str(engine), ENGINES)}")


def _doing(job: Job, to: Parts, known: Mapping[tuple[int, str], str]) -> Callable[[Any], Done]:
    """What a process does with parts."""
    work = job.work()

    def do(part: Any) -> Done:
        digest = hashlib.sha256((to.key() + work.digest(part)).encode()).hexdigest()
        name = known.get((part.number, digest[:32]))
        if name is not None:
            return Done(part.number, name, part.rows, to.errors(name))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            computed = work.compute(part)
        texts = tuple(dict.fromkeys(str(one.message) for one in said))
        return _written(part, to, computed, LOST if computed.lost else digest, texts)

    return do


def _lost(job: Job, to: Parts, part: Any) -> Done:
    return _written(part, to, job.lost(part), LOST)


def _written(part: Any, to: Parts, computed: Computed, digest: str, said: tuple[str, ...] = ()) -> Done:
    errors = [row["error"] for row in computed.rows if row.get("error") is not None]
    name = to.name(part.number, digest, len(errors))
    to.write(name, computed.kept, computed.rows)
    return Done(part.number, name, part.rows, len(errors), tuple(errors[:SHOWN]), said)
