"""Writers for the tables of documents: one file for all, or a folder with files for each document.

They take results page by page, in the order of documents and pages.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ...errors import TableError
from ...files.atomic_write import one_writer
from ...files.json_file import parse_json
from ...files.utf8 import ERRORS, without_surrogates
from ...optional import import_optional
from .as_xlsx import MAX_NAME, save_xlsx
from .export import check_place, write, write_errors, write_text
from .pages import PageTables
from .table import PAGE, TEXTS, Table

LINES = "tables.jsonl"  # the file in an output folder with the result of each page, from which a job is resumed
FOR_ALL = (".jsonl", ".parquet")  # formats whose one file holds the tables of many documents


class TableWriter(Protocol):
    """Takes results; `close` writes the rest and returns the files written."""

    by_page: bool  # takes the tables of each page as found, neither joined nor flat

    def add(self, result: PageTables) -> None: ...
    def close(self) -> list[Path]: ...


def sheet_names(tables: Sequence[Table]) -> list[str]:
    """Names for the tables of one document: the page, and the number on the page."""
    of_page: dict[int | None, int] = {}
    names = []
    for table in tables:
        number = of_page[table.page] = of_page.get(table.page, 0) + 1
        pages = table.pages
        place = f"Pages {pages[0]}-{pages[-1]} " if len(pages) > 1 else f"Page {table.page} " if pages else ""
        names.append(f"{place}Table {number}"[:MAX_NAME])
    return names


def save_tables(
    tables: Sequence[Table], path: Path, suffix: str, *, safe: bool = False, types: bool = True
) -> list[Path]:
    """Write tables to a file by its suffix, or to several, NAME-1.csv and so on -> the files written."""
    if suffix == ".csv":  # the one format that holds only one table
        paths = [path] if len(tables) == 1 else [path.with_name(f"{path.stem}-{i + 1}.csv") for i in range(len(tables))]
        for table, to in zip(tables, paths, strict=True):
            write_text(table.to_csv(safe=safe), to)
        return paths
    if suffix == ".xlsx":
        names = sheet_names(tables) if len({table.source for table in tables}) == 1 else None
        save_xlsx(tables, path, names, types=types)
    else:
        write_text(text_of(tables, suffix), path)
    return [path]


def text_of(tables: Sequence[Table], suffix: str, *, safe: bool = False) -> str:
    """All tables as one text of the format with that suffix; in CSV and Markdown an empty line is between two."""
    if suffix == ".csv":
        return "\r\n".join(table.to_csv(safe=safe) for table in tables)
    if suffix == ".json":
        return json_of(tables)
    if suffix == ".html":
        return PAGE + "\n".join(table.to_html() for table in tables)
    return "\n".join(map(TEXTS[suffix], tables))


def json_of(tables: Sequence[Table]) -> str:
    """A JSON array, also for one table; pixels and scores have four digits after the point."""
    rounded = _round_numbers([table.to_dict() for table in tables])
    return json.dumps(rounded, ensure_ascii=False, allow_nan=False) + "\n"


def _round_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _round_numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_round_numbers(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


class JsonLinesWriter:
    """A line of JSON for each page, written at once, so that a job that was killed can be resumed.

    TableError: another job writes the file, or has written it and neither `keep` nor `overwrite` is said.
    """

    def __init__(self, path: Path, key: str, keep: bool = False, overwrite: bool = False, by_page: bool = True):
        """key: of the config, "" for a file that is never resumed.  keep: append to the file."""
        self.path, self.key, self.by_page = path, key, by_page
        self.done: dict[tuple[str, int], PageTables] = {}
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            has_pages = path.is_file() and path.stat().st_size > 0
        self._alone = contextlib.ExitStack()
        self._alone.enter_context(one_writer(path, 0, TableError))
        if has_pages and not keep and not overwrite:
            self._alone.close()
            raise TableError(f"{path} has pages of an earlier job: --resume continues it, --overwrite replaces them")
        is_cut_off = keep and self._read_known()
        with write_errors(path):
            self._file = open(path, "a" if keep else "w", encoding="utf-8", errors=ERRORS)  # noqa: SIM115 - until `close`
            if is_cut_off:
                self._file.write("\n")

    def add(self, result: PageTables) -> None:
        if (result.document, result.page) in self.done:
            return
        line = json.dumps(result.to_dict() | {"key": self.key}, ensure_ascii=False, allow_nan=False)
        with write_errors(self.path):
            self._file.write(line + "\n")
            self._file.flush()

    def close(self) -> list[Path]:
        self._file.close()
        self._alone.close()
        return [self.path]

    def _read_known(self) -> bool:
        """Read the results of pages without errors that have the same key; return True if the last line was cut off."""
        line = b"\n"
        try:
            with self.path.open("rb") as file:
                for line in file:
                    try:
                        data = parse_json(line, self.path, TableError)
                        if data.pop("key", None) == self.key:
                            result = PageTables.from_dict(data)
                            if result.error is None:
                                self.done[result.document, result.page] = result
                    except (TableError, AttributeError):
                        continue
        except FileNotFoundError:
            return False
        except OSError as e:
            raise TableError(f"{self.path} cannot be read: {e.strerror or e}") from None
        return not line.endswith(b"\n")


class FolderWriter:
    """Files for each document, written as soon as its pages are complete."""

    by_page = False

    def __init__(self, folder: Path, names: Mapping[str, str], suffixes: Sequence[str], options: Mapping[str, bool]):
        """names: path of a document -> name of its files."""
        self.folder, self.names, self.suffixes, self.options = folder, names, suffixes, options
        self.written: list[Path] = []
        self.failed: list[str] = []  # errors of single files
        self._source: str | None = None
        self._tables: list[Table] = []

    def add(self, result: PageTables) -> None:
        if result.source != self._source:
            self._write()
            self._source = result.source
        self._tables += result.tables

    def close(self) -> list[Path]:
        self._write()
        return self.written

    def _write(self) -> None:
        tables, self._tables = self._tables, []
        if self._source is None or not tables:
            return
        path = self.folder / self.names[self._source]
        try:
            with write_errors(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
        except TableError as e:
            self.failed.append(str(e))
            return
        for suffix in self.suffixes:
            try:
                self.written += self._files(tables, path, suffix)
            except TableError as e:  # the other files are still written
                self.failed.append(f"{self._source}: {e}")

    def _files(self, tables: list[Table], path: Path, suffix: str) -> list[Path]:
        if suffix != ".csv":
            return save_tables(tables, path.with_name(path.name + suffix), suffix, **self.options)
        written = []  # named by page, so that a resumed or a larger job uses the same names
        for name, table in zip(sheet_names(tables), tables, strict=True):
            to = path.with_name(f"{path.name}-{name.lower().replace(' ', '-')}.csv")
            written += save_tables([table], to, suffix, **self.options)
        return written


class FileWriter:
    """All tables in one file (CSV: a file for each table), written at the end."""

    by_page = False

    def __init__(self, path: Path, suffix: str, options: Mapping[str, bool]):
        check_place(path)  # now, and not only when all pages are done
        self.path, self.suffix, self.options = path, suffix, options
        self.tables: list[Table] = []

    def add(self, result: PageTables) -> None:
        self.tables += result.tables

    def close(self) -> list[Path]:
        return save_tables(self.tables, self.path, self.suffix, **self.options) if self.tables else []


class ParquetWriter:
    """A Parquet file with a row for each table; ROW has its columns."""

    by_page = False

    def __init__(self, path: Path):
        import_optional("pyarrow", "Parquet")
        check_place(path)
        self.path = path
        self.rows: list[dict[str, Any]] = []

    def add(self, result: PageTables) -> None:
        self.rows += rows_of(result)

    def close(self) -> list[Path]:
        import pyarrow
        from pyarrow import parquet

        kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
        schema = pyarrow.schema([(name, kinds[kind]) for name, kind in ROW.items()])
        rows = [{name: without_surrogates(value) for name, value in row.items()} for row in self.rows]
        table = pyarrow.Table.from_pylist(rows, schema=schema)
        write(self.path, lambda part: parquet.write_table(table, part))
        return [self.path]


ROW = {
    "source": str,
    "page": int,
    "last_page": int,  # of a joined table
    "number": int,
    "rows": int,
    "columns": int,
    "header_rows": int,
    "score": float,
    "csv": str,
    "json": str,
    "error": str,
}


def rows_of(result: PageTables) -> list[dict[str, Any]]:
    """A row with ROW's columns for each table of a page, or one row with the page's error."""
    place = {"source": result.source, "page": result.page}
    if result.error is not None:
        return [dict.fromkeys(ROW) | place | {"error": result.error}]
    return [
        dict.fromkeys(ROW)
        | place
        | {"last_page": max(table.pages, default=result.page), "number": i}
        | {"rows": table.shape[0], "columns": table.shape[1], "header_rows": table.header_rows}
        | {"score": table.score, "csv": table.to_csv(), "json": table.to_json()}
        for i, table in enumerate(result.tables, 1)
    ]
