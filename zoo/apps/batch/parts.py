"""Results as files: a part each, which is what a job that was stopped goes on from; in the end one file, if it is one
that was asked for.

A part is named by its number, by what it was made of (rows and options) and by how many of its rows have an error:
part-00002-0f3a9c...-1.parquet.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import InputError, UnsupportedError, ZooError, nearest
from .files import BLOCK, Folder, is_uri, open_file, writing
from .results import arrow, plain

FORMATS = ("parquet", "jsonl", "csv")
LOST = "lost"  # in place of what a part was made of: it is done again
_NAME = re.compile(r"part-(\d{5,})-([0-9a-f]{32}|lost)-(\d+)\.(\w+)")


@dataclass(frozen=True)
class Parts:
    """Where the parts of a job go, and what their rows look like.  Picklable."""

    folder: str
    format: str
    columns: Mapping[str, Any]  # of results, with the types of `results`
    kept: tuple[str, ...] = ()  # columns of the input
    schema: Any = None  # pyarrow's, of these

    def name(self, number: int, digest: str, errors: int) -> str:
        return f"part-{number:05}-{digest[:32]}-{errors}.{self.format}"

    def write(self, name: str, kept: Any, found: Sequence[Mapping[str, Any]]) -> None:
        """kept: as `sources.Rows` has it.  found: a row of `columns` for each."""
        if self.format == "parquet":
            data = self._parquet(kept, found)
        else:
            rows = [dict(row) for row in (kept if isinstance(kept, list) else kept.to_pylist())]
            rows = [row | {key: one.get(key) for key in self.columns} for row, one in zip(rows, found, strict=True)]
            data = (self._jsonl(rows) if self.format == "jsonl" else self._csv(rows)).encode()
        Folder(self.folder).write(name, data)

    def found(self) -> dict[tuple[int, str], str]:
        """The parts that are there: (number, what it was made of) -> name."""
        named = ((name, _NAME.fullmatch(name)) for name in Folder(self.folder).list())
        return {(int(m[1]), m[2]): name for name, m in named if m is not None and m[4] == self.format}

    def key(self) -> str:
        """Of how rows are written."""
        return repr((self.format, dict(self.columns), self.kept, str(self.schema)))

    def errors(self, name: str) -> int:
        """How many rows of a part have one."""
        return int(name.rpartition(".")[0].rpartition("-")[2])

    def keep_only(self, names: Sequence[str]) -> None:
        """Remove parts that are not of this job."""
        wanted = set(names)
        Folder(self.folder).remove([name for name in self.found().values() if name not in wanted])

    def merge(self, names: Sequence[str], output: str) -> None:
        """One file of the parts, in this order, which are then gone."""
        folder = Folder(self.folder)
        paths = [folder.path(name) for name in names]
        try:
            with writing(output) as file:
                if self.format == "parquet":
                    self._merge_parquet(paths, file)
                else:
                    header = self._header() if self.format == "csv" else b""
                    file.write(header)
                    for path in paths:
                        with open_file(path) as part:
                            part.read(len(header))
                            while block := part.read(BLOCK):
                                file.write(block)
        except OSError as e:
            raise ZooError(f"cannot write to {output}: {e.strerror or e}") from None
        folder.remove(names)
        folder.remove_empty()

    def _schema(self) -> Any:
        import pyarrow as pa

        own = [pa.field(name, arrow(kind)) for name, kind in self.columns.items()]
        return pa.schema([*(self.schema or ()), *own])

    def _parquet(self, kept: Any, found: Sequence[Mapping[str, Any]]) -> bytes:
        import pyarrow as pa
        from pyarrow import parquet

        schema = self._schema()
        if isinstance(kept, list):
            arrays = [pa.array([row.get(field.name) for row in kept], field.type) for field in self.schema or ()]
        else:
            arrays = [kept.column(field.name).cast(field.type) for field in self.schema]
        arrays += [pa.array([row.get(name) for row in found], schema.field(name).type) for name in self.columns]
        sink = pa.BufferOutputStream()
        parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), sink)
        return sink.getvalue().to_pybytes()

    def _merge_parquet(self, paths: Iterable[str], file: Any) -> None:
        from pyarrow import parquet

        with parquet.ParquetWriter(file, self._schema()) as writer:
            for path in paths:
                with open_file(path) as part:
                    found = parquet.ParquetFile(part)
                    for group in range(found.metadata.num_row_groups):
                        writer.write_table(found.read_row_group(group))

    def _jsonl(self, rows: Sequence[dict[str, Any]]) -> str:
        return "".join(self._line(row) + "\n" for row in rows)

    def _line(self, row: dict[str, Any]) -> str:
        try:
            return json.dumps(plain(row), ensure_ascii=False, allow_nan=False, default=str)
        except ValueError:  # which JSON does not have
            none = row | dict.fromkeys(self.columns)
            none["error"] = "the result or the row holds numbers that are not finite"
            return json.dumps(json.loads(json.dumps(plain(none), default=str), parse_constant=lambda _: None))

    def _header(self) -> bytes:
        return self._csv_text([[*self.kept, *self.columns]]).encode()

    def _csv(self, rows: Sequence[dict[str, Any]]) -> str:
        cells = [[_cell(row.get(name)) for name in (*self.kept, *self.columns)] for row in rows]
        return self._header().decode() + self._csv_text(cells)

    def _csv_text(self, rows: Sequence[Sequence[str]]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue()


def _cell(value: Any) -> str:
    """A text; lists and dictionaries as JSON."""
    value = plain(value)
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else str(value)


def output_of(output: str, format: str | None) -> tuple[str, str, bool]:
    """The folder of parts for an output, their format, and whether they are to become one file.

    output: a path or a URI; with a suffix of FORMATS a file, without one a folder, whose parts have `format`.
    """
    path = output.rstrip("/") if is_uri(output) else output
    suffix = os.path.splitext(path)[1].lower().removeprefix(".")
    one_file = bool(suffix) and not (output.endswith("/") or (not is_uri(output) and os.path.isdir(output)))
    if one_file and suffix not in FORMATS:
        among = ", ".join(f".{name}" for name in FORMATS)
        raise UnsupportedError(f"{output}: expected {among} or a folder{nearest(suffix, FORMATS)}")
    if one_file and format not in (None, suffix):
        raise InputError(f"format {format!r} is for a folder, and {output} is a file")
    if not one_file and format not in (None, *FORMATS):
        raise UnsupportedError(f"format {format!r} is not one of {', '.join(FORMATS)}{nearest(str(format), FORMATS)}")
    return (f"{path}.parts", suffix, True) if one_file else (path, format or FORMATS[0], False)
