"""Rows of Parquet, CSV and JSON lines, and folders of pictures, cut into parts that are read one by one.

A part is what is computed, written and gone on with as a whole; its rows never depend on who computes it.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

from ...errors import InputError, nearest
from .files import is_uri, join, open_file
from .inputs import SUFFIXES, find_inputs
from .text_rows import objects, records

KINDS = {".parquet": "Parquet", ".csv": "CSV", ".jsonl": "JSON lines", ".ndjson": "JSON lines"}
IMAGES = tuple(suffix for suffix in SUFFIXES if suffix != ".pdf")
PICTURE = "image"  # the column of a folder of pictures
PART_BYTES = 64 << 20  # of a text file
TYPED_AT_ONCE = 1024  # rows of JSON lines whose types are looked at together


class Part(NamedTuple):
    """Some rows of a source."""

    number: int  # from 0, over all sources
    source: str
    first: int  # the number of its first row in the source, from 0
    rows: int
    start: int = 0  # of text files bytes, of Parquet a row of the group
    stop: int = 0
    group: int = 0
    pictures: tuple[str, ...] = ()


class Rows(NamedTuple):
    """The rows of a part: what is kept of them, and what a task is given."""

    kept: Any  # a list of dictionaries, or of Parquet a pyarrow.Table
    given: list[dict[str, Any]]  # the columns that the task reads
    errors: dict[int, str]  # rows that cannot be read
    digest: str  # of all this


@dataclass
class Source:
    """Files of one kind, whose columns have the same names.  Picklable: who computes a part reads it."""

    kind: str
    given: tuple[str, ...]  # the columns that a task reads
    columns: tuple[str, ...] = ()  # in the order of the first file
    kept: tuple[str, ...] = ()
    headers: dict[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)  # of CSV: names, where rows begin
    schema: Any = None  # pyarrow's, of the columns that are kept, where they were asked for

    def read(self, part: Part) -> Rows:
        """The rows of a part.  InputError: the file is no longer what it was."""
        if self.kind == "pictures":
            rows = [{PICTURE: path} for path in part.pictures]
            return Rows(
                [_only(row, self.kept) for row in rows], rows, {}, _digest(*(p.encode() for p in part.pictures))
            )
        if self.kind == "Parquet":
            return self._of_parquet(part)
        with open_file(part.source) as file:
            file.seek(part.start)
            data = file.read(part.stop - part.start)
        rows, errors, header = [], {}, ()
        if self.kind == "CSV":
            header = self.headers[part.source][0]
            for fields, wrong, _ in records(io.BytesIO(data), part.source):
                if wrong is None and len(fields) != len(header):
                    wrong = f"{len(fields)} fields, expected {len(header)}"
                if wrong is not None:
                    errors[len(rows)] = f"{part.source}, row {part.first + len(rows) + 1}: {wrong}"
                rows.append(dict(zip(header, fields, strict=False)))
        else:
            for row, wrong, _ in objects(io.BytesIO(data), part.source):
                if wrong is not None:
                    errors[len(rows)] = f"{part.source}, row {part.first + len(rows) + 1}: {wrong}"
                rows.append(row)
        if len(rows) != part.rows:
            raise InputError(f"{part.source} has changed: {len(rows)} rows where there were {part.rows}")
        kept = [_only(row, self.kept) for row in rows]
        return Rows(kept, rows, errors, _digest("\n".join(header).encode(), data))

    def _of_parquet(self, part: Part) -> Rows:
        import pyarrow as pa

        table = _group_rows(part, list(dict.fromkeys([*self.kept, *self.given])))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        rows = table.select(list(self.given)).to_pylist()
        return Rows(table.select(list(self.kept)), rows, {}, _digest(memoryview(sink.getvalue())))


def open_source(
    names: Sequence[str],
    given: Sequence[str],
    *,
    pictures: bool,
    rows: int,
    keep: Sequence[str] | None = None,
    typed: bool = False,
) -> tuple[Source, list[Part]]:
    """The rows that files, folders, patterns and URIs name, in parts of at most `rows`.

    given: the columns that a task reads.  pictures: whether folders may be of pictures.  keep: the columns that are
    kept, by default all.  typed: whether pyarrow's types of them are asked for.  InputError: no such file, file of
    another kind, or column.
    """
    suffixes = (*KINDS, *(IMAGES if pictures else ()))
    inputs, _ = find_inputs(names, suffixes)
    paths = [one.path for one in inputs]
    kinds = {_kind(path, suffixes): path for path in reversed(paths)}
    if len(kinds) > 1:
        (one, a), (other, b), *_ = reversed(kinds.items())
        raise InputError(f"{a} is {one} and {b} is {other}: name files of one kind")
    kind = next(iter(kinds))
    if kind == "pictures":
        if tuple(given) != (PICTURE,):
            raise InputError(f"pictures have the column {PICTURE!r} alone, and {given[0]!r} is asked for")
        source, parts = Source(kind, (PICTURE,), (PICTURE,)), _of_pictures(paths, rows)
    else:
        source = Source(kind, tuple(given))
        parts = list(
            {"Parquet": _of_parquet, "CSV": _of_csv, "JSON lines": _of_jsonl}[kind](source, paths, rows, typed)
        )
    if not parts:
        raise InputError(f"{paths[0]} has no rows" if len(paths) == 1 else f"{len(paths)} files, and none has rows")
    for name in given:
        _check_column(source, name, paths)
    for name in keep or ():
        _check_column(source, name, paths)
    source.kept = source.columns if keep is None else tuple(keep)
    if typed:
        source.schema = _schema(source)
    return source, [part._replace(number=i) for i, part in enumerate(parts)]


def _check_column(source: Source, name: str, paths: Sequence[str]) -> None:
    if name not in source.columns:
        have = ", ".join(source.columns[:20]) or "none"
        raise InputError(f"{paths[0]} has no column {name!r}, only {have}{nearest(name, source.columns)}")


def _kind(path: str, suffixes: Sequence[str]) -> str:
    suffix = os.path.splitext(path.partition("?")[0] if is_uri(path) else path)[1].lower()
    if suffix in KINDS:
        return KINDS[suffix]
    if suffix in suffixes:
        return "pictures"
    raise InputError(f"{path}: expected one of {', '.join(suffixes)}{nearest(suffix, suffixes)}")


def _of_pictures(paths: Sequence[str], rows: int) -> list[Part]:
    cuts = range(0, len(paths), rows)
    return [Part(0, paths[i], i, len(paths[i : i + rows]), pictures=tuple(paths[i : i + rows])) for i in cuts]


def _same_columns(source: Source, path: str, names: Sequence[str]) -> None:
    if not source.columns:
        source.columns = tuple(names)
    elif set(names) != set(source.columns):
        other = ", ".join(sorted(set(names) ^ set(source.columns)))
        raise InputError(f"{path} has other columns than the files before it: {other}")


def _of_parquet(source: Source, paths: Sequence[str], rows: int, typed: bool) -> Iterator[Part]:
    for path in paths:
        with open_file(path) as file:
            found = _parquet(file, path)
            import pyarrow as pa

            schema = found.schema_arrow
            _same_columns(source, path, schema.names)
            schema = pa.schema([schema.field(name) for name in source.columns])
            if source.schema is not None and not source.schema.equals(schema):
                raise InputError(f"{path} has columns of other types than the files before it")
            source.schema = schema
            first = 0
            for group in range(found.metadata.num_row_groups):
                count = found.metadata.row_group(group).num_rows
                for start in range(0, count, rows):
                    stop = min(start + rows, count)
                    yield Part(0, path, first + start, stop - start, start, stop, group)
                first += count


def _parquet(file: IO[bytes], path: str) -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(f"{path}: Parquet wants the package pyarrow: pip install pyarrow") from None
    try:
        return parquet.ParquetFile(file, pre_buffer=False)
    except (pyarrow.ArrowException, OSError, ValueError) as e:
        raise InputError(f"{path} is no Parquet file, or damaged: {(str(e).splitlines() or [''])[0]}") from None


_open_group: tuple[tuple[Any, ...], Any, int, Any] | None = (
    None  # what of, batches, row of the next, what is left of one
)


def _group_rows(part: Part, columns: list[str]) -> Any:
    """Rows of a row group, which goes by once where parts are asked for in their order; a pyarrow.Table."""
    global _open_group
    import pyarrow as pa

    key = (part.source, part.group, tuple(columns), os.getpid())
    if _open_group is None or _open_group[0] != key or _open_group[2] > part.start:
        found = _parquet(open_file(part.source), part.source)
        _open_group = key, found.iter_batches(part.rows, row_groups=[part.group], columns=columns), 0, None
    _, batches, at, left = _open_group
    taken, missing = [], part.stop - part.start
    try:
        while missing:
            batch = left if left is not None and len(left) else next(batches)
            skip = min(len(batch), max(0, part.start - at))
            piece = batch.slice(skip, missing)
            if len(piece):
                taken.append(piece)
            at, missing, left = at + skip + len(piece), missing - len(piece), batch.slice(skip + len(piece))
    except (StopIteration, pa.ArrowException, OSError) as e:
        _open_group = None
        raise InputError(f"{part.source}, row group {part.group}, is damaged or has changed: {e}") from None
    _open_group = key, batches, at, left
    return pa.Table.from_batches(taken).select(columns).combine_chunks()


def _of_csv(source: Source, paths: Sequence[str], rows: int, typed: bool) -> Iterator[Part]:
    for path in paths:
        with open_file(path) as file:
            rest = records(file, path)
            names, wrong, end = next(rest, ([], None, 0))
            names = [name.removeprefix("\ufeff") for name in names[:1]] + names[1:]
            if wrong is not None:
                raise InputError(f"{path}: the first line {wrong}")
            if not names:
                continue
            if len(set(names)) < len(names):
                raise InputError(f"{path}: {next(n for n in names if names.count(n) > 1)!r} names two columns")
            _same_columns(source, path, names)
            source.headers[path] = tuple(names), end
            yield from _cut(path, (stop for _, _, stop in rest), end, rows)


def _of_jsonl(source: Source, paths: Sequence[str], rows: int, typed: bool) -> Iterator[Part]:
    names: dict[str, None] = {}

    def ends(path: str, file: IO[bytes]) -> Iterator[int]:
        waiting: list[dict[str, Any]] = []
        for row, _, end in objects(file, path):
            names.update(dict.fromkeys(row))
            if typed:
                waiting.append(row)
                if len(waiting) == TYPED_AT_ONCE:
                    source.schema = _with_types(source.schema, waiting, path)
                    waiting = []
            yield end
        if waiting:
            source.schema = _with_types(source.schema, waiting, path)

    for path in paths:
        with open_file(path) as file:
            yield from _cut(path, ends(path, file), 0, rows)
    source.columns = tuple(names)


def _cut(path: str, ends: Iterator[int], start: int, rows: int) -> Iterator[Part]:
    """Parts of a text file.  ends: where each row does, in bytes."""
    first, count, stop = 0, 0, start
    for end in ends:
        if count and (count == rows or end - start > PART_BYTES):
            yield Part(0, path, first, count, start, stop)
            first, count, start = first + count, 0, stop
        count, stop = count + 1, end
    if count:
        yield Part(0, path, first, count, start, stop)


def _with_types(schema: Any, rows: Sequence[Mapping[str, Any]], path: str) -> Any:
    """A schema that holds these rows as well."""
    import pyarrow as pa

    fields = []
    for name in dict.fromkeys(name for row in rows for name in row):
        try:
            fields.append((name, pa.array([row.get(name) for row in rows]).type))
        except (pa.ArrowException, OverflowError):
            raise InputError(_of_several_types(path, name)) from None
    found = pa.schema(fields)
    if schema is None:
        return found
    try:
        return pa.unify_schemas([schema, found], promote_options="permissive")
    except pa.ArrowException:
        for one in found:
            if one.name in schema.names:
                try:
                    pa.unify_schemas(
                        [pa.schema([schema.field(one.name)]), pa.schema([one])], promote_options="permissive"
                    )
                except pa.ArrowException:
                    raise InputError(_of_several_types(path, one.name)) from None
        raise


def _of_several_types(path: str, name: str) -> str:
    return (
        f"{path}: the column {name!r} holds values of several types, which Parquet does not have: "
        "write JSON lines, or do not keep it"
    )


def _schema(source: Source) -> Any:
    """pyarrow's types of the columns that are kept."""
    import pyarrow as pa

    if source.schema is None:
        return pa.schema([(name, pa.string()) for name in source.kept])
    fields = [source.schema.field(name) for name in source.kept]
    return pa.schema([pa.field(f.name, pa.string()) if pa.types.is_null(f.type) else f for f in fields])


def _only(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: row.get(name) for name in names}


def _digest(*data: bytes | memoryview) -> str:
    found = hashlib.sha256()
    for one in data:
        found.update(len(one).to_bytes(8, "big"))
        found.update(one)
    return found.hexdigest()


def image_place(value: Any, source: str) -> Any:
    """Where the image of a row is, or the bytes of its file; paths are relative to the file that names them.

    value: a path, a URI, bytes, or as the hub's data sets have images, {"bytes": ..., "path": ...}.
    """
    if isinstance(value, dict) and value.keys() <= {"bytes", "path"}:
        value = value.get("bytes") or value.get("path")
    if isinstance(value, str) and value:
        folder = source.rpartition("/")[0] if is_uri(source) else os.path.dirname(source)
        return join(folder, value) if folder else value
    if isinstance(value, bytes):
        return value
    raise InputError(
        f"{'nothing' if value is None else type(value).__name__}, expected the path of an image, or its bytes"
    )
