"""A table of a document, with its exports as methods."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import TableError, nearest
from ...peer_names import TABLE_NAMES, instead_of
from ..documents import Word
from ..documents.word import check_number, set_fields
from . import as_frame, as_html, as_json, as_text, as_xlsx
from .export import write_text
from .flat import flatten
from .grid import Cell, Grid

__all__ = ["PAGE", "SUFFIXES", "TEXTS", "Cell", "Table", "Word", "suffix_of"]


@dataclass(frozen=True, repr=False)
class Table(Grid):
    """A `Grid` with the place where it was found, the words that it left out, and exports."""

    source: str | None = None  # the name of the document
    page: int | None = None  # number of the document's page, the first is 1
    outside: tuple[Word, ...] = ()  # words in the place of the table that are in no cell
    # The page of each row, its box and the boxes of its cells, for a table that was joined from several pages.  `box`
    # and `column_boxes` are on the first page.
    row_pages: tuple[int, ...] = ()
    # The direction of its text on the page, in degrees clockwise from left to right.  At a tilt each box is the upright
    # one around its part, whose own corners are `direction.corners_of(box, angle)`.
    angle: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.source, str | None):
            raise TableError(f"source of the table is {self.source!r}, expected a text")
        if self.page is not None and (isinstance(self.page, bool) or not isinstance(self.page, int) or self.page < 1):
            raise TableError(f"page of the table is {self.page!r}, expected a whole number from 1")
        if not all(isinstance(word, Word) for word in self.outside):
            raise TableError("outside of the table has an element that is not a Word")
        object.__setattr__(self, "outside", tuple(self.outside))
        object.__setattr__(self, "row_pages", tuple(self.row_pages))
        angle = check_number(self.angle, "the table's angle")
        set_fields(self, angle=round(180 - (180 - angle) % 360, 6))
        if self.row_pages and (
            len(self.row_pages) != self.shape[0]
            or not all(isinstance(page, int) and page >= 1 for page in self.row_pages)
            or list(self.row_pages) != sorted(self.row_pages)
            or self.row_pages[0] != self.page
        ):
            wanted = f"a page for each of {self.shape[0]} rows, in their order, the first of them {self.page}"
            raise TableError(f"row_pages of the table is {self.row_pages!r:.100}, expected {wanted}")

    def __getattr__(self, name: str) -> Any:  # of a name that is no attribute
        raise AttributeError(f"a table has no attribute {name!r}{instead_of(name, TABLE_NAMES)}", name=name, obj=self)

    @property
    def pages(self) -> tuple[int, ...]:
        """The pages that the table is on, from 1; none for a table without a document."""
        return tuple(dict.fromkeys(self.row_pages)) or (() if self.page is None else (self.page,))

    # The exports are functions of the modules beside this one; their first argument is the table.
    to_dict = as_json.to_dict
    to_json = as_json.to_json
    to_csv = as_text.to_csv
    to_markdown = as_text.to_markdown
    to_html = _repr_html_ = as_html.to_html
    to_pandas = as_frame.to_pandas
    to_polars = as_frame.to_polars
    to_records = as_frame.to_records
    flat = flatten

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Table:
        """The table of a `to_dict`; TableError names the field that is wrong."""
        return as_json.from_dict(data, cls)

    @classmethod
    def from_json(cls, text: str | bytes) -> Table:
        """The table of a `to_json`; TableError names the field that is wrong."""
        return as_json.from_json(text, cls)

    @classmethod
    def from_html(cls, text: str) -> Table:
        """The one table in `text`: see `zoo.apps.tables.as_html.from_html`."""
        return as_html.from_html(text, cls)

    def to_xlsx(self, path: str | os.PathLike[str], *, types: bool = True, cut: bool = False) -> None:
        """A workbook of one sheet, with merged cells and numbers: see `zoo.apps.tables.as_xlsx.save_xlsx`."""
        as_xlsx.save_xlsx([self], path, types=types, cut=cut)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .csv, .html, .md, .json or .xlsx file, by the suffix, complete or not at all."""
        suffix = suffix_of(path)
        if suffix == ".xlsx":
            self.to_xlsx(path)
        else:
            write_text(TEXTS[suffix](self), path)


# The head of a file with tables, which declares HTML and UTF-8 to a browser.
PAGE = '<!DOCTYPE html>\n<meta charset="utf-8">\n<title>Table</title>\n'

TEXTS: dict[str, Callable[[Table], str]] = {
    ".csv": lambda table: table.to_csv(),
    ".html": lambda table: PAGE + table.to_html(),
    ".md": lambda table: table.to_markdown(),
    ".json": lambda table: table.to_json() + "\n",
}
SUFFIXES = (*TEXTS, ".xlsx")


def suffix_of(path: str | os.PathLike[str]) -> str:
    """The suffix of a path, one of SUFFIXES; TableError for any other."""
    suffix = Path(path).suffix
    if suffix.lower() not in SUFFIXES:
        found = f"the suffix {suffix!r}" if suffix else "no suffix"
        guess = nearest(suffix.lower(), SUFFIXES, 1)
        raise TableError(f"cannot write to {Path(path)}: {found}, expected {', '.join(SUFFIXES)}{guess}")
    return suffix.lower()
