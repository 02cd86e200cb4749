"""`map_files` calls a task with the rows of files, or with the images or recordings of folders."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...devices import resolve_device
from ...errors import BatchError, InputError, UnsupportedError, ZooError
from ...images.open import MAX_BYTES
from ...optional import import_optional
from ...options import DEFAULTS, Options
from ...tasks.progress import Progress
from ...weights.adapter import FILES as ADAPTER_FILES
from ...weights.fingerprint import files_digest
from .engine import Summary, check_engine, run
from .files import folder_digest, is_uri, read, sha256_of
from .output import output_of
from .results import columns_of
from .row_files import RowFiles
from .row_source import InputPart, PartRows, RowSource
from .sources import AUDIO, IMAGE, file_place, open_source

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ...checkpoint.files import Checkpoint
    from ...keywords import LoadOptions
    from ...task_kinds import TaskKind

FILES_AT_ONCE = 16  # images, recordings and their results in memory
MEDIA: dict[str, str] = {"image": IMAGE, "audio": AUDIO}
MAX_FILE_BYTES = {IMAGE: MAX_BYTES, AUDIO: 4 << 30}  # bytes of a file


@dataclass
class MapJob:
    """A task over the rows of a source: an `engine.BatchJob`."""

    name: str
    task: str
    media: str | None  # IMAGE or AUDIO, if the task reads such
    source: RowSource
    arguments: Mapping[str, str]  # argument of the task's call -> column
    options: Mapping[str, Any]  # the options of the task's call
    loading: Options = field(repr=False)
    files: RowFiles
    key: str = ""  # a hash of all of this but the source
    _loaded: Any = field(default=None, repr=False)
    _rows: tuple[InputPart, PartRows] | None = field(default=None, repr=False)  # those that were read last

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_loaded": None, "_rows": None}

    def made_of(self, part: InputPart) -> str:
        rows = self._read(part)
        found = hashlib.sha256((self.key + rows.digest).encode())
        if self.media:
            for file in (self._file(row, part) for row in rows.given):
                if isinstance(file, bytes):
                    digest = hashlib.sha256(file).hexdigest()
                else:  # a path; or an error, by its name
                    most = MAX_FILE_BYTES[self.media]
                    digest = sha256_of(file, most) if isinstance(file, str) else type(file).__name__
                found.update(digest.encode())
        return found.hexdigest()

    def kept_columns(self, part: InputPart) -> Any:
        kept, self._rows = self._read(part).kept, None
        return kept

    def error_rows(self, part: InputPart, item: int, problem: str) -> list[dict[str, Any]]:
        place = f"{part.name(item)}: "  # an image's own error begins with its path, too
        return [{"error": place + problem.removeprefix(place)}]

    def compute(self, part: InputPart, items: Sequence[int]) -> list[dict[str, Any]]:
        problems = self._read(part).problems
        found = {i: self.error_rows(part, i, problems[i])[0] for i in items if i in problems}
        good = [i for i in items if i not in problems]
        step = FILES_AT_ONCE if self.media else max(1, len(good))
        for at in range(0, len(good), step):
            found |= self._results(part, good[at : at + step])
        return [found[i] for i in items]

    def _results(self, part: InputPart, items: Sequence[int]) -> dict[int, dict[str, Any]]:
        rows, found = self._read(part).given, {}
        inputs: dict[int, dict[str, Any]] = {}
        for i in items:
            try:
                inputs[i] = self._input(rows[i], part)
            except ZooError as e:
                found[i] = self.error_rows(part, i, str(e))[0]
        if not inputs:
            return found
        lists = {name: [one[name] for one in inputs.values()] for name in self.arguments}
        errors: Mapping[int, ZooError] = {}
        task = self._task()
        try:
            results = task(**lists, **self.options, progress=False)
        except BatchError as e:
            results, errors = e.results, e.errors
        except ZooError as e:
            if len(inputs) > 1:
                raise  # it is not about one row
            results, errors = [None], {0: e}
        for k, i in enumerate(inputs):
            if k in errors:
                found[i] = self.error_rows(part, i, self._problem(errors[k]))[0]
            else:
                found[i] = task.results.row(results[k], self.options.get("top_k") is not None)
        return found

    def _task(self) -> Any:
        if self._loaded is None:
            from ...tasks import load_task

            self._loaded = load_task(self.name, self.task, self.loading)
        return self._loaded

    def _problem(self, error: ZooError) -> str:
        """The message with the column in place of the argument; the caller adds the place of the row."""
        if error.argument is None or error.argument not in self.arguments:
            return str(error)
        if error.problem.startswith(": "):
            return error.problem[2:]
        return str(error.about(self.arguments[error.argument]))

    def _input(self, row: Mapping[str, Any], part: InputPart) -> dict[str, Any]:
        if self.media:
            file = self._file(row, part)
            if isinstance(file, ZooError):
                raise file
            (name,) = self.arguments
            return {name: read(file, MAX_FILE_BYTES[self.media]) if isinstance(file, str) and is_uri(file) else file}
        for column in self.arguments.values():
            if column not in row:
                raise InputError(f"no column {column!r}, only {', '.join(map(repr, row)) or 'none'}")
        return {name: row[column] for name, column in self.arguments.items()}

    def _file(self, row: Mapping[str, Any], part: InputPart) -> Any:
        """The path, the URI or the bytes of a row's image or recording, or an error."""
        (column,) = self.arguments.values()
        try:
            return file_place(row.get(column), part.path, self.files, self.media or IMAGE)
        except InputError as e:
            return InputError(f"{column!r} is {e}")

    def _read(self, part: InputPart) -> PartRows:
        if self._rows is None or self._rows[0] != part:
            self._rows = part, self.source.read(part)
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
    root: str | os.PathLike[str] | None = None,
    trust_rows: bool = False,
    raw: bool = False,
    progress: bool | None = None,
    **loading: Unpack[LoadOptions],
) -> Summary:
    """Call a checkpoint's task with every row of files, and write its results beside the rows.

    name, task, loading: as for `zoo.load`; every task but rerank.  inputs: .parquet, .csv, .jsonl and .xlsx files,
    folders of these, of images or of audio, patterns, and URIs such as s3://bucket/*.parquet (through fsspec), all of
    one kind.
    output: a .parquet, .csv or .jsonl file, or a folder for parts in `format`, by default "parquet".

    text: the column to read, by default "text", of images "image" and of audio files "audio": paths, relative to the
    file that names them, or bytes.  pair: for classify, the column of second texts.  question, context: columns, for
    answer.  keep: the columns of the input to write again, by default all.  options: of the task's call, such as
    {"top_k": 3}, or for zero-shot-* {"candidate_labels": [...]}.

    rows: of a part, by default 1024, for images 128, for read 64, for generate 32 and for recordings 16.  Each part is
    written when it is done, with a record of its rows and its sha256.  resume: parts that are whole, and were made of
    the same rows and options, are not computed again.
    engine: "local" with `jobs` processes (1), or "ray", by default as many as the cluster has room for, with `threads`
    CPUs (1) each, or a GPU with device="cuda".

    root: the folder (or URI) below which rows may name files; by default the folder of the row's table, and then no
    absolute paths, ".." or URIs.  trust_rows: they may name any file or URI.
    raw: write texts to CSV unchanged.  By default a text that spreadsheets would run as a formula gets an apostrophe
    before it.

    A bad row gets a message in its column "error": see `Summary.errors`.  ZooError: no row can be computed.
    """
    from ...tasks import find_task, task_class
    from ...tasks.zero_shot import sentences

    check_engine(engine)
    if rows is not None and rows < 1:
        raise InputError(f"rows is {rows}, expected at least 1")
    names = [os.fspath(one) for one in ([inputs] if isinstance(inputs, str | os.PathLike) else inputs)]
    if not names:
        raise InputError("inputs is empty, expected at least one file or folder")
    to = output_of(os.fspath(output), format)
    if to.format == "parquet":
        import_optional("pyarrow", f"{os.fspath(output)}: Parquet")  # an error before anything is computed
    load_options = DEFAULTS.update(loading)
    found = find_task(name, task, load_options)
    options = dict(options or {})
    kind = found.kind
    if kind.ranks:
        raise UnsupportedError(f"{kind.name} sorts the documents of one query: zoo.load(...) and zoo run do that")
    if kind.option("candidate_labels") is not None:
        options["candidate_labels"], _ = sentences(options.get("candidate_labels") or (), "{}")
    media = MEDIA.get(kind.reads)
    arguments = _arguments(kind, text, pair, question, context)
    typed = to.format == "parquet"
    rows = rows or kind.part
    source, parts = open_source(names, list(arguments.values()), media=media, rows=rows, keep=keep, typed=typed)
    columns = columns_of(task_class(kind).results, options)
    _check_columns(source, columns, to.format)
    to = replace(to, columns=columns, kept=source.kept, schema=source.schema() if typed else None, raw=raw)
    if found.checkpoint.revision is not None:
        # All processes load this revision, even if the branch moves.
        load_options = replace(load_options, revision=found.checkpoint.revision)
    files = RowFiles(None if root is None else os.fspath(root), trust_rows)
    key = job_key(found.checkpoint, task or found.task, arguments, options, load_options)
    job = MapJob(os.fspath(name), task or found.task, media, source, arguments, options, load_options, files, key)
    count = sum(part.rows for part in parts)
    with Progress(count, progress, f"{media or 'row'}s") as advance:
        return run(
            job,
            parts,
            to,
            engine=engine,
            jobs=jobs,
            threads=threads,
            gpu=(resolve_device(load_options.device) or "").startswith(("cuda", "onnx:cuda")),
            resume=resume,
            advance=advance,
        )


def _arguments(kind: TaskKind, text: str | None, pair: str | None, question: str, context: str) -> dict[str, str]:
    """The arguments of a task's call, and the columns that they are from."""
    named = {"question": question, "context": context}
    if needed := [option.name for option in kind.options if option.each and option.required]:
        raise UnsupportedError(f"{kind.name} needs {needed[0]} for each row: zoo.load(...) and zoo run do that")
    if pair is not None and kind.option("pairs") is None:
        raise InputError(f"pair is for classify of texts, and the task is {kind.name}")
    if kind.arguments[0] in named:
        if text is not None:
            raise InputError(f"{kind.name} reads the columns of question and context: text is for other tasks")
        return {name: named[name] for name in kind.arguments}
    (argument,) = kind.arguments
    return {argument: text or MEDIA.get(kind.reads, "text")} | ({} if pair is None else {"pairs": pair})


def _check_columns(source: RowSource, columns: Mapping[str, Any], format: str) -> None:
    """InputError: a column to write again has the name of a result's, or a type that the output does not have."""
    for name in source.kept:
        if name in columns:
            raise InputError(
                f"the input and the result both have a column {name!r}: name the columns to keep without it (--keep)"
            )
        if format != "parquet" and "binary" in str(getattr(source.fields.get(name), "type", "")):
            raise InputError(f"the column {name!r} has bytes, which {format} cannot store: do not keep it (--keep)")


def job_key(
    checkpoint: Checkpoint, task: str, arguments: Mapping[str, str], options: Mapping[str, Any], loading: Options
) -> str:
    """A hash of everything but the row that decides its result."""
    from ... import __version__

    adapter = [] if loading.adapter is None else [Path(loading.adapter).expanduser() / name for name in ADAPTER_FILES]
    of_files = [folder_digest(checkpoint), files_digest(path for path in adapter if path.is_file())]
    device = resolve_device(loading.device, loading.dtype)
    device = None if device in ("cpu", "numpy") else device
    more = asdict(replace(loading, device=device, local_files_only=False, cache_dir=None, token=None))
    if loading.lock is not None:
        more["lock"] = hashlib.sha256(Path(loading.lock).read_bytes()).hexdigest()
    parts = [__version__, checkpoint.name, checkpoint.revision, of_files, task, dict(arguments), options, more]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
