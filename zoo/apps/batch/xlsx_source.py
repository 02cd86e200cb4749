"""The rows of XLSX workbooks: those of the first sheet, below a row with the names of the columns."""

from __future__ import annotations

import datetime
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any

from ...errors import InputError, list_names, quantity
from ...optional import import_optional
from ...warning import warn
from .files import first_line, open_file
from .row_source import InputPart, PartRows, RowSource, digest

MAX_BYTES = 1 << 30  # in all files of a workbook, decompressed
MAX_TEXTS = 1 << 28  # bytes of the one with the texts of cells, which are held in memory
MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384  # a sheet of Excel has no more
TYPED_AT_ONCE = 1024  # rows whose types are inferred together
OLE = b"\xd0\xcf\x11\xe0"  # how encrypted workbooks and old .xls files begin


Row = tuple[dict[str, Any], str | None]  # with its problem, if it has one


class XlsxSource(RowSource):
    """Parts are ranges of rows; a sheet is read once if its parts are asked for in order."""

    kind = "XLSX"
    _open: tuple[str, int, Iterator[Row]] | None = None  # path, number of the next row, rows

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_open"}

    def parts(self, paths: Sequence[str], rows: int, typed: bool) -> Iterator[InputPart]:
        for path in paths:
            found, first = sheet_rows(path), 0
            names, _ = next(found, ({}, None))
            if not names:
                continue
            self._set_columns(path, list(names))
            while block := [row for row, _ in islice(found, rows)]:
                for at in range(0, len(block) if typed else 0, TYPED_AT_ONCE):
                    self.infer_types(block[at : at + TYPED_AT_ONCE], path)
                yield InputPart(0, path, first, len(block))
                first += len(block)

    def read(self, part: InputPart) -> PartRows:
        if self._open is None or self._open[0] != part.path or self._open[1] > part.first:
            found = sheet_rows(part.path)
            next(found, None)
            self._open = part.path, 0, found
        _, number, found = self._open
        rows = list(islice(found, part.first - number, part.first - number + part.rows))
        self._open = part.path, part.first + len(rows), found
        if len(rows) != part.rows:
            raise InputError(f"{part.path} has changed: {quantity(len(rows), 'row')} where there were {part.rows}")
        given = [{name: _as_text(row.get(name)) for name in self.given} for row, _ in rows]
        kept = self._keep_columns([row for row, _ in rows])
        problems = {i: problem for i, (_, problem) in enumerate(rows) if problem is not None}
        return PartRows(kept, given, problems, digest(repr(rows).encode(errors="surrogatepass")))


def sheet_rows(path: str) -> Iterator[Row]:
    """The names of the columns, each with None, and then each row that is not empty, of a workbook's first sheet.

    Values are texts, numbers and bools; dates are texts in ISO 8601, formulas the values that the file keeps of them.
    InputError: no workbook, a damaged one, columns without a name or with the same one.
    """
    openpyxl = import_optional("openpyxl", f"{path}: XLSX", "tables")
    with open_file(path) as file:
        try:
            _check_archive(file, path)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", module="openpyxl")  # of styles and extensions, which rows do not have
                sheets = openpyxl.load_workbook(file, read_only=True, data_only=True).worksheets
            if not sheets:
                raise InputError(f"{path} has no sheet with cells")
            sheet = sheets[0]
            sheet.reset_dimensions()  # what the file says of them may be wrong, and would cut it
            yield from _named_rows(sheet.iter_rows(values_only=True), f"{path}, sheet {sheet.title!r}")
        except (InputError, MemoryError):
            raise
        except Exception as e:  # openpyxl has no error of its own: KeyError, OSError, ParseError and others
            raise InputError(f"{path} is not an XLSX workbook, or is damaged: {first_line(e)}") from None
    if others := [one.title for one in sheets[1:]]:
        warn(f"{path}: the sheet {sheet.title!r} is read, and others are not: {list_names(others)}")


def _check_archive(file: IO[bytes], path: str) -> None:
    """InputError for an archive that is not a workbook's, or too large."""
    begin = file.read(len(OLE))
    file.seek(0)
    if begin == OLE:
        raise InputError(f"{path}: an encrypted workbook, or an old one (.xls): save it as .xlsx without a password")
    sizes = {one.filename: one.file_size for one in zipfile.ZipFile(file).infolist()}
    for what, size, most in (
        ("bytes", sum(sizes.values()), MAX_BYTES),
        ("bytes of texts", sizes.get("xl/sharedStrings.xml", 0), MAX_TEXTS),
    ):
        if size > most:
            raise InputError(f"{path} has {size:,} {what} when it is decompressed, expected {most:,} at most")
    file.seek(0)


def _named_rows(rows: Iterator[Sequence[Any]], place: str) -> Iterator[Row]:
    names: list[str] = []
    for number, row in enumerate(rows, 1):
        if number > MAX_ROWS or len(row) > MAX_COLUMNS:
            raise InputError(f"{place}: row {number} is beyond {MAX_ROWS:,} rows or {MAX_COLUMNS:,} columns")
        values = [_plain_value(value) for value in row]
        while values and values[-1] is None:
            values.pop()
        if not values:
            continue
        if names:
            beyond = [f"column {i}" for i, value in enumerate(values, 1) if i > len(names) and value is not None]
            problem = f"a value in {list_names(beyond)}, which has no name" if beyond else None
            yield dict(zip(names, [*values, *[None] * len(names)], strict=False)), problem
            continue
        names = [str(_as_text(value) or "") for value in values]
        if "" in names:
            raise InputError(f"{place}: column {names.index('') + 1} has no name in row {number}, which names columns")
        if len(set(names)) < len(names):
            raise InputError(f"{place}: {next(n for n in names if names.count(n) > 1)!r} names two columns")
        yield dict.fromkeys(names), None


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, datetime.timedelta) else value


def _as_text(value: Any) -> Any:
    """A cell as a text, as a CSV file of the sheet has it; None for an empty one."""
    return str(value).upper() if isinstance(value, bool) else None if value is None else str(value)
