"""The rows of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

from ...errors import InputError
from ...optional import import_optional
from .files import first_line, open_file
from .row_source import InputPart, PartRows, RowSource, digest


class ParquetSource(RowSource):
    """Parts are ranges of rows within a row group, which is read once if its parts are asked for in order."""

    kind = "Parquet"
    _group: tuple[Any, _RowGroup] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_group"}

    def parts(self, paths: Sequence[str], rows: int, typed: bool) -> Iterator[InputPart]:
        for path in paths:
            with open_file(path) as file:
                found = _parquet(file, path)
                self._set_columns(path, found.schema_arrow.names)
                fields = {name: found.schema_arrow.field(name) for name in self.columns}
                if fields != (self.fields or fields):
                    raise InputError(f"{path} has columns of other types than the files before it")
                self.fields = fields
                first = 0
                for group in range(found.metadata.num_row_groups):
                    count = found.metadata.row_group(group).num_rows
                    for start in range(0, count, rows):
                        stop = min(start + rows, count)
                        yield InputPart(0, path, first + start, stop - start, start, stop, group)
                    first += count

    def read(self, part: InputPart) -> PartRows:
        import pyarrow as pa

        place = part.path, part.group
        if self._group is None or self._group[0] != place or self._group[1].first > part.start:
            columns = list(dict.fromkeys([*self.kept, *self.given]))
            self._group = place, _RowGroup(part.path, part.group, columns, part.rows)
        try:
            table = self._group[1].rows(part.start, part.stop)
        except (StopIteration, pa.ArrowException, OSError) as e:
            self._group = None
            raise InputError(f"{part.path}, row group {part.group}, is damaged or has changed: {e}") from None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        table, problems = _without_damaged_texts(table)
        rows = table.select(list(self.given)).to_pylist()
        return PartRows(table.select(list(self.kept)), rows, problems, digest(memoryview(sink.getvalue())))


def _without_damaged_texts(table: Any) -> tuple[Any, dict[int, str]]:
    """A pyarrow.Table with nulls for texts that are not UTF-8, and the rows that had them."""
    import pyarrow as pa

    problems = {}
    for at, name in enumerate(table.column_names):
        column, bad = table.column(name), []
        try:
            column.to_pylist()
        except UnicodeDecodeError:
            for i, value in enumerate(column):
                try:
                    value.as_py()
                except UnicodeDecodeError:
                    bad.append(i)
            problems |= dict.fromkeys(bad, f"the column {name!r} is not UTF-8")
            kept = pa.array([None if i in bad else i for i in range(len(column))], pa.int64())
            table = table.set_column(at, table.schema.field(at), column.take(kept))
    return table, problems


class _RowGroup:
    """A row group of Parquet that is read once, from its first row to its last."""

    def __init__(self, path: str, group: int, columns: list[str], rows: int):
        import pyarrow as pa

        found = _parquet(open_file(path), path)
        self.columns, self.first = columns, 0  # the number of the first row in `table`
        self.table = pa.schema([found.schema_arrow.field(name) for name in columns]).empty_table()
        self._batches = found.iter_batches(rows, row_groups=[group], columns=columns)

    def rows(self, start: int, stop: int) -> Any:
        """A pyarrow.Table; `start` is not before the last one's."""
        import pyarrow as pa

        while True:
            skipped = min(start - self.first, len(self.table))
            self.first, self.table = self.first + skipped, self.table.slice(skipped)
            if self.first + len(self.table) >= stop:
                return self.table.slice(0, stop - start).combine_chunks()
            batch = pa.Table.from_batches([next(self._batches)]).select(self.columns)
            self.table = pa.concat_tables([self.table, batch])


def _parquet(file: IO[bytes], path: str) -> Any:
    pa = import_optional("pyarrow", f"{path}: Parquet")
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(file, pre_buffer=False)
    except (pa.ArrowException, OSError, ValueError) as e:
        raise InputError(f"{path} is not a Parquet file, or is damaged: {first_line(e)}") from None
