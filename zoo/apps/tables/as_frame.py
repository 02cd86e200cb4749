"""A table as a DataFrame of pandas or polars: the body's rows, columns named by the header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...optional import import_optional
from .as_text import is_flat
from .flat import flat_header, unique_names
from .grid import Grid
from .values import Number, table_values

if TYPE_CHECKING:
    import pandas
    import polars


def to_pandas(table: Grid, *, header: str = "rows", types: bool = False) -> pandas.DataFrame:
    """A DataFrame of the body's texts, all of them str; a span's text is repeated at each of its positions.

    Columns are named by the header, as by pandas.read_html: one header row makes an Index, several make a MultiIndex
    with a level for each, none leaves the numbers 0 ... C - 1.  header="flat" joins several rows into one name, as in
    `to_csv`.  Names may occur twice.  types: columns in which every text is a number (a date), or empty, are numbers
    (dates), see `zoo.apps.tables.values`.
    """
    pd = import_optional("pandas", "to_pandas")
    above = table.rows()[: table.header_rows]
    if is_flat(header) and above:
        above = [flat_header(table)]
    if not above:
        columns = pd.RangeIndex(table.shape[1])
    elif len(above) == 1:
        columns = pd.Index(above[0], dtype=object)
    else:
        columns = pd.MultiIndex.from_arrays(above)
    found = _columns(table, types)
    index = pd.RangeIndex(table.shape[0] - table.header_rows)
    series = [pd.Series(column, index, dtype=None if typed else object) for column, typed in found]
    frame = pd.concat(series, axis=1) if series else pd.DataFrame(index=index)
    return frame.set_axis(columns, axis=1)


def to_polars(table: Grid, *, types: bool = False) -> polars.DataFrame:
    """A DataFrame of the body's texts; its columns have the names of `flat_header`.

    A name that occurs again gets its number after it, "a", "a (2)", and one that is empty is "column 3".  types: as for
    `to_pandas`.
    """
    pl = import_optional("polars", "to_polars")
    names = unique_names(flat_header(table))
    kinds = [column if typed else pl.Series(column, dtype=pl.String) for column, typed in _columns(table, types)]
    return pl.DataFrame(dict(zip(names, kinds, strict=True)))


def to_records(table: Grid, *, types: bool = False) -> list[dict[str, Any]]:
    """A dict for each row of the body, by the names of the columns, which are as in `to_polars`.

    types: numbers and dates in place of texts, as for `to_pandas`; an empty text of such a column is None.
    """
    names = unique_names(flat_header(table))
    columns = [column for column, _ in _columns(table, types)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _columns(table: Grid, types: bool) -> list[tuple[list[Any], bool]]:
    """The body's columns; True for a column of values, False for one of texts."""
    rows = table.rows()[table.header_rows :]
    values = table_values(table)[table.header_rows :] if types else []
    columns: list[tuple[list[Any], bool]] = []
    for c in range(table.shape[1]):
        texts = [row[c] for row in rows]
        read = [row[c] for row in values]
        kinds = {type(value) for value in read if value is not None}
        whole = len(kinds) == 1 and all(v is not None or not t.strip() for v, t in zip(read, texts, strict=True))
        bare: list[Any] = [value.value if isinstance(value, Number) else value for value in read]
        if whole and any(isinstance(value, float) for value in bare):
            bare = [None if value is None else float(value) for value in bare]
        columns.append((bare, True) if whole else (texts, False))
    return columns
