"""HTML: a browser forms the same grid from it, and foreign tables are read as a browser shows them."""

from __future__ import annotations

import contextlib
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_tables import EXAMPLES, make, of_cells, pubtabnet, tables, texts_without

from zoo.apps.tables import Cell, Table
from zoo.errors import TableError


class Browser(HTMLParser):
    """Slots of the grid, formed as the HTML standard's algorithm for row groups has it: (row, column) -> cell."""

    def __init__(self, html: str):
        super().__init__()
        self.slots: dict[tuple[int, int], list] = {}
        self.row = -1
        self.group: list[int] = []  # the rows that each group begins with
        self.groups: list[str] = []
        self.waiting: list[tuple[int, int, int, list]] = []
        self.cell: list | None = None
        assert "\r" not in html  # which reading would make a line feed of
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in ("thead", "tbody"):
            self.groups.append(tag)
        elif tag == "tr":
            self.row += 1
            self.column = 0
        elif tag in ("td", "th"):
            while (self.row, self.column) in self.slots:
                self.column += 1
            high, wide = int(given.get("rowspan", 1)), int(given.get("colspan", 1))
            self.cell = ["", tag, given.get("scope"), self.groups[-1], (high, wide)]
            for y in range(self.row, self.row + high):
                for x in range(self.column, self.column + wide):
                    assert (y, x) not in self.slots, "a table model error"
                    self.slots[y, x] = self.cell
        elif tag == "br":
            assert self.cell
            self.cell[0] += "\n"

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = None
        elif tag in ("thead", "tbody"):
            assert all(y <= self.row for y, _ in self.slots), "a cell reaches out of its row group"

    def handle_data(self, data):
        if self.cell is not None:
            self.cell[0] += data


@EXAMPLES
@given(tables(texts_without("\0")))
def test_a_browser_forms_the_same_grid(table):
    browser = Browser(table.to_html())
    rows, columns = table.shape
    assert browser.row + 1 == rows
    assert browser.slots.keys() == {(r, c) for r in range(rows) for c in range(columns)}
    for r, row in enumerate(table.grid()):
        for c, cell in enumerate(row):
            scope = "col" if cell.is_header else "rowgroup" if cell.is_projected_row_header else None
            group = "thead" if cell.is_header else "tbody"
            span = (cell.row_span, cell.column_span)
            assert browser.slots[r, c] == [cell.text, "th" if scope else "td", scope, group, span]


def test_a_row_that_began_above_keeps_its_element():
    table = make([["a", "b"], ["", ""], ["c", "d"]], 2, {(0, 0): (2, 1), (0, 1): (2, 1)})
    assert table.to_html() == (
        '<table>\n<thead>\n<tr><th scope="col" rowspan="2">a</th><th scope="col" rowspan="2">b</th></tr>\n<tr></tr>\n'
        "</thead>\n<tbody>\n<tr><td>c</td><td>d</td></tr>\n</tbody>\n</table>\n"
    )


def test_markup_in_texts_is_text():
    html = make([["<script>alert(1)</script>", "a & b &lt;", "</td></table>"]]).to_html()
    assert "<script" not in html
    assert [cell[0] for cell in Browser(html).slots.values()] == [
        "<script>alert(1)</script>",
        "a & b &lt;",
        "</td></table>",
    ]


def test_what_html_cannot_hold_is_refused():
    with pytest.raises(TableError, match=r"row 0, column 1 has the character U\+0000"):
        make([["a", "\0"]]).to_html()
    wide = of_cells([Cell(0, 0, 1, 1001, (0, 0, 1, 1))], 1, 1001)
    with pytest.raises(TableError, match="spans 1 x 1001 positions, at most 65534 x 1000"):
        wide.to_html()


@EXAMPLES
@given(tables(texts_without("\0\t\n\f\r \x1c\x1d\x1e\x1f")))
def test_reading_gives_back_grid_header_and_texts(table):
    found = Table.from_html(table.to_html())
    assert found.shape == table.shape
    assert found.header_rows == table.header_rows
    facts = ("row", "column", "row_span", "column_span", "text", "is_header", "is_projected_row_header")
    assert [[getattr(c, f) for f in facts] for c in found.cells] == [
        [getattr(c, f) for f in facts] for c in table.cells
    ]
    assert Table.from_html(found.to_html()) == found


def test_tables_of_others_are_read_as_they_are_shown():
    table = Table.from_html("""<!doctype html><p>before</p><TABLE class=x><caption>not in the grid</caption>
        <colgroup><col><THEAD><tr><th rowspan=0>a<th colspan="2"> b&nbsp;<sup>1</sup>
          c <br> d
        <tr><td>e</td><td>f <script>no()</script></thead>
        <!-- <tr><td>no --><tr><td rowspan=9>g<td>h
        <tr></tr></table> after""")
    assert table.header_rows == 2
    assert table.rows() == [["a", "b\xa01 c\nd", "b\xa01 c\nd"], ["a", "e", "f"], ["g", "h", ""], ["g", "", ""]]
    assert table.cells[0].box == (0, 0, 1, 2)


@pytest.mark.parametrize(
    ("html", "message"),
    [
        ("", "0 tables, expected one"),
        ("<p>no</p>", "0 tables"),
        ("<table></table><table></table>", "2 tables"),
        ("<table><tr><td><table></table></table>", "a table within a table"),
        ("<table><td>a</table>", "<td> outside of any <tr>"),
        ("<table><tbody><tr><td>a</tbody><thead><tr><td>b</table>", "<thead> below 1 rows"),
        ("<table><tr><td>a<td rowspan=2>b<tr><td colspan=2>c</table>", "overlap at row 1, column 1"),
        ("<table><tr><td colspan=0>a</table>", 'colspan="0", expected a whole number of 1 ... 1000'),
        ("<table><tr><td colspan=1001>a</table>", 'colspan="1001"'),
        ("<table><tr><td rowspan=-1>a</table>", 'rowspan="-1", expected a whole number of 0 ... 65534'),
        ("<table><tr><td rowspan=x>a</table>", 'rowspan="x"'),
        ("<table><tr>" + "<td colspan=1000 rowspan=0>" * 100 + "<tr>" * 200, "201 x 1,000 positions or more"),
        ("<table><tr><td", "ends within a tag"),
        ("<table><tr><td a='>", "ends within a tag"),
        ("<table></table><!-- ", "ends within a tag, a comment"),
        ("<table><tr>" + "<td colspan=1000>" * 10 + "<tr>" * 2000, "2,001 x 1,000 positions or more"),
    ],
)
def test_html_of_no_table_is_refused(html, message):
    with pytest.raises(TableError, match=message):
        Table.from_html(html)


PIECES = (
    *("<table>", "</table>", "<thead>", "</thead>", "<tbody>", "<tr>", "</tr>", "<td>", "</td>", "<td rowspan=2>"),
    *(
        "<td colspan='3'>",
        "<th ",
        "=",
        "'",
        "/",
        "a=",
        "<br>",
        "<script>",
        "</script>",
        "<!--",
        "-->",
        "<![",
        "<![CDATA[",
        "]]>",
        "<?",
        "<!",
    ),
    *("<", ">", "&", "&#0;", "&#x110000;", '"', "\0", "a", " "),
)


@EXAMPLES
@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_any_text_is_a_table_or_refused(pieces):
    with contextlib.suppress(TableError):
        Table.from_html("".join(pieces)).grid()
    with contextlib.suppress(TableError):
        Table.from_html(f"<table><tr>{''.join(pieces)}</table>").grid()


@pytest.mark.parametrize("piece", ["<a ", "<!--", "<", '<td a="', "</", "<![", "<?", "&#", "<td>", "a = ", "<script>"])
def test_what_is_not_closed_takes_no_longer_than_the_text_is_long(piece):
    """html.parser takes minutes over the first once it is closed."""
    with contextlib.suppress(TableError):
        Table.from_html("<table><tr><td>" + piece * (200_000 // len(piece)))


@pytest.mark.parametrize(("name", "html"), pubtabnet().items(), ids=pubtabnet())
def test_real_tables_keep_their_grid_in_html(name, html):
    table = Table.from_html(html)
    browser = Browser(html)
    rows, columns = table.shape
    assert browser.slots.keys() == {(r, c) for r in range(rows) for c in range(columns)}
    assert Table.from_html(table.to_html()) == table
    assert table.rows() == [[" ".join(browser.slots[r, c][0].split()) for c in range(columns)] for r in range(rows)]
