"""A table out of HTML, by the table model of its standard, in a time that grows with the text's length alone.

https://html.spec.whatwg.org/multipage/tables.html#forming-a-table
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple, NoReturn

from ...errors import TableError
from .as_html import MAX_COLUMNS_OF_A_SPAN, MAX_ROWS_OF_A_SPAN
from .grid import MAX_POSITIONS, Cell, G

# html.parser would do, but takes minutes over 100 kB of "<a <a <a".
NAME = re.compile(r"[A-Za-z][^\s/>]*")
ATTRIBUTE = re.compile(r"[\s/]*([^\s/>=][^\s/>=]*)?(\s*=\s*)?")
VALUE = re.compile(r"[^\s>]*")
_FEW = 50_000  # positions that a text of any length may have
RAW = ("script", "style", "textarea", "title")  # whose content is no markup, and not shown as text in a cell
GROUPS = ("thead", "tbody", "tfoot")


def from_html(text: str, cls: type[G]) -> G:
    """The one `<table>` in a text: grid, header (`<thead>`) and texts, as a browser shows them.

    White space is collapsed, `<br>` is a line's end, other markup inside cells is left out and its text kept; what
    stands outside of cells (`<caption>`) is not part of the grid.  A position that no cell covers gets an empty one.
    HTML has no boxes: a row is 1 high and a column 1 wide here.  TableError where there is no table, or more than
    one, for cells that overlap, for a `<thead>` below other rows and where the text ends within a tag.
    """
    reader = _Reader()
    for token in _tokens(text):
        if isinstance(token, str):
            reader.text(token)
        elif token.closes:
            reader.closed(token.name)
        else:
            reader.opened(token)
    if reader.tables != 1:
        raise TableError(f"the HTML has {reader.tables} tables, expected one")
    # A few spans could claim a grid of a million cells, which takes many seconds to make.
    return _formed(reader.groups, min(MAX_POSITIONS, _FEW + len(text)), cls)


class _Tag(NamedTuple):
    name: str
    closes: bool
    attributes: dict[str, str]


def _tokens(text: str) -> Iterator[str | _Tag]:
    """Tags, and the text between them; comments, declarations, scripts and the like are left out."""
    at = 0
    while (start := text.find("<", at)) >= 0:
        yield unescape(text[at:start])
        closes = text.startswith("</", start)
        name = NAME.match(text, start + 1 + closes)
        if name:
            attributes, at = _attributes(text, name.end())
            yield (tag := _Tag(name[0].lower(), closes, attributes))
            if tag.name in RAW and not closes:
                end = re.compile(f"</{tag.name}(?=[\\s/>])", re.IGNORECASE).search(text, at)
                at = end.start() if end else _cut_off()
        elif text.startswith("<!--", start):
            at = _after(text, "-->", start + 2)
        elif text.startswith(("<!", "<?", "</"), start):
            at = _after(text, ">", start)
        else:
            yield "<"
            at = start + 1
    yield unescape(text[at:])


def _attributes(text: str, at: int) -> tuple[dict[str, str], int]:
    """The attributes of a tag, the first of each name, and where the text goes on after it."""
    found: dict[str, str] = {}
    while at < len(text) and text[at] != ">":
        match = ATTRIBUTE.match(text, at)
        assert match  # it may be empty
        at, value = match.end(), ""
        if match[2] and text[at : at + 1] in ("'", '"'):
            end = _after(text, text[at], at + 1)
            at, value = end, text[at + 1 : end - 1]
        elif match[2] and (bare := VALUE.match(text, at)):
            at, value = bare.end(), bare[0]
        if match[1]:
            found.setdefault(match[1].lower(), value)
    return found, at + 1 if at < len(text) else _cut_off()


def _after(text: str, what: str, at: int) -> int:
    found = text.find(what, at)
    return found + len(what) if found >= 0 else _cut_off()


def _cut_off() -> NoReturn:
    raise TableError("the HTML ends within a tag, a comment or a script")


class _Element(NamedTuple):
    """A `<td>` or `<th>`."""

    rows: int  # its rowspan; 0: all that follow in its group
    columns: int
    projected: bool
    pieces: list[str]


class _Group(NamedTuple):
    """A `<thead>`, `<tbody>` or `<tfoot>`, or rows that are in none."""

    kind: str
    rows: list[list[_Element]]


class _Reader:
    """The row groups of a table, with the elements of each row; end tags may be left out where HTML permits it."""

    def __init__(self) -> None:
        self.tables = 0
        self.groups: list[_Group] = []
        self.open = False  # inside <table>
        self.cell: _Element | None = None

    def opened(self, tag: _Tag) -> None:
        if tag.name == "table":
            if self.open:
                raise TableError("the HTML has a table within a table")
            self.tables, self.open = self.tables + 1, True
        elif not self.open:
            return
        elif tag.name in (*GROUPS, "tr", "td", "th"):
            self.cell = None
            self._structure(tag)
        elif tag.name == "br" and self.cell is not None:
            self.cell.pieces.append("\0")  # white space is collapsed on either side of it, not across

    def _structure(self, tag: _Tag) -> None:
        if tag.name in GROUPS:
            self.groups.append(_Group(tag.name, []))
        elif tag.name == "tr":
            if not self.groups:
                self.groups.append(_Group("tbody", []))
            self.groups[-1].rows.append([])
        elif not self.groups or not self.groups[-1].rows:
            raise TableError(f"the HTML has a <{tag.name}> outside of any <tr>")
        else:
            rows = _span(tag.attributes.get("rowspan"), "rowspan", 0, MAX_ROWS_OF_A_SPAN)
            columns = _span(tag.attributes.get("colspan"), "colspan", 1, MAX_COLUMNS_OF_A_SPAN)
            projected = tag.name == "th" and tag.attributes.get("scope") == "rowgroup"
            self.cell = _Element(rows, columns, projected, [])
            self.groups[-1].rows[-1].append(self.cell)

    def closed(self, name: str) -> None:
        if name in (*GROUPS, "table", "tr", "td", "th"):
            self.cell = None
        if name == "table":
            self.open = False
        elif name in GROUPS and self.open:
            self.groups.append(_Group("tbody", []))  # of rows that follow in no group of their own

    def text(self, text: str) -> None:
        if self.cell is not None:
            self.cell.pieces.append(text.replace("\0", ""))


def _span(value: str | None, name: str, least: int, most: int) -> int:
    if value is None:
        return 1
    number = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else -1
    if not least <= number <= most:
        raise TableError(f'the HTML has {name}="{value[:40]}", expected a whole number of {least} ... {most}')
    return number


def _formed(groups: list[_Group], most: int, cls: type[G]) -> G:
    """Each cell at the first position of its row that is still free; none reaches out of its group.

    most: positions of the grid, of which each that no cell covers gets an empty one.
    """
    cells: list[Cell] = []
    taken = [bytearray() for group in groups for _ in group.rows]  # 1 for each position of a row that a cell covers
    header_rows, first, width = 0, 0, 0
    for group in groups:
        last = first + len(group.rows)
        if group.kind == "thead":
            if first != header_rows:
                raise TableError(f"the HTML has a <thead> below {first - header_rows} rows that are not in one")
            header_rows = last
        for r, row in enumerate(group.rows, first):
            c = 0
            for element in row:
                free = taken[r].find(0, c)
                c = free if free >= 0 else max(c, len(taken[r]))
                rows = min(element.rows or last - r, last - r)
                width = max(width, c + element.columns)
                if len(taken) * width > most:
                    found = f"{len(taken):,} x {width:,} positions or more"
                    raise TableError(f"the HTML has a table of {found}, at most {most:,} are possible")
                for y in range(r, r + rows):
                    _take(taken[y], y, c, element.columns)
                cells.append(_cell(r, c, rows, element.columns, element, group.kind == "thead"))
                c += element.columns
        first = last
    empty = _Element(1, 1, False, [])
    for r, covered in enumerate(taken):
        covered.extend(bytes(width - len(covered)))
        cells += [_cell(r, c, 1, 1, empty, r < header_rows) for c in range(width) if not covered[c]]
    row_boxes = tuple((0.0, float(r), float(width), r + 1.0) for r in range(first))
    column_boxes = tuple((float(c), 0.0, c + 1.0, float(first)) for c in range(width))
    return cls(tuple(cells), row_boxes, column_boxes, (0, 0, width, first), 1.0, header_rows)


def _take(taken: bytearray, row: int, column: int, columns: int) -> None:
    """Mark positions of a row, none of which may be marked already."""
    other = taken.find(1, column, column + columns)
    if other >= 0:
        raise TableError(f"two cells of the HTML overlap at row {row}, column {other}")
    taken.extend(bytes(max(0, column + columns - len(taken))))
    taken[column : column + columns] = b"\1" * columns


def _cell(row: int, column: int, rows: int, columns: int, element: _Element, header: bool) -> Cell:
    lines = "".join(element.pieces).split("\0")
    # Other white space, such as a no-break space, is shown as it is.
    text = "\n".join(re.sub(r"[ \t\n\f\r]+", " ", line).strip(" ") for line in lines)
    box = (column, row, column + columns, row + rows)
    return Cell(row, column, rows, columns, box, text, 1.0, header, element.projected and not header)
