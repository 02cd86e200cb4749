"""Tables as an XLSX workbook, a sheet for each, with merged cells."""

from __future__ import annotations

import bisect
import datetime
import os
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, TableError, quantity
from ...optional import import_optional
from .export import write
from .grid import Cell, Grid
from .values import Number, Value, number_format, table_values

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

# https://support.microsoft.com/office/1672b34d-7043-467e-8e27-269d656771c3
MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384
MAX_TEXT = 32_767  # UTF-16 units in a cell
MAX_NAME = 31  # UTF-16 units in the name of a sheet

# ECMA-376 part 1, 22.9.2.19: _xHHHH_ encodes a character that XML or its readers would not keep, and an underscore that
# would begin such a code by chance.
MUST_ESCAPE = re.compile("[\\x00-\\x08\\x0b-\\x1f\\ufffe\\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
MIN_WIDTH, MAX_WIDTH = 6, 60  # characters of a column: a longer text goes on beyond it
DAY_ZERO = datetime.date(1899, 12, 30)  # what spreadsheets count days from
FIRST_DATE = datetime.date(1900, 3, 1)  # before it, spreadsheets count 29 February 1900, which never was


def save_xlsx(
    tables: Sequence[Grid],
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    *,
    types: bool = True,
    cut: bool = False,
) -> None:
    """Write tables to a workbook, each to a sheet of its own; a spanning cell becomes a merged one.

    The header is bold and stays in view, and a column is as wide as its texts.
    names: of the sheets; by default Table 1, Table 2 and so on.
    types: texts that are sure to be numbers, percentages or dates (see `zoo.apps.tables.values`) become values, shown
    with the same decimals, signs and currencies; with False every cell is a text as it was read.  A text that begins
    with = is never a formula.
    cut: shorten texts beyond the 32,767 characters of a cell, which are refused otherwise.

    TableError, before anything is written, if a workbook cannot hold the tables, or cannot be written.
    """
    openpyxl = import_optional("openpyxl", "XLSX", "tables")
    if Path(path).suffix.lower() != ".xlsx":
        raise TableError(f"cannot write to {Path(path)}: a workbook's name ends in .xlsx")
    if not tables:
        raise TableError("no tables: a workbook has at least one sheet")
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, table in zip(_sheet_names(len(tables), names), tables, strict=True):
        _fill(book.create_sheet(name), table, types, cut)
    write(path, book.save)


def _sheet_names(count: int, names: Sequence[str] | None) -> list[str]:
    """Names of sheets that Excel permits; it reports a workbook with others as damaged."""
    if names is None:
        return [f"Table {i + 1}" for i in range(count)]
    if isinstance(names, str) or len(names) != count:
        raise InputError(f"names is {names!r}, expected {quantity(count, 'text')}, one for each table")
    seen: dict[str, str] = {}
    for name in names:
        if not 1 <= _units(name) <= MAX_NAME:
            raise TableError(f"the sheet name {name!r} has {_units(name)} characters, expected 1 ... {MAX_NAME}")
        if found := re.search(r"[\[\]:*?/\\\x00-\x1f\ufffe\uffff]", name):
            raise TableError(f"the sheet name {name!r} has {found[0]!r}, which names of sheets must not")
        if name[0] == "'" or name[-1] == "'":
            raise TableError(f"the sheet name {name!r} begins or ends with an apostrophe")
        if name.casefold() == "history":
            raise TableError(f"the sheet name {name!r} is reserved by Excel")
        if (other := seen.setdefault(name.casefold(), name)) is not name or names.count(name) > 1:
            raise TableError(f"the sheet names {other!r} and {name!r} are the same to Excel")
    return list(names)


def _fill(sheet: Worksheet, table: Grid, types: bool, cut: bool) -> None:
    from openpyxl.utils import get_column_letter

    rows, columns = table.shape
    if rows > MAX_ROWS or columns > MAX_COLUMNS:
        raise TableError(f"the table has {rows:,} x {columns:,} positions, a sheet {MAX_ROWS:,} x {MAX_COLUMNS:,}")
    values = table_values(table) if types else [[None] * columns] * rows
    widths = [MIN_WIDTH] * columns
    for cell in table.cells:
        if cell.text:
            _write(sheet.cell(cell.row + 1, cell.column + 1), cell, values[cell.row][cell.column], cut)
            if cell.column_span == 1:
                widths[cell.column] = max(widths[cell.column], *map(_width, cell.text.split("\n")))
    for column, width in enumerate(widths, 1):
        sheet.column_dimensions[get_column_letter(column)].width = min(width, MAX_WIDTH) + 2
    if 0 < table.header_rows < rows:
        sheet.freeze_panes = f"A{table.header_rows + 1}"
    for cell in table.cells:
        if cell.row_span > 1 or cell.column_span > 1:
            last_row, last_column = cell.row + cell.row_span, cell.column + cell.column_span
            sheet.merge_cells(None, cell.row + 1, cell.column + 1, last_row, last_column)


def _write(target: Any, cell: Cell, value: Value | None, cut: bool) -> None:
    from openpyxl.styles import Alignment, Font

    if cell.is_header:
        target.font = Font(bold=True)
    if isinstance(value, Number):
        target.value, target.number_format = value.value, number_format(value, cell.text)
        return
    if value is not None and value >= FIRST_DATE:
        target.value, target.number_format = value, "yyyy-mm-dd"
        return
    text = _escape(cell.text)
    if _units(text) > MAX_TEXT:
        if not cut:
            where = f"the cell at row {cell.row}, column {cell.column}"
            found = f"{where} has a text of {_units(text):,} characters"
            raise TableError(f"{found}, at most {MAX_TEXT:,} fit; cut=True shortens it")
        text = _escape(_shorten(cell.text))
    target.value = text
    target.data_type = "s"  # a text, even if it looks like a formula or an error such as #N/A
    if "\n" in text:  # shown as a line end only with wrap_text
        target.alignment = Alignment(wrap_text=True)


def _escape(text: str) -> str:
    text = MUST_ESCAPE.sub(lambda found: f"_x{ord(found[0]):04X}_", text)
    if text and not text.strip():  # openpyxl does not mark the white space of such a text as significant
        return f"_x{ord(text[0]):04X}_" + text[1:]
    return text


def _shorten(text: str) -> str:
    """The longest beginning of a text that fits in a cell."""
    lengths = range(min(len(text), MAX_TEXT) + 1)
    return text[: bisect.bisect_right(lengths, MAX_TEXT, key=lambda n: _units(_escape(text[:n]))) - 1]


def _width(text: str) -> int:
    """The characters of a column that a line takes; Chinese, Japanese and Korean ones take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
