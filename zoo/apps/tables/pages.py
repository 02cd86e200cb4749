"""The tables of a page of a document, and the text above and below each.

Boxes are (x0, y0, x1, y1) in pixels of the page.  Shapes: H, W of the page.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import TableError
from ...images.lines import grey_of
from ...warning import warn
from .boxes import share
from .cell_borders import INK
from .extract import TableExtractor
from .reading import SPECKS
from .table import Table, Word
from .upright import upright_page
from .words import join

if TYPE_CHECKING:
    from ..documents import Page

MARGIN = 0.1  # share of the page's height: running titles and page numbers are within it, at the top and at the bottom
MIN_GAP = 1.5  # heights of a line: the least distance between a table and a running title
MAX_TEXT = 200  # characters kept of the text above or below a table
UNREADABLE = "\ufffc"  # in place of that text on a page without words: Unicode's sign for an object


@dataclass(frozen=True)
class Surroundings:
    """The text between a table and the ends of its page, without running titles and page numbers; "" for none."""

    above: str
    below: str


@dataclass(frozen=True)
class PageTables:
    """The result for a page: its tables, or an error."""

    source: str
    document: str  # the sha256 of the file, "" where it could not be read
    page: int  # the first is 1; 0 where the document could not be opened
    pages: int
    tables: tuple[Table, ...] = ()
    error: str | None = None
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    size: tuple[int, int] | None = None  # (W, H) of the page
    around: tuple[Surroundings, ...] = ()  # what is around each table, on the upright page
    angle: float = 0.0  # the direction of most of its text, in degrees clockwise: it was turned back to look for tables

    def to_dict(self) -> dict[str, Any]:
        """The fields as lists, numbers and texts, for `from_dict`."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields |= {"tables": [table.to_dict() for table in self.tables], "warnings": list(self.warnings)}
        around = [[one.above, one.below] for one in self.around]
        return fields | {"size": None if self.size is None else list(self.size), "around": around}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PageTables:
        """The result of a `to_dict`; TableError if a field is missing or wrong."""
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
            raise TableError(f"the result of a page has a wrong or missing field: {e}") from None


def page_tables(extractor: TableExtractor, page: Page, document: str) -> PageTables:
    """The tables of a page; document: the sha256 of its file."""
    upright = page
    turned = upright_page(page.image, page.words, page.rules) if extractor.straighten else None
    if turned is not None:
        upright = dataclasses.replace(page, image=turned.crop.pixels, words=turned.words, rules=turned.rules)
    notes: list[str] = []
    found = extractor.upright_tables(upright.image, upright.words, upright.rules, notes)
    for note in dict.fromkeys(notes):
        warn(note)
    around = surroundings_of(upright, found)
    tables = [table if turned is None else turned.to_page(table) for table in found]
    return PageTables(
        page.source,
        document,
        page.number,
        page.count,
        tuple(dataclasses.replace(table, source=page.source, page=page.number) for table in tables),
        size=(page.image.shape[1], page.image.shape[0]),
        around=around,
        angle=0.0 if turned is None else turned.crop.angle,
    )


def surroundings_of(page: Page, tables: Sequence[Table]) -> tuple[Surroundings, ...]:
    """The text above and below each table of a page: its words, or UNREADABLE for ink, or else "another table"."""
    found = []
    for table in tables:
        x0, y0, x1, y1 = table.box
        others = [o.box for o in tables if o is not table and share(o.box[0], o.box[2], x0, x1) > 0]
        middle = (y0 + y1) / 2
        above = "another table" if any(box[3] <= middle for box in others) else ""
        below = "another table" if any(box[1] >= middle for box in others) else ""
        found.append(Surroundings(_text(page, table, False) or above, _text(page, table, True) or below))
    return tuple(found)


def _text(page: Page, table: Table, below: bool) -> str:
    if page.words is None:
        return UNREADABLE if _has_ink(page.image, table, below) else ""
    x0, y0, x1, y1 = table.box
    height = page.image.shape[0]
    found: list[Word] = []
    for word in page.words:
        left, top, right, bottom = word.box
        middle = (top + bottom) / 2
        if not word.text.strip() or share(left, right, x0, x1) <= 0 or (middle <= y1 if below else middle >= y0):
            continue
        gap = top - y1 if below else y0 - bottom
        in_margin = middle > (1 - MARGIN) * height if below else middle < MARGIN * height
        if not in_margin or gap < MIN_GAP * (bottom - top):
            found.append(word)
    return join(found[:MAX_TEXT])[:MAX_TEXT]


def _has_ink(image: np.ndarray, table: Table, below: bool) -> bool:
    """True if there is ink in the table's width, farther from it than a rule of its own would be."""
    H, W = image.shape[:2]
    left, right = max(int(table.box[0]), 0), min(int(table.box[2]) + 1, W)
    rows = [box[3] - box[1] for box in table.row_boxes]
    line = sorted(rows)[len(rows) // 2] if rows else 0
    if below:
        top, bottom = int(table.box[3] + line / 4), max(int((1 - MARGIN) * H), int(table.box[3] + MIN_GAP * line))
    else:
        top, bottom = min(int(MARGIN * H), int(table.box[1] - MIN_GAP * line)), int(table.box[1] - line / 4)
    part = image[max(top, 0) : max(bottom, 0), left:right]
    if not part.size:
        return False
    paper = np.median(part[:: max(1, len(part) // 64)], (0, 1)).mean()
    return int(np.count_nonzero(np.abs(grey_of(part) - paper) > INK)) >= SPECKS
