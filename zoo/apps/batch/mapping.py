"""map_files: a task over all rows of files, or all pictures of folders."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import BatchError, InputError, UnsupportedError, ZooError
from ...images.open import MAX_BYTES
from ...optional import optional
from ...tasks.base import Progress
from .engine import Computed, Summary, check_engine, run
from .files import digest_of, is_uri, read
from .parts import Parts, output_of
from .pool import shared
from .results import columns_of, row_of
from .sources import PICTURE, Part, Rows, Source, image_place, open_source

if TYPE_CHECKING:
    from ...tasks import Found

# Rows of a part, which a job that was stopped has lost at most; of generation each takes long.
ROWS, PICTURES, LONG = 1024, 128, {"generate": 32, "read": 64}
PICTURES_AT_ONCE = 16  # of which files and results are held
_INPUT = re.compile(r"(\w+)\[\d+\](: )?")  # as errors name one of several


@dataclass(frozen=True)
class MapJob:
    """A task over the rows of a source.  Picklable."""

    name: str
    task: str
    images: bool
    source: Source
    arguments: Mapping[str, str]  # of the task's call -> the column
    options: Mapping[str, Any]  # of its call
    loading: Mapping[str, Any] = field(repr=False)  # of `load_task`
    key: str = ""  # of all of this but the source

    def work(self) -> _Work:
        return _Work(self)

    def lost(self, part: Part) -> Computed:
        """Each row in a process of its own kind, so that one alone is lost."""
        rows = self.source.read(part)

        def died(index: int) -> dict[str, Any]:
            return {"error": f"{_place(part, index)}: the process died"}

        one = _Alone(self, part)
        return Computed(list(shared(one, range(part.rows), 1, died, here=False)), rows.kept, True)


@dataclass(frozen=True)
class _Alone:
    """Makes what computes one row of a part."""

    job: MapJob
    part: Part

    def __call__(self) -> Any:
        work = self.job.work()
        return lambda index: work.compute(self.part, [index]).rows[0]


class _Work:
    """Holds the task, once there is something to compute, and the rows of the part that it is at."""

    def __init__(self, job: MapJob):
        self.job = job
        self._task: Any = None
        self._rows: tuple[Part, Rows] | None = None

    def digest(self, part: Part) -> str:
        rows = self._read(part)
        found = hashlib.sha256((self.job.key + rows.digest).encode())
        if self.job.images:
            for row in rows.given:
                found.update(_digest_of(self._image(row, part)).encode())
        return found.hexdigest()

    def compute(self, part: Part, index: Sequence[int] | None = None) -> Computed:
        """index: some of its rows."""
        rows = self._read(part)
        index = range(part.rows) if index is None else index
        found: dict[int, dict[str, Any]] = {i: {"error": rows.errors[i]} for i in index if i in rows.errors}
        good = [i for i in index if i not in found]
        lost = False
        for some in _cut(good, PICTURES_AT_ONCE if self.job.images else len(good)):
            try:
                found.update(self._results(rows, part, some))
            except MemoryError:
                lost = True
                found.update({i: {"error": f"{_place(part, i)}: not enough memory"} for i in some})
        self._rows = None
        return Computed([found[i] for i in index], rows.kept, lost)

    def _results(self, rows: Rows, part: Part, index: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The result of each of these rows, or its error."""
        good, given = [], []
        for i in index:
            try:
                given.append(self._given(rows.given[i], part))
                good.append(i)
            except ZooError as e:
                yield i, {"error": f"{_place(part, i)}: {e}"}
        if not good:
            return
        lists = {name: [one[name] for one in given] for name in self.job.arguments}
        errors: Mapping[int, ZooError] = {}
        try:
            results = self._loaded()(**lists, **self.job.options, progress=False)
        except BatchError as e:
            results, errors = e.results, e.errors
        except ZooError as e:
            if len(good) > 1:
                raise  # what is wrong is not a row
            results, errors = [None], {0: e}
        for k, i in enumerate(good):
            if k in errors:
                yield i, {"error": f"{_place(part, i)}: {self._said(errors[k])}"}
            else:
                yield i, row_of(self.job.task, results[k], self.job.options)

    def _loaded(self) -> Any:
        if self._task is None:
            from ...tasks import load_task

            self._task = load_task(self.job.name, task=self.job.task, **self.job.loading)
        return self._task

    def _said(self, error: ZooError) -> str:
        """With the column's name for the argument's."""
        text = str(error)
        named = _INPUT.match(text)
        if named is None or named[1] not in self.job.arguments:
            return text.removeprefix("image: ")
        return text[named.end() :] if named[2] else self.job.arguments[named[1]] + text[named.end() :]

    def _given(self, row: Mapping[str, Any], part: Part) -> dict[str, Any]:
        if self.job.images:
            image = self._image(row, part)
            if isinstance(image, ZooError):
                raise image
            (name,) = self.job.arguments
            return {name: read(image, MAX_BYTES) if isinstance(image, str) and is_uri(image) else image}
        for column in self.job.arguments.values():
            if column not in row:
                raise InputError(f"no column {column!r}, only {', '.join(map(repr, row)) or 'none'}")
        return {name: row[column] for name, column in self.job.arguments.items()}

    def _image(self, row: Mapping[str, Any], part: Part) -> Any:
        """Where it is, or its bytes, or what is wrong with the value."""
        (column,) = self.job.arguments.values()
        value = row.get(column)
        if self.job.source.kind == "pictures":
            return value
        try:
            return image_place(value, part.source)
        except InputError as e:
            return InputError(f"{column!r} is {e}")

    def _read(self, part: Part) -> Rows:
        if self._rows is None or self._rows[0] != part:
            self._rows = part, self.job.source.read(part)
        return self._rows[1]


def map_files(
    name: str | os.PathLike[str],
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    task: str | None = None,
    text: str | None = None,
    pair: str | None = None,
    question: str = "question",
    context: str = "context",
    keep: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    format: str | None = None,
    rows: int | None = None,
    engine: str = "local",
    jobs: int | None = None,
    threads: int | None = None,
    resume: bool = False,
    progress: bool | None = None,
    **loading: Any,
) -> Summary:
    """Call a checkpoint's task with every row of files, and write its results beside the rows.

    name, task, loading: as for `zoo.load`; every task but rerank.  inputs: .parquet, .csv and .jsonl files, folders of
    these, or of images, patterns, and URIs as s3://bucket/*.parquet (by pyarrow), all of one kind.  output: a .parquet,
    .csv or .jsonl file, or a folder for parts in `format`, by default "parquet".

    text: the column that is read, by default "text", or "image": paths, relative to the file that names them, or bytes.
    pair: of classify, the column of second texts.  question, context: of answer.  keep: the columns of the input that
    are written too, by default all.  options: of the task's call, as {"top_k": 3}.

    rows: of a part, by default 1024, of images 128, of texts that are read or written 64 and 32.  A part is written
    when it is done.  resume: parts that are there stay if they were made of the same rows and options.
    engine: "local" with `jobs` processes (1), or "ray", by default as many as the cluster has room for, with `threads`
    CPUs (1) each, or a GPU with device="cuda".

    What is wrong with a row is said in its column "error": see `Summary.errors`.  ZooError: no row can be computed.
    """
    from ...tasks import find_task

    check_engine(engine)
    if rows is not None and rows < 1:
        raise InputError(f"rows is {rows}, expected at least 1")
    names = [os.fspath(one) for one in ([inputs] if isinstance(inputs, str | os.PathLike) else inputs)]
    if not names:
        raise InputError("inputs is empty, expected at least one file or folder")
    folder, written_as, one_file = output_of(os.fspath(output), format)
    if written_as == "parquet":
        optional("pyarrow", f"{os.fspath(output)}: Parquet")  # said before anything is computed
    where = {
        key: loading[key] for key in ("revision", "local_files_only", "cache_dir", "token", "lock") if key in loading
    }
    found = find_task(name, task=task, **where)
    options = dict(options or {})
    if found.task == "rerank":
        raise UnsupportedError("rerank sorts the documents of one query: zoo.load(...) and zoo run do that")
    arguments = _arguments(found, text, pair, question, context)
    at_once = rows or LONG.get(found.task) or (PICTURES if found.images else ROWS)
    source, parts = open_source(
        names,
        list(arguments.values()),
        pictures=found.images,
        rows=at_once,
        keep=keep,
        typed=written_as == "parquet",
    )
    columns = columns_of(found.task, options)
    _check_columns(source, columns, written_as)
    if found.checkpoint.revision is not None:
        loading["revision"] = found.checkpoint.revision  # whatever the branch says when another process asks
    key = _key(found, arguments, options, loading)
    job = MapJob(os.fspath(name), found.task, found.images, source, arguments, options, loading, key)
    to = Parts(folder, written_as, columns, source.kept, source.schema if written_as == "parquet" else None)
    count = sum(part.rows for part in parts)
    with Progress(count, progress, "images" if found.images else "rows") as advance:
        return run(
            job,
            parts,
            to,
            os.fspath(output) if one_file else None,
            engine=engine,
            jobs=jobs,
            threads=threads,
            gpu=str(loading.get("device") or "").startswith(("cuda", "onnx:cuda")),
            resume=resume,
            advance=advance,
        )


def _arguments(found: Found, text: str | None, pair: str | None, question: str, context: str) -> dict[str, str]:
    """The arguments of a task's call, and the columns that they are from."""
    if pair is not None and (found.task != "classify" or found.images):
        raise InputError(f"pair is for classify of texts, and the task is {found.task}")
    if found.task == "answer":
        if text is not None:
            raise InputError("answer reads the columns of question and context: text is for other tasks")
        return {"question": question, "context": context}
    if found.images:
        return {"images": text or PICTURE}
    return {"texts": text or "text"} | ({} if pair is None else {"pairs": pair})


def _check_columns(source: Source, columns: Mapping[str, Any], format: str) -> None:
    """That what is kept and what is computed can stand beside one another in the output."""
    both = [name for name in source.kept if name in columns]
    if both:
        raise InputError(
            f"the input has a column {both[0]!r}, and so have the results: say which to keep (--keep), without it"
        )
    if format != "parquet" and source.kind == "Parquet":
        import pyarrow as pa

        for one in source.schema or ():
            if one.name in source.kept and "binary" in str(one.type) and not pa.types.is_string(one.type):
                raise InputError(
                    f"the column {one.name!r} holds bytes, which {format} does not have: do not keep it (--keep)"
                )


def _key(found: Found, arguments: Mapping[str, str], options: Mapping[str, Any], loading: Mapping[str, Any]) -> str:
    """Of all that decides what a row's result is, but for the row."""
    from ... import __version__

    checkpoint = found.checkpoint
    files = [checkpoint.folder / name for name in checkpoint.files] if checkpoint.revision is None else []
    of_files = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files if path.is_file()]
    more = {key: value for key, value in loading.items() if key not in ("local_files_only", "cache_dir", "token")}
    if more.get("lock") is not None:
        more["lock"] = hashlib.sha256(Path(str(more["lock"])).read_bytes()).hexdigest()
    said = [__version__, checkpoint.name, checkpoint.revision, of_files, found.task, dict(arguments), options, more]
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def _digest_of(image: Any) -> str:
    """Of an image's file, or of what is wrong with it."""
    if isinstance(image, bytes):
        return hashlib.sha256(image).hexdigest()
    return digest_of(image) if isinstance(image, str) else type(image).__name__


def _cut(index: Sequence[int], at_once: int) -> list[Sequence[int]]:
    return [index[i : i + at_once] for i in range(0, len(index), max(1, at_once))]


def _place(part: Part, index: int) -> str:
    """What errors call a row: rows are counted from 1, a header not."""
    return part.pictures[index] if part.pictures else f"{part.source}, row {part.first + index + 1}"
