"""The tables of many documents, page by page, by one process or several."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ...errors import ZooError
from ...images.open import MAX_BYTES
from ..batch.files import is_uri, read
from ..batch.pool import shared
from ..documents import Document, open_document
from ..documents.files import DPI
from .extract import DETECTION, STRUCTURE, TableExtractor
from .pages import PageTables, around_of, page_tables

LINES_OF = 2  # what is said of a page: from 2 on, what lies around its tables


@dataclass(frozen=True)
class Recipe:
    """How tables are found: the options of a `TableExtractor` whose tasks are named, and of `open_document`."""

    structure: str = STRUCTURE
    detection: str | None = DETECTION
    reader: str | None = None
    ocr: str | None = None
    threshold: float = 0.5
    padding: int | None = None
    device: str | None = None
    local_files_only: bool = False
    lock: str | None = None
    dpi: float = DPI
    password: str | None = dataclasses.field(default=None, repr=False)

    def extractor(self) -> TableExtractor:
        """With its checkpoints loaded."""
        return TableExtractor(
            self.structure,
            self.detection,
            reader=self.reader,
            ocr=self.ocr,
            threshold=self.threshold,
            padding=self.padding,
            lock=self.lock,
            device=self.device,
            local_files_only=self.local_files_only,
        )

    def open(self, path: str) -> Document:
        file = read(path, MAX_BYTES) if is_uri(path) else path
        return open_document(file, dpi=self.dpi, password=self.password, name=path)

    def key(self) -> str:
        """Of all that decides what is found."""
        fields = dataclasses.asdict(self)
        for name in ("password", "local_files_only"):
            del fields[name]
        fields["lines"] = LINES_OF
        if self.lock is not None:
            fields["lock"] = hashlib.sha256(Path(self.lock).read_bytes()).hexdigest()
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


class PageJob(NamedTuple):
    """A page that is to be looked at."""

    path: str
    document: str  # the sha256 of the file
    number: int  # from 1
    pages: int  # of the document

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.path if self.pages == 1 else f"{self.path}, page {self.number}"


def plan(path: str, recipe: Recipe, selection: str | None = None) -> list[PageJob]:
    """The pages of a document; InputError if it cannot be opened, or has no such pages."""
    with recipe.open(path) as document:
        count, numbers = len(document), document.numbers(selection)
        return [PageJob(path, document.sha256, number, count) for number in numbers]


def extract_pages(pages: Sequence[PageJob], recipe: Recipe, jobs: int = 1) -> Iterator[PageTables]:
    """What is found on each page, in their order, by `jobs` processes; with one, by this one.

    What is wrong with a page is said in its result.  ZooError: a checkpoint cannot be loaded.
    """
    yield from shared(partial(_tables_by, recipe), pages, max(1, min(jobs, len(pages))), _lost)


def _tables_by(recipe: Recipe) -> Callable[[PageJob], PageTables]:
    return Worker(recipe).tables


def _lost(job: PageJob) -> PageTables:
    return PageTables(*job, error=f"{job.name}: the process died")


class Worker:
    """Finds the tables of one page after the other; pages of a document follow one another mostly."""

    def __init__(self, recipe: Recipe):
        self.recipe, self.extractor = recipe, recipe.extractor()
        self._document: Document | None = None

    def tables(self, job: PageJob) -> PageTables:
        start, found, error = time.perf_counter(), PageTables(*job), None
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                page = self._open(job.path).page(job.number)
                tables = page_tables(self.extractor, page)
                height, width = page.image.shape[:2]
                found = replace(found, tables=tables, size=(width, height), around=around_of(page, tables))
            except ZooError as e:
                error = str(e) if job.path in str(e) else f"{job.name}: {e}"
            except MemoryError:
                error = f"{job.name}: not enough memory"
        texts = tuple(str(one.message) for one in said)
        seconds = round(time.perf_counter() - start, 3)
        return replace(found, error=error, warnings=texts, seconds=seconds)

    def _open(self, path: str) -> Document:
        if self._document is None or self._document.name != path:
            if self._document is not None:
                self._document.close()
                self._document = None
            self._document = self.recipe.open(path)
        return self._document
