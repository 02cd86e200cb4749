"""The tables of documents by Ray Data: rows of Parquet, as one process would write them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ...errors import ZooError
from ..batch.engine import Computed, Summary, run
from ..batch.files import digest_of
from ..batch.parts import Parts, output_of
from ..batch.pool import shared
from .batch import Recipe, Worker, plan
from .outputs import ROW, rows_of
from .pages import PageTables

DOCUMENTS = 8  # of a part: what is lost of a job that was stopped
KINDS = {str: "string", int: "int64", float: "double"}


class Documents(NamedTuple):
    """A part of the job."""

    number: int
    rows: int  # how many documents
    paths: tuple[str, ...]


@dataclass(frozen=True)
class TablesJob:
    """Picklable."""

    recipe: Recipe
    selection: str | None  # of each document's pages

    def work(self) -> _Work:
        return _Work(self)

    def lost(self, part: Documents) -> Computed:
        """Each document in a process of its own, so that one alone is lost."""
        found = shared(partial(_alone, self), part.paths, 1, partial(_failed, error="the process died"), here=False)
        rows = [row for of_one in found for row in of_one]
        return Computed(rows, [{}] * len(rows), True)


def _alone(job: TablesJob) -> Callable[[str], list[dict[str, Any]]]:
    return _Work(job).rows


def _failed(path: str, error: str) -> list[dict[str, Any]]:
    said = error if path in error else f"{path}: {error}"
    return rows_of(PageTables(path, "", 0, 0, error=said))


class _Work:
    def __init__(self, job: TablesJob):
        self.job = job
        self._worker: Worker | None = None

    def digest(self, part: Documents) -> str:
        said = [self.job.recipe.key(), str(self.job.selection)]
        for path in part.paths:
            said += [path, digest_of(path)]
        return hashlib.sha256("\n".join(said).encode()).hexdigest()

    def compute(self, part: Documents) -> Computed:
        rows = [row for path in part.paths for row in self.rows(path)]
        return Computed(rows, [{}] * len(rows))

    def rows(self, path: str) -> list[dict[str, Any]]:
        """Of a document."""
        try:
            pages = plan(path, self.job.recipe, self.job.selection)
        except ZooError as e:
            return _failed(path, str(e))
        if self._worker is None:
            self._worker = Worker(self.job.recipe)
        return [row for page in pages for row in rows_of(self._worker.tables(page))]


def tables_on_ray(
    recipe: Recipe,
    paths: Sequence[str],
    output: str,
    *,
    selection: str | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    resume: bool = False,
) -> Summary:
    """The rows of all tables of documents, and of what is wrong with a page, or with a document (as its page 0).

    paths: or URIs.  output: a .parquet file or a folder.  The rest is as for `zoo.apps.batch.map_files`.
    """
    folder, written_as, one_file = output_of(output, None)
    cuts = range(0, len(paths), DOCUMENTS)
    parts = [Documents(k, len(some), some) for k, i in enumerate(cuts) if (some := tuple(paths[i : i + DOCUMENTS]))]
    return run(
        TablesJob(recipe, selection),
        parts,
        Parts(folder, written_as, {name: KINDS[kind] for name, kind in ROW.items()}),
        output if one_file else None,
        engine="ray",
        jobs=jobs,
        threads=threads,
        gpu=(recipe.device or "").startswith(("cuda", "onnx:cuda")),
        resume=resume,
    )
