"""What is found on a page of a document: its tables, and what lies above and below each.

Boxes are (x0, y0, x1, y1) in pixels of the page.  Shapes: H, W of the page.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import TableError
from .boxes import share
from .cell_borders import INK
from .extract import TableExtractor
from .reading import SPECKS
from .table import Table, Word
from .words import join

if TYPE_CHECKING:
    from ..documents import Page

BAND = 0.1  # of the page's height: where running titles and page numbers stand, at the top and at the bottom
APART = 1.5  # heights of a line that they keep from a table
LONGEST = 200  # characters that are kept of what lies beside a table
SOMETHING = "\ufffc"  # what lies there where the page has no words: Unicode's sign for an object


@dataclass(frozen=True)
class Surroundings:
    """What is between a table and the ends of its page, but for running titles and page numbers; "" for nothing."""

    above: str
    below: str


@dataclass(frozen=True)
class PageTables:
    """What became of a page: its tables, or an error."""

    source: str
    document: str  # the sha256 of the file, "" where it could not be read
    page: int  # from 1; 0 where the document could not be opened
    pages: int
    tables: tuple[Table, ...] = ()
    error: str | None = None
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    size: tuple[int, int] | None = None  # (W, H) of the page
    around: tuple[Surroundings, ...] = ()  # of each table

    def to_dict(self) -> dict[str, Any]:
        """All of it in lists, numbers and texts: what `from_dict` reads."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields |= {"tables": [table.to_dict() for table in self.tables], "warnings": list(self.warnings)}
        around = [[one.above, one.below] for one in self.around]
        return fields | {"size": None if self.size is None else list(self.size), "around": around}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PageTables:
        """What `to_dict` gave; TableError if it is not that."""
        try:
            fields = dict(data)
            fields["tables"] = tuple(Table.from_dict(table) for table in fields["tables"])
            fields["warnings"] = tuple(fields["warnings"])
            if fields.get("size") is not None:
                width, height = fields["size"]
                fields["size"] = width, height
            fields["around"] = tuple(Surroundings(above, below) for above, below in fields.get("around", ()))
            return cls(**fields)
        except (KeyError, TypeError, ValueError) as e:
            raise TableError(f"no tables of a page: {e}") from None


def page_tables(extractor: TableExtractor, page: Page) -> tuple[Table, ...]:
    """The tables of a page, which say where they are from."""
    found = extractor(page.image, page.words)
    return tuple(dataclasses.replace(table, source=page.source, page=page.number) for table in found)


def surroundings_of(page: Page, tables: Sequence[Table]) -> tuple[Surroundings, ...]:
    """What lies above and below each table of a page: words, or ink where the page has none, and other tables."""
    return tuple(
        Surroundings(*(_beyond(page, table, below) or _others(table, tables, below) for below in (False, True)))
        for table in tables
    )


def _others(table: Table, tables: Sequence[Table], below: bool) -> str:
    x0, y0, x1, y1 = table.box
    beyond = (
        other.box[1] >= (y0 + y1) / 2 if below else other.box[3] <= (y0 + y1) / 2
        for other in tables
        if other is not table and share(*_across(other.box), x0, x1) > 0
    )
    return "another table" if any(beyond) else ""


def _beyond(page: Page, table: Table, below: bool) -> str:
    if page.words is None:
        return SOMETHING if _has_ink(page.image, table, below) else ""
    x0, y0, x1, y1 = table.box
    height = page.image.shape[0]
    found: list[Word] = []
    for word in page.words:
        left, top, right, bottom = word.box
        middle = (top + bottom) / 2
        if not word.text.strip() or share(left, right, x0, x1) <= 0 or (middle <= y1 if below else middle >= y0):
            continue
        gap = top - y1 if below else y0 - bottom
        in_band = middle > (1 - BAND) * height if below else middle < BAND * height
        if not in_band or gap < APART * (bottom - top):
            found.append(word)
    return join(found[:LONGEST])[:LONGEST]


def _has_ink(image: np.ndarray, table: Table, below: bool) -> bool:
    """Whether there is something in the table's width; what is nearer than a line may be its own rule."""
    H, W = image.shape[:2]
    left, right = max(int(table.box[0]), 0), min(int(table.box[2]) + 1, W)
    rows = [box[3] - box[1] for box in table.row_boxes]
    line = sorted(rows)[len(rows) // 2] if rows else 0
    if below:
        top, bottom = int(table.box[3] + line / 4), max(int((1 - BAND) * H), int(table.box[3] + APART * line))
    else:
        top, bottom = min(int(BAND * H), int(table.box[1] - APART * line)), int(table.box[1] - line / 4)
    part = image[max(top, 0) : max(bottom, 0), left:right]
    if not part.size:
        return False
    paper = np.median(part[:: max(1, len(part) // 64)], (0, 1)).mean()
    return int(np.count_nonzero(np.abs(part.mean(-1) - paper) > INK)) >= SPECKS


def _across(box: tuple[float, float, float, float]) -> tuple[float, float]:
    return box[0], box[2]
