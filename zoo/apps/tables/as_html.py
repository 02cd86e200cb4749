"""A table as HTML, and back."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser
from typing import NamedTuple

from ...errors import TableError
from .grid import MAX_POSITIONS, Cell, G, Grid

# Browsers clamp larger spans to these numbers.
MAX_COLUMNS_OF_A_SPAN = 1000
MAX_ROWS_OF_A_SPAN = 65534
MIN_POSITIONS = 50_000  # every text may have this many positions, and one more per character: spans can claim millions
GROUPS = ("thead", "tbody", "tfoot")


def to_html(table: Grid) -> str:
    """A `<table>` with rowspan and colspan and the header in `<thead>`; each row has its `<tr>`, even without cells.

    Header cells are `<th scope="col">`, projected row headers `<th scope="rowgroup">`.  A line end in a text is `<br>`.
    TableError for U+0000 and for spans of more than 1000 columns or 65534 rows, which HTML cannot hold.
    """
    rows: list[list[str]] = [[] for _ in table.row_boxes]
    for cell in table.cells:
        rows[cell.row].append(_element(cell))
    lines = [f"<tr>{''.join(row)}</tr>\n" for row in rows]
    header, body = "".join(lines[: table.header_rows]), "".join(lines[table.header_rows :])
    header = header and f"<thead>\n{header}</thead>\n"
    body = body and f"<tbody>\n{body}</tbody>\n"
    return f"<table>\n{header}{body}</table>\n"


def _element(cell: Cell) -> str:
    where = f"the cell at row {cell.row}, column {cell.column}"
    if "\0" in cell.text:
        raise TableError(f"{where} has the character U+0000, which HTML cannot hold")
    if cell.column_span > MAX_COLUMNS_OF_A_SPAN or cell.row_span > MAX_ROWS_OF_A_SPAN:
        most = f"{MAX_ROWS_OF_A_SPAN} x {MAX_COLUMNS_OF_A_SPAN}"
        raise TableError(f"{where} spans {cell.row_span} x {cell.column_span} positions, at most {most} in HTML")
    kind = "th" if cell.is_header or cell.is_projected_row_header else "td"
    scope = ' scope="col"' if cell.is_header else ' scope="rowgroup"' if cell.is_projected_row_header else ""
    rows = f' rowspan="{cell.row_span}"' if cell.row_span > 1 else ""
    columns = f' colspan="{cell.column_span}"' if cell.column_span > 1 else ""
    text = escape(cell.text, quote=False).replace("\r", "&#13;").replace("\n", "<br>")
    return f"<{kind}{scope}{rows}{columns}>{text}</{kind}>"


def from_html(text: str, cls: type[G]) -> G:
    """The one `<table>` in a text: grid, header (`<thead>`) and texts, as a browser shows them
    (https://html.spec.whatwg.org/multipage/tables.html#forming-a-table).

    White space is collapsed, `<br>` becomes a line end, other markup inside cells is left out and its text kept; what
    is outside of cells (`<caption>`) is not part of the grid.  A position without a cell gets an empty one.
    HTML has no boxes: a row is 1 high and a column 1 wide here.  TableError for no table or more than one, for cells
    that overlap, for a `<thead>` below other rows and for a text that ends within a tag.
    """
    parser = _Parser()
    # `close` is never called: it would look for the end of each unclosed tag anew, in quadratic time.
    parser.feed(text + "\n")
    if parser.rawdata or parser.cdata_elem:
        raise TableError("the HTML ends within a tag, a comment or a script")
    if parser.tables != 1:
        raise TableError(f"the HTML has {parser.tables} tables, expected one")
    return _grid(parser.groups, min(MAX_POSITIONS, MIN_POSITIONS + len(text)), cls)


class _HtmlCell(NamedTuple):
    """A `<td>` or `<th>`."""

    row_span: int  # 0: all rows that follow in the group
    column_span: int
    projected: bool
    pieces: list[str]


class _Parser(HTMLParser):
    """Collects the row groups of a table; end tags may be left out wherever HTML permits it."""

    def __init__(self) -> None:
        super().__init__()
        self.tables, self.inside = 0, False
        self.groups: list[tuple[str, list[list[_HtmlCell]]]] = []  # ("thead", "tbody" or "tfoot", rows of elements)
        self.cell: _HtmlCell | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("textarea", "title"):
            self.set_cdata_mode(tag)  # as for <script> and <style>: no markup up to the end tag
        elif tag == "table":
            if self.inside:
                raise TableError("the HTML has a table within a table")
            self.tables, self.inside = self.tables + 1, True
        elif not self.inside:
            return
        elif tag == "br" and self.cell is not None:
            self.cell.pieces.append("\0")  # a line end; those of the text itself are white space
        elif tag in GROUPS:
            self.cell = None
            self.groups.append((tag, []))
        elif tag == "tr":
            self.cell = None
            self.groups = self.groups or [("tbody", [])]
            self.groups[-1][1].append([])
        elif tag in ("td", "th"):
            if not self.groups or not self.groups[-1][1]:
                raise TableError(f"the HTML has a <{tag}> outside of any <tr>")
            given = {name: value or "" for name, value in reversed(attrs)}  # the first of a name counts
            rows = _span(given.get("rowspan", "1"), "rowspan", 0, MAX_ROWS_OF_A_SPAN)
            columns = _span(given.get("colspan", "1"), "colspan", 1, MAX_COLUMNS_OF_A_SPAN)
            self.cell = _HtmlCell(rows, columns, tag == "th" and given.get("scope") == "rowgroup", [])
            self.groups[-1][1][-1].append(self.cell)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)  # HTML ignores the slash of <td/>

    def handle_endtag(self, tag: str) -> None:
        if tag in (*GROUPS, "table", "tr", "td", "th"):
            self.cell = None
        if tag == "table":
            self.inside = False
        elif tag in GROUPS and self.inside:
            self.groups.append(("tbody", []))  # for rows that follow outside of any group

    def handle_data(self, data: str) -> None:
        if self.cell is not None and self.cdata_elem is None:
            self.cell.pieces.append(data.replace("\0", ""))

    def parse_comment(self, i: int, report: bool = True) -> int:
        end = self.rawdata.find("-->", i + 2)  # <!--> is one, which older Pythons do not know
        return end + 3 if end >= 0 else -1

    def parse_html_declaration(self, i: int) -> int:
        return self.parse_bogus_comment(i)  # as browsers do: <![CDATA[ and the like mean nothing in HTML


def _span(value: str, name: str, least: int, most: int) -> int:
    number = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else -1
    if not least <= number <= most:
        raise TableError(f'the HTML has {name}="{value[:40]}", expected a whole number of {least} ... {most}')
    return number


def _grid(groups: list[tuple[str, list[list[_HtmlCell]]]], most: int, cls: type[G]) -> G:
    """Put each cell at the first free position of its row; none reaches out of its group."""
    cells: list[Cell] = []
    taken = [bytearray() for _, rows in groups for _ in rows]  # for each row: 1 at each position that a cell covers
    header_rows, first, width = 0, 0, 0
    for kind, group in groups:
        last = first + len(group)
        if kind == "thead":
            if first != header_rows:
                raise TableError(f"the HTML has a <thead> below {first - header_rows} rows that are not in one")
            header_rows = last
        for r, row in enumerate(group, first):
            c = 0
            for element in row:
                c = free if (free := taken[r].find(0, c)) >= 0 else max(c, len(taken[r]))
                end, bottom = c + element.column_span, min(r + element.row_span, last) if element.row_span else last
                width = max(width, end)
                if len(taken) * width > most:
                    found = f"{len(taken):,} x {width:,} positions or more"
                    raise TableError(f"the HTML has a table of {found}, at most {most:,} are possible")
                for y in range(r, bottom):
                    if (other := taken[y].find(1, c, end)) >= 0:
                        raise TableError(f"two cells of the HTML overlap at row {y}, column {other}")
                    taken[y].extend(bytes(max(0, end - len(taken[y]))))
                    taken[y][c:end] = b"\1" * (end - c)
                text = _text(element.pieces)
                header = kind == "thead"
                box = (c, r, end, bottom)
                cells.append(Cell(r, c, bottom - r, end - c, box, text, 1.0, header, element.projected and not header))
                c = end
        first = last
    for r, covered in enumerate(taken):
        covered.extend(bytes(width - len(covered)))
        cells += [
            Cell(r, c, 1, 1, (c, r, c + 1, r + 1), is_header=r < header_rows) for c in range(width) if not covered[c]
        ]
    row_boxes = tuple((0.0, float(r), float(width), r + 1.0) for r in range(first))
    column_boxes = tuple((float(c), 0.0, c + 1.0, float(first)) for c in range(width))
    return cls(tuple(cells), row_boxes, column_boxes, (0, 0, width, first), 1.0, header_rows)


def _text(pieces: list[str]) -> str:
    """The text of a cell; white space other than HTML's, such as a no-break space, is kept."""
    return "\n".join(re.sub(r"[ \t\n\f\r]+", " ", line).strip(" ") for line in "".join(pieces).split("\0"))
