"""The rows of Parquet, CSV, JSON lines and XLSX, and the images or recordings of folders, in parts.

They are read one by one, and the same for every number of processes.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, ClassVar

from ...audio.reading import SUFFIXES
from ...errors import InputError, nearest, quantity
from .files import open_file
from .inputs import IMAGES, find_inputs
from .parquet_source import ParquetSource
from .row_files import RowFiles
from .row_source import InputPart, PartRows, RowSource, digest
from .text_rows import csv_rows, json_rows
from .xlsx_source import TYPED_AT_ONCE, XlsxSource

# The columns of a folder of images, and of one of recordings.
IMAGE, AUDIO = "image", "audio"
PART_BYTES = 64 << 20  # bytes of a text file in a part, at most


class FileSource(RowSource):
    """Files that are rows: with one column, the path."""

    column: ClassVar[str]

    def parts(self, paths: Sequence[str], rows: int, typed: bool) -> Iterator[InputPart]:
        if self.given != (self.column,):
            raise InputError(
                f"{self.column}s have the column {self.column!r} alone, and {self.given[0]!r} is asked for"
            )
        self.columns = (self.column,)
        for i in range(0, len(paths), rows):
            yield InputPart(0, "", i, len(paths[i : i + rows]), files=tuple(paths[i : i + rows]))

    def read(self, part: InputPart) -> PartRows:
        rows = [{self.column: path} for path in part.files]
        return PartRows(self._keep_columns(rows), rows, {}, digest(repr(rows).encode()))


class ImageSource(FileSource):
    kind, column = "an image", IMAGE


class AudioSource(FileSource):
    kind, column = "an audio file", AUDIO


class TextSource(RowSource):
    """A text file; its parts are ranges of bytes."""

    def rows(self, file: IO[bytes], path: str) -> Iterator[tuple[dict[str, Any], str | None, int]]:
        """(row, problem, end in bytes) of each row, from where the file is."""
        raise NotImplementedError

    def read(self, part: InputPart) -> PartRows:
        with open_file(part.path) as file:
            file.seek(part.start)
            data = file.read(part.stop - part.start)
        rows: list[dict[str, Any]] = []
        problems = {}
        for row, problem, _ in self.rows(io.BytesIO(data), part.path):
            if problem is not None:
                problems[len(rows)] = problem
            rows.append(row)
        if len(rows) != part.rows:
            raise InputError(f"{part.path} has changed: {quantity(len(rows), 'row')} where there were {part.rows}")
        return PartRows(self._keep_columns(rows), rows, problems, digest(repr((rows, problems)).encode()))


@dataclass
class CsvSource(TextSource):
    kind = "CSV"
    headers: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by path

    def rows(self, file: IO[bytes], path: str) -> Iterator[tuple[dict[str, Any], str | None, int]]:
        names = self.headers[path]
        for fields, problem, end in csv_rows(file, path):
            if problem is None and len(fields) != len(names):
                problem = f"{len(fields)} fields, expected {len(names)}"
            yield dict(zip(names, fields, strict=False)), problem, end

    def parts(self, paths: Sequence[str], rows: int, typed: bool) -> Iterator[InputPart]:
        for path in paths:
            with open_file(path) as file:
                names, problem, end = next(csv_rows(file, path), ([], None, 0))
                if problem is not None:
                    raise InputError(f"{path}: the first line {problem}")
                if not names:
                    continue
                names[0] = names[0].removeprefix("\ufeff")
                if len(set(names)) < len(names):
                    raise InputError(f"{path}: {next(n for n in names if names.count(n) > 1)!r} names two columns")
                self._set_columns(path, names)
                self.headers[path] = tuple(names)
                file.seek(end)
                yield from _cut(path, (end + stop for _, _, stop in csv_rows(file, path)), end, rows)


class JsonLinesSource(TextSource):
    kind = "JSON lines"

    def rows(self, file: IO[bytes], path: str) -> Iterator[tuple[dict[str, Any], str | None, int]]:
        return json_rows(file, path)

    def parts(self, paths: Sequence[str], rows: int, typed: bool) -> Iterator[InputPart]:
        columns: dict[str, None] = {}

        def ends(path: str, file: IO[bytes]) -> Iterator[int]:
            waiting: list[dict[str, Any]] = []
            for number, (row, problem, end) in enumerate(json_rows(file, path), 1):
                if problem is not None and not self.problem:
                    self.problem = f" ({path}, row {number}: {problem})"
                columns.update(dict.fromkeys(row))
                if typed:
                    waiting.append(row)
                if len(waiting) == TYPED_AT_ONCE:
                    self.infer_types(waiting, path)
                    waiting = []
                yield end
            self.infer_types(waiting, path)

        for path in paths:
            with open_file(path) as file:
                yield from _cut(path, ends(path, file), 0, rows)
        self.columns = tuple(columns)


# The column of what a task reads besides texts -> its files' source, and the ends of their names.
MEDIA: dict[str, tuple[type[FileSource], tuple[str, ...]]] = {
    IMAGE: (ImageSource, IMAGES),
    AUDIO: (AudioSource, SUFFIXES),
}
KINDS: dict[str, type[RowSource]] = {
    ".parquet": ParquetSource,
    ".csv": CsvSource,
    ".jsonl": JsonLinesSource,
    ".ndjson": JsonLinesSource,
    ".xlsx": XlsxSource,
}


def open_source(
    names: Sequence[str],
    given: Sequence[str],
    *,
    media: str | None,
    rows: int,
    keep: Sequence[str] | None = None,
    typed: bool = False,
) -> tuple[RowSource, list[InputPart]]:
    """The rows of files, folders, patterns and URIs, in parts of at most `rows`.

    given: the columns that the task reads.  media: IMAGE or AUDIO, if such files are allowed.  keep: the columns to
    write again, by default all.  typed: find their types for pyarrow.  InputError: no such file, kind of file, or
    column.
    """
    suffixes = (*KINDS, *(MEDIA[media][1] if media else ()))
    paths = [one.path for one in find_inputs(names, suffixes)[0]]
    kinds: dict[type[RowSource], str] = {}
    for path in paths:
        kinds.setdefault(_kind(path, suffixes, media), path)
    if len(kinds) > 1:
        (one, a), (other, b), *_ = kinds.items()
        raise InputError(f"{a} is {one.kind} and {b} is {other.kind}: name files of one kind")
    source = next(iter(kinds))(tuple(given))
    parts = [part._replace(number=i) for i, part in enumerate(source.parts(paths, rows, typed))]
    if not parts:
        raise InputError(f"{paths[0]} has no rows" if len(paths) == 1 else f"{len(paths)} files, and none has rows")
    for name in (*given, *(keep or ())):
        if name not in source.columns:
            have = ", ".join(source.columns[:20]) or "none"
            guess = nearest(name, source.columns) or source.problem
            raise InputError(f"{paths[0]} has no column {name!r}, only {have}{guess}")
    source.kept = source.columns if keep is None else tuple(keep)
    return source, parts


def _kind(path: str, suffixes: Sequence[str], media: str | None) -> type[RowSource]:
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in suffixes:
        raise InputError(f"{path}: expected one of {', '.join(suffixes)}{nearest(suffix, suffixes)}")
    return MEDIA[media][0] if media and suffix not in KINDS else KINDS[suffix]


def _cut(path: str, ends: Iterator[int], start: int, rows: int) -> Iterator[InputPart]:
    """Parts of a text file.  ends: the byte where each row ends."""
    first, count, stop = 0, 0, start
    for end in ends:
        if count and (count == rows or end - start > PART_BYTES):
            yield InputPart(0, path, first, count, start, stop)
            first, count, start = first + count, 0, stop
        count, stop = count + 1, end
    if count:
        yield InputPart(0, path, first, count, start, stop)


def file_place(value: Any, path: str, files: RowFiles, media: str) -> Any:
    """The path or URI of a row's image or recording, relative to the file at `path`, or the bytes of its file.

    value: a path, a URI, bytes, or as data sets on the hub have images, {"bytes": ..., "path": ...}.  path: "" for a
    folder of such files, whose paths are the user's own.
    """
    if isinstance(value, dict) and value.keys() <= {"bytes", "path"}:
        value = value.get("bytes") or value.get("path")
    if isinstance(value, str) and value:
        return files.place(value, path) if path else value
    if isinstance(value, bytes):
        return value
    found = "nothing" if value is None else type(value).__name__
    raise InputError(f"{found}, expected the path of {MEDIA[media][0].kind}, or its bytes")
