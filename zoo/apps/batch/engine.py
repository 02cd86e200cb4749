"""A job in parts, computed by this process, by several, or by Ray's: each part is computed, written and recorded."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from ...errors import InputError, UnsupportedError, ZooError, nearest
from ...processes import in_processes, share
from .output import RETRY, JobOutput, PartFile

ENGINES = ("local", "ray")
SHOWN_ERRORS = 3  # errors that the summary quotes

Row = dict[str, Any]
InputPart = Any  # with `number`, from 0, and `rows`, the count of its items: rows, images or documents


class BatchJob(Protocol):
    """The computation of parts.  Picklable: each process has one, which loads its checkpoint when it needs it."""

    def made_of(self, part: InputPart) -> str:
        """A hash of everything that decides the result of a part."""
        ...

    def compute(self, part: InputPart, items: Sequence[int]) -> list[Row]:
        """The rows of some of a part's items; a bad item gives a row with a text in `error`.

        ZooError: nothing of the job can be computed.
        """
        ...

    def error_rows(self, part: InputPart, item: int, problem: str) -> list[Row]:
        """The rows of an item that could not be computed."""
        ...

    def kept_columns(self, part: InputPart) -> Any:
        """The input columns to write before the result's, as `sources.PartRows` has them."""
        ...


class FinishedPart(NamedTuple):
    """A part that has been written, now or by an earlier job."""

    file: PartFile
    items: int
    is_new: bool = True
    shown: tuple[str, ...] = ()  # some of its errors
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """The result of a job."""

    output: str  # a file or a folder
    rows: int  # rows (or documents) of the input, those of an earlier job among them
    errors: int  # rows with a text in their column `error`
    shown: tuple[str, ...] = ()  # some of these texts
    known: int = 0  # rows that an earlier job had computed


def run(
    job: BatchJob,
    parts: Sequence[InputPart],
    output: JobOutput,
    *,
    engine: str = "local",
    jobs: int | None = None,
    threads: int | None = None,
    gpu: bool = False,
    resume: bool = False,
    advance: Callable[[int], object] = lambda rows: None,
) -> Summary:
    """Compute the parts that an earlier job has not written, and join them if the output is one file.

    jobs: processes; by default 1, or as many as a Ray cluster has room for.  threads: CPUs of each on Ray.  gpu: on Ray
    each process takes a GPU.  InputError: there are parts of an earlier job, and `resume` is False.
    """
    check_engine(engine)
    with output.lock_output():
        earlier = {(file.number, file.made_of): file for file in output.part_files()}
        if earlier and not resume:
            raise InputError(
                f"{output.folder} has {len(earlier)} parts of an earlier job: resume it with --resume (resume=True), "
                "or name another output"
            )
        do, died = partial(_do, job, output, earlier), partial(_one_by_one, job, output)
        if engine == "ray":
            from .on_ray import on_ray

            results: Iterator[FinishedPart] = on_ray(do, parts, died, jobs=jobs, threads=threads or 1, gpu=gpu)
        else:
            results = share(do, parts, min(jobs or 1, len(parts)), died)
        files: list[PartFile] = []
        rows, known, shown = 0, 0, []
        for done in results:
            files.append(done.file)
            rows += done.items
            known += 0 if done.is_new else done.items
            shown += done.shown
            for text in done.warnings:
                warnings.warn(text, stacklevel=2)
            advance(done.items)
        files.sort(key=lambda file: file.number)
        if len(files) != len(parts):
            raise ZooError(f"{len(parts) - len(files)} of {len(parts)} parts are missing: resume the job with --resume")
        output.finish(files)
        return Summary(output.target, rows, sum(file.errors for file in files), tuple(shown[:SHOWN_ERRORS]), known)


def check_engine(engine: str) -> None:
    if engine not in ENGINES:
        raise UnsupportedError(f"engine {engine!r} is not one of {', '.join(ENGINES)}{nearest(str(engine), ENGINES)}")


def _do(job: BatchJob, output: JobOutput, earlier: Mapping[tuple[int, str], PartFile], part: InputPart) -> FinishedPart:
    """Compute and write a part, unless it is there already."""
    made_of = hashlib.sha256((output.key() + job.made_of(part)).encode()).hexdigest()[:32]
    file = earlier.get((part.number, made_of))
    if file is not None and output.is_whole(file):
        return FinishedPart(file, part.rows, is_new=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            rows = job.compute(part, range(part.rows))
        except MemoryError:
            made_of = RETRY
            rows = [row for item in range(part.rows) for row in _compute_one(job, part, item)]
    texts = tuple(dict.fromkeys(str(one.message) for one in caught))
    return _write(job, output, part, made_of, rows, texts)


def _compute_one(job: BatchJob, part: InputPart, item: int) -> list[Row]:
    try:
        return job.compute(part, [item])
    except MemoryError:
        return job.error_rows(part, item, "not enough memory")


def _one_by_one(job: BatchJob, output: JobOutput, part: InputPart) -> FinishedPart:
    """Compute and write a part that ended its process: each item in a process of its own kind, to lose only one."""
    died = partial(job.error_rows, part, problem="the process died")
    found = in_processes(partial(_compute_one, job, part), range(part.rows), 1, died)
    return _write(job, output, part, RETRY, [row for rows in found for row in rows])


def _write(
    job: BatchJob, output: JobOutput, part: InputPart, made_of: str, rows: list[Row], texts: tuple[str, ...] = ()
) -> FinishedPart:
    file = output.write(part.number, made_of, job.kept_columns(part), rows)
    errors = [row["error"] for row in rows if row.get("error") is not None]
    return FinishedPart(file, part.rows, shown=tuple(errors[:SHOWN_ERRORS]), warnings=texts)
