"""The tables of many documents, page by page, by one process or several, or by Ray."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ...checkpoint.names import as_name
from ...devices import resolve_device
from ...errors import ZooError
from ...hub import find
from ...images.open import MAX_BYTES
from ...options import DEFAULTS
from ...processes import share
from ...tasks.auto_reader import AUTO_READER, FIRST_NAME, SECOND_NAME
from ...tasks.flatten import load_flattener
from ..batch.engine import Summary, run
from ..batch.files import folder_digest, is_uri, read, sha256_of
from ..batch.output import output_of
from ..documents import Document, open_document
from ..documents.files import DPI
from .extract import DETECTION, STRUCTURE, TableExtractor
from .ocr import reader_and_engine
from .pages import PageTables, page_tables
from .writers import ROW, rows_of

PAGE_FORMAT = 4  # version of a page's record: its tables, the text around them, the angle of its text
DOCUMENTS_PER_PART = 8  # on Ray: a job that is killed loses at most a part in each process
KINDS = {str: "string", int: "int64", float: "double"}


@dataclass(frozen=True)
class ExtractorConfig:
    """The options of a `TableExtractor` whose tasks are named, and of `open_document`."""

    structure: str = STRUCTURE
    detection: str | None = DETECTION
    reader: str | None = None
    ocr: str | None = None
    threshold: float = 0.5
    padding: int | None = None
    straighten: bool = True
    device: str | None = None
    local_files_only: bool = False
    lock: str | None = None
    dpi: float = DPI
    password: str | None = dataclasses.field(default=None, repr=False)
    photo: bool = False

    def extractor(self) -> TableExtractor:
        """The extractor, with its checkpoints loaded."""
        options = {name: value for name, value in vars(self).items() if name not in ("dpi", "password", "photo")}
        return TableExtractor(**options)

    def open(self, path: str) -> Document:
        file = read(path, MAX_BYTES) if is_uri(path) else path
        flatten = _flattener(self.device, self.local_files_only, self.lock) if self.photo else None
        return open_document(file, dpi=self.dpi, password=self.password, name=path, flatten=flatten)

    def key(self) -> str:
        """A hash of everything but the page that decides its tables."""
        fields = dataclasses.asdict(self)
        fields["reader"], fields["ocr"] = reader_and_engine(self.reader, self.ocr)
        for name in ("password", "local_files_only"):
            del fields[name]
        readers = (FIRST_NAME, SECOND_NAME) if fields["reader"] == AUTO_READER else (fields["reader"],)
        names = [name for name in (self.structure, self.detection, *readers) if name and as_name(name).is_local]
        fields["weights"] = [folder_digest(find(name)) for name in names]
        fields["lines"] = PAGE_FORMAT
        if self.lock is not None:
            fields["lock"] = hashlib.sha256(Path(self.lock).read_bytes()).hexdigest()
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


@functools.lru_cache(maxsize=1)
def _flattener(device: str | None, local_files_only: bool, lock: str | None) -> Any:
    """UVDoc, loaded once for all documents."""
    return load_flattener(
        options=DEFAULTS.update({"device": device, "local_files_only": local_files_only, "lock": lock})
    )


class PageJob(NamedTuple):
    path: str
    document: str  # the sha256 of the file
    number: int  # the first is 1
    pages: int  # the document's number of pages

    @property
    def name(self) -> str:
        """The name of the page in errors."""
        return self.path if self.pages == 1 else f"{self.path}, page {self.number}"


class Worker:
    """Finds the tables of pages, with the document and the models that it opened last.  Picklable, one per process."""

    def __init__(self, config: ExtractorConfig):
        self.config = config
        self._extractor: TableExtractor | None = None
        self._document: Document | None = None

    def __reduce__(self) -> Any:
        return type(self), (self.config,)

    def plan(self, path: str, selection: str | None = None) -> list[PageJob]:
        """The pages of a document; InputError if it cannot be opened, or has no such pages."""
        document = self._open(path)
        count, numbers = len(document), document.numbers(selection)
        return [PageJob(path, document.sha256, number, count) for number in numbers]

    def tables(self, job: PageJob) -> PageTables:
        """The tables of a page, or its error.  ZooError: a checkpoint cannot be loaded."""
        start = time.perf_counter()
        if self._extractor is None:
            self._extractor = self.config.extractor()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = self._tables(self._extractor, job)
            except MemoryError:
                found = PageTables(*job, error=f"{job.name}: not enough memory")
        texts = tuple(str(one.message) for one in caught)
        return replace(found, warnings=texts, seconds=round(time.perf_counter() - start, 3))

    def _tables(self, extractor: TableExtractor, job: PageJob) -> PageTables:
        try:
            page = self._open(job.path).page(job.number)
        except ZooError as e:  # which names the document
            return PageTables(*job, error=str(e))
        try:
            return page_tables(extractor, page, job.document)
        except ZooError as e:
            return PageTables(*job, error=f"{job.name}: {e}")

    def close(self) -> None:
        if self._document is not None:
            self._document.close()
            self._document = None

    def _open(self, path: str) -> Document:
        if self._document is None or self._document.name != path:
            self.close()
            self._document = self.config.open(path)
        return self._document


def extract_pages(pages: Iterable[PageJob], worker: Worker, jobs: int = 1) -> Iterator[PageTables]:
    """The tables of each page or its error, in order, by `jobs` processes; with one job, by `worker` itself.

    Pages are drawn as they are needed.  ZooError: a checkpoint cannot be loaded.
    """
    return share(worker.tables, pages, jobs, lambda job: PageTables(*job, error=f"{job.name}: the process died"))


class DocumentsPart(NamedTuple):
    """A part of a job on Ray."""

    number: int
    rows: int  # documents
    paths: tuple[str, ...]


@dataclass
class TablesJob:
    """The rows of documents' tables: a `zoo.apps.batch.engine.BatchJob`."""

    worker: Worker
    selection: str | None  # each document's pages, as typed

    def made_of(self, part: DocumentsPart) -> str:
        files = [text for path in part.paths for text in (path, sha256_of(path, MAX_BYTES))]
        key = [self.worker.config.key(), str(self.selection), *files]
        return hashlib.sha256("\n".join(key).encode()).hexdigest()

    def compute(self, part: DocumentsPart, items: Sequence[int]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for i in items:
            try:
                pages = self.worker.plan(part.paths[i], self.selection)
            except ZooError as e:
                rows += rows_of(PageTables(part.paths[i], "", 0, 0, error=str(e)))  # which names the document
                continue
            rows += [row for page in pages for row in rows_of(self.worker.tables(page))]
        return rows

    def error_rows(self, part: DocumentsPart, item: int, problem: str) -> list[dict[str, Any]]:
        path = part.paths[item]
        return rows_of(PageTables(path, "", 0, 0, error=f"{path}: {problem}"))

    def kept_columns(self, part: DocumentsPart) -> None:
        return None


def tables_on_ray(
    config: ExtractorConfig,
    paths: Sequence[str],
    output: str,
    *,
    selection: str | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    resume: bool = False,
) -> Summary:
    """Write a row for each table of documents, and for each page, or document (as its page 0), with an error.

    paths: or URIs.  output: a .parquet file or a folder.  The rest is as for `zoo.apps.batch.map_files`.
    """
    cuts = enumerate(range(0, len(paths), DOCUMENTS_PER_PART))
    parts = [DocumentsPart(k, len(some := tuple(paths[i : i + DOCUMENTS_PER_PART])), some) for k, i in cuts]
    return run(
        TablesJob(Worker(config), selection),
        parts,
        replace(output_of(output, None), columns={name: KINDS[kind] for name, kind in ROW.items()}),
        engine="ray",
        jobs=jobs,
        threads=threads,
        gpu=(resolve_device(config.device) or "").startswith(("cuda", "onnx:cuda")),
        resume=resume,
    )
