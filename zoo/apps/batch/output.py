"""The output of a job: a file for each part, and in the end one file, if the output names one.

The name of a part is its record, part-NUMBER-MADE_OF-SHA256-ROWS-ERRORS: hashes of what it was made of and of its
bytes, and two counts.  A part is done if a file with the right MADE_OF has the bytes that its name says.  There are no
other files in a folder of parts: some readers of Parquet refuse them.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError, NotFoundError, UnsupportedError, ZooError, nearest
from ...files.atomic_write import one_writer
from ...files.utf8 import to_utf8, without_surrogates
from .files import filesystem, is_uri, join, list_files, open_file, remove_files, remove_if_empty, scheme_of, writing
from .formulas import escape_formulas
from .results import arrow_type, to_plain

FORMATS = ("parquet", "jsonl", "csv")
RETRY = "retry"  # in place of MADE_OF: the part is to be computed again
_PART_NAME = re.compile(rf"part-(\d{{5,}})-([0-9a-f]{{32}}|{RETRY})-([0-9a-f]{{32}})-(\d+)-(\d+)\.(\w+)")
_REST_NAME = re.compile(r"part-\d{5,}-\w+-\d+\.(\w+)|\.part-.*\.part")  # older zoo's, and what a kill left


class PartFile(NamedTuple):
    name: str
    number: int
    made_of: str  # hash of the input and the options
    sha256: str  # its first half
    rows: int
    errors: int  # rows with a text in the column `error`


@dataclass(frozen=True)
class JobOutput:
    """The file or folder that a job writes, and the columns of its rows.  Picklable."""

    target: str  # the file or folder that the user named
    folder: str  # the folder of the parts
    format: str
    one_file: bool
    columns: Mapping[str, Any] = field(default_factory=dict)  # the results' columns, with the types of `results`
    kept: tuple[str, ...] = ()  # columns of the input that are written too, before these
    schema: Any = None  # pyarrow's, of the kept columns
    raw: bool = False  # texts of CSV as they are, formulas too

    def key(self) -> str:
        """The options of writing that decide the bytes of a part."""
        return repr((self.format, dict(self.columns), self.kept, str(self.schema), self.raw))

    @contextlib.contextmanager
    def lock_output(self) -> Iterator[None]:
        """A context in which no other job writes the same output; for files of this machine only.  ZooError."""
        if scheme_of(self.target) != "file":
            yield
            return
        path = Path(filesystem(self.target)[1] if is_uri(self.target) else os.path.abspath(self.target))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise ZooError(f"cannot write to {self.target}: {e.strerror or e}") from None
        with one_writer(path, 0):
            for left in path.parent.glob(".*.part"):  # by a job that was killed
                if re.fullmatch(rf"\.{re.escape(path.name)}\.\d+-\d+\.part", left.name):
                    left.unlink(missing_ok=True)
            yield

    def part_files(self) -> list[PartFile]:
        """The parts in this format that are there."""
        matches = [match for name in list_files(self.folder) if (match := _PART_NAME.fullmatch(name))]
        return [PartFile(m[0], int(m[1]), m[2], m[3], int(m[4]), int(m[5])) for m in matches if m[6] == self.format]

    def write(self, number: int, made_of: str, kept: Any, rows: Sequence[Mapping[str, Any]]) -> PartFile:
        """Write a part.

        rows: of `columns`.  kept: the kept columns beside them, a list of dictionaries or a pyarrow.Table, or None.
        """
        if self.format == "parquet":
            data = self._parquet(kept, rows)
        else:
            inputs = [{}] * len(rows) if kept is None else kept if isinstance(kept, list) else kept.to_pylist()
            rows = [a | {name: b.get(name) for name in self.columns} for a, b in zip(inputs, rows, strict=True)]
            rows = [self._finite(row) for row in rows] if self.format == "jsonl" else rows
            data = self._csv(rows) if self.format == "csv" else to_utf8("".join(_json(row) + "\n" for row in rows))
        errors = sum(row.get("error") is not None for row in rows)
        sha256 = _sha256(data)
        name = f"part-{number:05}-{made_of}-{sha256}-{len(rows)}-{errors}.{self.format}"
        with writing(join(self.folder, name)) as file:
            file.write(data)
        return PartFile(name, number, made_of, sha256, len(rows), errors)

    def is_whole(self, part: PartFile) -> bool:
        """Return True if the file of a part exists and has the bytes that were written."""
        try:
            return _sha256(self._read(part)) == part.sha256
        except NotFoundError:
            return False

    def finish(self, parts: Sequence[PartFile]) -> None:
        """Remove parts of other jobs; then, for one file, make it of these parts in this order, and remove them."""
        names = {part.name for part in parts}
        others = {part.name for part in self.part_files()} - names
        rest = ((name, _REST_NAME.fullmatch(name)) for name in list_files(self.folder))
        others |= {name for name, match in rest if match is not None and match[1] in (None, self.format)}
        remove_files(self.folder, sorted(others))
        if gone := sorted(names - set(list_files(self.folder))):
            raise ZooError(f"{join(self.folder, gone[0])} was removed while the job ran: resume it with --resume")
        if self.one_file:
            with writing(self.target) as file:
                contents = map(self._read_checked, parts)
                self._merge_parquet(contents, file) if self.format == "parquet" else self._merge_texts(contents, file)
            remove_files(self.folder, sorted(names))
            remove_if_empty(self.folder)

    def _read(self, part: PartFile) -> bytes:
        with open_file(join(self.folder, part.name)) as file:
            return file.read()

    def _read_checked(self, part: PartFile) -> bytes:
        data = self._read(part)
        if _sha256(data) != part.sha256:
            raise ZooError(f"{join(self.folder, part.name)} has changed since it was written: use --resume")
        return data

    def _merge_texts(self, parts: Iterable[bytes], file: Any) -> None:
        header = self._csv([]) if self.format == "csv" else b""
        file.write(header)
        for data in parts:
            file.write(memoryview(data)[len(header) :])

    def _merge_parquet(self, parts: Iterable[bytes], file: Any) -> None:
        from pyarrow import BufferReader, parquet

        with parquet.ParquetWriter(file, self._schema()) as writer:
            for data in parts:
                found = parquet.ParquetFile(BufferReader(data))
                for group in range(found.metadata.num_row_groups):
                    writer.write_table(found.read_row_group(group))

    def _schema(self) -> Any:
        import pyarrow as pa

        return pa.schema([*(self.schema or ()), *((name, arrow_type(kind)) for name, kind in self.columns.items())])

    def _parquet(self, kept: Any, rows: Sequence[Mapping[str, Any]]) -> bytes:
        import pyarrow as pa
        from pyarrow import parquet

        schema = self._schema()
        if isinstance(kept, list):
            kept = [{name: without_surrogates(value) for name, value in row.items()} for row in kept]
            kept = pa.Table.from_pylist(kept, self.schema)
        arrays = [kept.column(name).cast(schema.field(name).type) for name in self.kept]
        arrays += [
            pa.array([without_surrogates(row.get(name)) for row in rows], schema.field(name).type)
            for name in self.columns
        ]
        sink = pa.BufferOutputStream()
        parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), sink)
        return sink.getvalue().to_pybytes()

    def _finite(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row; if it holds numbers that JSON does not have, without them, and with an error."""
        if all(map(_is_finite, row.values())):
            return row
        row = row | dict.fromkeys(self.columns)
        row["error"] = "the result or the row holds numbers that are not finite"
        return {name: value if _is_finite(value) else None for name, value in row.items()}

    def _csv(self, rows: Sequence[Mapping[str, Any]]) -> bytes:
        text, names = io.StringIO(), [*self.kept, *self.columns]
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([self._cell(name) for name in names])
        writer.writerows([self._cell(row.get(name)) for name in names] for row in rows)
        return to_utf8(text.getvalue())

    def _cell(self, value: Any) -> str:
        """A text for CSV; lists and dictionaries as JSON."""
        value = to_plain(value)
        if value is None:
            return ""
        text = _json(value) if isinstance(value, list | dict) else str(value)
        return text if self.raw or isinstance(value, int | float) else escape_formulas(text)


def output_of(target: str, format: str | None) -> JobOutput:
    """The output at a path or URI: one file if it has a suffix of FORMATS, else a folder with parts in `format`."""
    path = target.rstrip("/") if is_uri(target) else target
    suffix = os.path.splitext(path)[1].lower().removeprefix(".")
    one_file = bool(suffix) and not (target.endswith("/") or (not is_uri(target) and os.path.isdir(target)))
    if one_file and suffix not in FORMATS:
        among = ", ".join(f".{name}" for name in FORMATS)
        raise UnsupportedError(f"{target}: expected {among} or a folder{nearest(suffix, FORMATS)}")
    if one_file and format not in (None, suffix):
        raise InputError(f"format {format!r} is for a folder, and {target} is a file")
    if not one_file and format not in (None, *FORMATS):
        raise UnsupportedError(f"format {format!r} is not one of {', '.join(FORMATS)}{nearest(str(format), FORMATS)}")
    if one_file and not is_uri(path) and os.path.islink(f"{path}.parts"):
        raise InputError(f"{path}.parts is a link, where the parts of {target} are to be: remove it")
    if one_file:
        return JobOutput(target, f"{path}.parts", suffix, True)
    return JobOutput(path, path, format or FORMATS[0], False)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _json(value: Any) -> str:
    return json.dumps(to_plain(value), ensure_ascii=False, default=str)


def _is_finite(value: Any) -> bool:
    """Return True if a value, with its lists and dictionaries, has no infinity and no NaN."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    if isinstance(value, np.ndarray):
        return bool(np.isfinite(value).all())
    return not isinstance(value, float) or math.isfinite(value)
