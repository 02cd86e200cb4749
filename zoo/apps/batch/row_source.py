"""A source of rows, in parts that are computed and written as wholes; `sources` has one for each kind of file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from ...errors import InputError


class InputPart(NamedTuple):
    """A range of a file's rows, or some images; it is computed, written and resumed as a whole."""

    number: int  # counted from 0, over all files
    path: str  # "" for images and recordings
    first: int  # the number of the first row in the file, from 0
    rows: int
    start: int = 0  # the first byte of a text file's, the first row of a Parquet group's
    stop: int = 0
    group: int = 0
    files: tuple[str, ...] = ()  # the images or recordings

    def name(self, index: int) -> str:
        """The name of a row in errors: rows are counted from 1, without a header."""
        return self.files[index] if self.files else f"{self.path}, row {self.first + index + 1}"


class PartRows(NamedTuple):
    kept: Any  # the columns to write again: a list of dictionaries, or a pyarrow.Table
    given: list[dict[str, Any]]  # the columns that the task reads
    problems: dict[int, str]  # row -> the reason why it cannot be read
    digest: str  # sha256 of the fields above


@dataclass
class RowSource:
    """Files of one kind whose columns have the same names.  Picklable: the process that computes a part reads it."""

    kind: ClassVar[str]  # in errors
    given: tuple[str, ...]  # the columns that the task reads
    columns: tuple[str, ...] = ()  # in the order of the first file
    kept: tuple[str, ...] = ()  # the columns to write again
    fields: dict[str, Any] = field(default_factory=dict)  # pyarrow's, by column, where they are not texts; or an error
    problem: str = ""  # the first row that cannot be read, if that is known beforehand

    def parts(self, paths: Sequence[str], rows: int, typed: bool) -> Iterator[InputPart]:
        """Parts of at most `rows` rows.  Sets `columns`, and `fields` if `typed`."""
        raise NotImplementedError

    def read(self, part: InputPart) -> PartRows:
        """The rows of a part.  InputError: the file has changed."""
        raise NotImplementedError

    def schema(self) -> Any:
        """pyarrow's schema of the columns to write again.  InputError: one has values of several types."""
        import pyarrow as pa

        fields = [self.fields.get(name, pa.field(name, pa.string())) for name in self.kept]
        for one in fields:
            if isinstance(one, InputError):
                raise one
        return pa.schema(fields)

    def _set_columns(self, path: str, names: Sequence[str]) -> None:
        if not self.columns:
            self.columns = tuple(names)
        elif set(names) != set(self.columns):
            other = ", ".join(sorted(set(names) ^ set(self.columns)))
            raise InputError(f"{path} has other columns than the files before it: {other}")

    def infer_types(self, rows: Sequence[Mapping[str, Any]], path: str) -> None:
        """Widen the types in `fields` so that they hold these rows too."""
        for name in dict.fromkeys(name for row in rows for name in row):
            import pyarrow as pa

            known = self.fields.get(name)
            try:
                found = pa.array([row.get(name) for row in rows]).type
                if pa.types.is_null(found) or isinstance(known, InputError):
                    continue
                both = [pa.schema([one]) for one in (known, pa.field(name, found)) if one is not None]
                self.fields[name] = pa.unify_schemas(both, promote_options="permissive").field(name)
            except (pa.ArrowException, OverflowError):
                self.fields[name] = InputError(
                    f"{path}: the column {name!r} holds values of several types, which Parquet does not have: "
                    "write JSON lines, or do not keep it"
                )

    def _keep_columns(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{name: row.get(name) for name in self.kept} for row in rows]


def digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
