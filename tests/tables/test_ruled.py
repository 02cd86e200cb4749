"""Tables whose cells are ruled, in PDFs and in pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.small_pdf import line, pdf, text
from zoo.apps.documents import Page, Rule, Rules, open_document
from zoo.apps.tables import Table, TableExtractor, Word
from zoo.apps.tables.pages import page_tables
from zoo.apps.tables.ruled import ruled_places
from zoo.images.boxes import Box, Detection

X, Y = (40, 120, 200, 260), (170, 140, 110, 80, 50)  # borders in points: 4 rows, 3 columns


def ruled(xs: Sequence[float] = X, ys: Sequence[float] = Y) -> str:
    """Lines around and between the cells."""
    across = "".join(line(xs[0], y, xs[-1], y) for y in ys)
    return across + "".join(line(x, ys[0], x, ys[-1]) for x in xs)


def page_of(content: str) -> Page:
    pytest.importorskip("pypdfium2", reason="needs pypdfium2")
    with open_document(pdf([content])) as document:
        return document.page(1)


def no_network(*args: Any, **options: Any) -> list[Detection]:
    raise AssertionError("the network is asked")


def no_objects(*args: Any, **options: Any) -> list[Detection]:
    return []


def tables_of(page: Page, *places: Box, structure: Callable[..., Any] = no_network, **options: Any) -> list[Table]:
    """The tables of a page on which a detector finds these places, in points from the upper left."""
    found = [Detection("table", 0.9, tuple(2 * v for v in place)) for place in places]
    extractor = TableExtractor(structure, lambda image, threshold: found, **options)
    return list(page_tables(extractor, page, "").tables)


WORDS = [(45, 150, "Name"), (125, 150, "Before"), (205, 150, "After"), (45, 120, "a"), (125, 120, "1"), (205, 120, "2")]
WORDS += [(45, 60, "c"), (125, 60, "3"), (205, 60, "4")]  # the third row is empty
TEXTS = "".join(text(x, y, words) for x, y, words in WORDS)
ROWS = [["Name", "Before", "After"], ["a", "1", "2"], ["", "", ""], ["c", "3", "4"]]
PLACE = (30, 25, 270, 160)


@pytest.mark.parametrize("places", [[PLACE], [], [(42, 32, 255, 145)]], ids=["found", "not found", "cut"])
def test_rules_are_the_borders_of_cells(places: list[Box]) -> None:
    (table,) = tables_of(page_of(ruled() + TEXTS), *places)
    assert table.rows() == ROWS
    assert table.header_rows == 1  # words above numbers
    assert {cell.origin for cell in table.cells} == {"rules"}
    assert [round(v / 2) for v in table.box] == [40, 30, 260, 150]
    assert Table.from_json(table.to_json()) == table


def test_older_json_has_no_origin() -> None:
    (table,) = tables_of(page_of(ruled() + TEXTS), PLACE)
    data = table.to_dict()
    for cell in data["cells"]:
        del cell["origin"]
    assert {cell.origin for cell in Table.from_dict(data).cells} == {"model"}


def test_cells_span_where_no_line_parts_them() -> None:
    content = "".join(line(40, y, 260, y) for y in (170, 110, 80, 50)) + line(120, 140, 260, 140)
    content += "".join(line(x, 170, x, 50) for x in (40, 120, 260)) + line(200, 140, 200, 50)
    content += TEXTS.replace("(Before)", "(2023)").replace("(After)", "()")
    (table,) = tables_of(page_of(content), PLACE, structure=lambda image, threshold: [])
    spans = {
        (c.row, c.column): (c.row_span, c.column_span) for c in table.cells if (c.row_span, c.column_span) != (1, 1)
    }
    assert spans == {(0, 0): (2, 1), (0, 1): (1, 2)}
    assert table.shape == (4, 3)


def test_two_lattices_in_one_place_are_two_tables() -> None:
    upper, lower = (190, 165, 140, 115), (90, 65, 40, 15)
    content = ruled(ys=upper) + ruled(ys=lower)
    content += "".join(text(x + 5, y + 7, f"{x}{y}") for x in X[:3] for y in (*upper[1:], *lower[1:]))
    tables = tables_of(page_of(content), (30, 5, 270, 190), structure=lambda image, threshold: [])
    assert [table.shape for table in tables] == [(3, 3), (3, 3)]


def test_paragraphs_above_a_lattice_are_no_part_of_it() -> None:
    """The detector takes a paragraph and a table for one."""
    lines = "".join(text(40, y, "A line of a paragraph", 8) for y in (196, 190, 184, 178))
    (table,) = tables_of(page_of(lines + ruled() + TEXTS), (30, 2, 270, 165))
    assert table.rows() == ROWS


@pytest.mark.filterwarnings("ignore:what was found at")
def test_a_lattice_in_a_place_that_is_no_table_is_one() -> None:
    prose = "".join(text(45, 32 - 7 * i, "of them and so on, as it is", 6) for i in range(3))
    sides = "".join(text(x, 178 + 7 * i, "more of it, said they", 6) for x in (20, 180) for i in range(3))
    page = page_of(ruled((40, 120, 200, 260), (170, 140, 110, 80, 50)) + TEXTS + sides + prose)
    (table,) = tables_of(page, (0, 0, 300, 200), structure=no_objects)
    assert table.rows() == ROWS
    assert {cell.origin for cell in table.cells} == {"rules"}


def test_names_and_a_header_without_rules() -> None:
    """Only the numbers are ruled."""
    content = ruled(xs=X[1:], ys=(140, 110, 80, 50))
    content += "".join(text(x, y, words) for x, y, words in [*WORDS, (45, 90, "b"), (125, 90, "5"), (205, 90, "6")])
    (table,) = tables_of(page_of(content), PLACE)
    assert table.rows() == [["Name", "Before", "After"], ["a", "1", "2"], ["b", "5", "6"], ["c", "3", "4"]]
    assert {cell.origin for cell in table.cells} == {"rules"}


PARAGRAPH = "".join(
    text(40, y, "A line of a paragraph that has many more words than its table", 8) for y in (196, 186, 176)
)
BESIDE = [*WORDS, (45, 90, "b"), (125, 90, "5"), (205, 90, "6")]


@pytest.mark.parametrize(
    ("content", "shapes"),
    [
        (PARAGRAPH + ruled() + TEXTS, [(4, 3)]),
        (
            PARAGRAPH
            + ruled(ys=(165, 140, 115))
            + ruled(ys=(90, 65, 40))
            + "".join(text(x + 5, y + 7, f"{x}{y}") for x in X[:3] for y in (140, 115, 65, 40)),
            [(2, 3), (2, 3)],
        ),
        (ruled(xs=X[1:], ys=(170, 140, 110, 80, 50)) + "".join(text(*one) for one in BESIDE), [(4, 3)]),
    ],
    ids=["a paragraph", "two tables", "names beside rules"],
)
def test_rules_in_a_picture_of_more_than_a_table(content: str, shapes: list[tuple[int, int]]) -> None:
    place = Detection("table", 0.9, (60.0, 4.0, 540.0, 340.0))
    found = TableExtractor(no_objects, lambda image, threshold: [place])(page_of(content).image)
    assert [table.shape for table in found] == shapes
    assert {cell.origin for table in found for cell in table.cells} == {"ink"}


@pytest.mark.parametrize("gap", [0, 5])
def test_gaps_between_boxes_of_cells_are_no_columns(gap: float) -> None:
    """As pages of the web have them, a box around each cell."""
    boxes = [(x0, y1, x1 - gap, y0) for x0, x1 in pairwise(X) for y0, y1 in pairwise(Y)]
    content = "".join(line(a, c, a, b) + line(d, c, d, b) + line(a, b, d, b) + line(a, c, d, c) for a, b, d, c in boxes)
    (table,) = tables_of(page_of(content + TEXTS), PLACE)
    assert table.rows() == ROWS


def words_at(*rows: float) -> str:
    return "".join(text(x, y, "text here", 8) for x in (45, 150, 210) for y in rows)


@pytest.mark.parametrize(
    "content",
    [
        line(5, 5, 295, 5) + line(5, 195, 295, 195) + line(5, 5, 5, 195) + line(295, 5, 295, 195) + words_at(150, 100),
        ruled(xs=(20, 30, 290), ys=(195, 185, 5)) + words_at(150, 130, 110, 90),  # a frame around columns of text
        ruled() + "".join(text(30, y, "12", 8) for y in Y),  # a chart's grid: the words are beside it
        "".join(ruled((x, x + 8), (y + 8, y)) + text(x + 12, y, "choice", 8) for x in (40, 140) for y in (60, 80, 99)),
        ruled(xs=range(40, 260, 12), ys=(120, 105)),  # a field for one letter each
        "".join(line(40, y, 260, y) for y in Y) + words_at(150, 120),  # nothing but lines across
    ],
    ids=["page border", "frame", "chart", "boxes", "field", "lines"],
)
def test_what_is_no_table(content: str) -> None:
    assert tables_of(page_of(content)) == []


@pytest.mark.parametrize(("high", "count"), [(18, 0), (48, 1)])
def test_rows_too_low_for_text_are_strokes_of_letters(high: int, count: int) -> None:
    ys, xs = [100.0 + high * i for i in range(4)], [100.0, 200.0, 300.0]
    rules = Rules(tuple(Rule(y, 100.0, 300.0) for y in ys), tuple(Rule(x, ys[0], ys[-1]) for x in xs))
    words = [Word("i", (x + 20, y + 3, x + 40, y + high - 3)) for x in xs[:2] for y in ys[:3]]
    page = np.full((3000, 3000, 3), 255, np.uint8)
    found, _ = ruled_places(page, [], words, lambda box: words, rules, True)
    assert len(found) == count


def test_signs_between_words_are_no_gap():
    content = ruled((40, 140, 260)) + "".join(text(45, y, "Men (>= 18 yrs)") for y in (150, 120, 90, 60))
    content += "".join(text(145, y, "1728") for y in (150, 120, 90, 60))
    (table,) = tables_of(page_of(content), (30, 25, 270, 160), structure=no_objects)
    assert table.rows() == [["Men (>= 18 yrs)", "1728"]] * 4


def test_two_gaps_side_by_side_are_no_column():
    """Three lines for the side of a table's cells, five points apart: both gaps together are as wide as letters."""
    content = "".join(line(40, y, 260, y) for y in Y)
    content += "".join(line(x, 170, x, 50) for x in (40, 114, 119, 124, 200, 260)) + TEXTS
    (table,) = tables_of(page_of(content), PLACE)
    assert table.rows() == ROWS


def test_sentences_with_numbers_are_no_rows():
    content = ruled((40, 120, 260), (170, 140, 70, 50)) + text(45, 150, "Loan") + text(125, 150, "Rate")
    lines = [("3 years", "Rate 5.12 % now 5.53 %"), ("saver", "Only 4.99 % now 5.15 %")]
    content += "".join(text(45, 125 - 12 * i, a) + text(125, 125 - 12 * i, b) for i, (a, b) in enumerate(lines))
    content += text(45, 55, "No") + text(125, 55, "Rate 1")
    (table,) = tables_of(page_of(content), (30, 25, 270, 160), structure=no_objects)
    assert table.shape == (3, 2)


def test_months_are_names():
    content = ruled((40, 120, 190, 260), (170, 140, 80, 50))
    words = [(150, "Month", "Flights", "Seats"), (122, "Apr-2015", "653", "107"), (106, "May-2015", "686", "110")]
    words += [(90, "Jun-2015", "667", "108"), (60, "Total", "2007", "325")]
    content += "".join(text(x, y, one) for y, *names in words for x, one in zip((45, 125, 195), names, strict=True))
    (table,) = tables_of(page_of(content), (30, 25, 270, 160))
    assert table.rows() == [list(names) for _, *names in words]


def test_a_lattice_on_a_form_is_a_table_of_its_own():
    """The detector takes the whole page, whose other lines have gaps in other places."""
    ys = (70, 52, 34, 16)
    content = ruled(ys=ys) + "".join(text(x + 5, y - 14, f"{x}") for x in X[:3] for y in ys[:3])
    above = "".join(text(x, y, "Name of it") for y in (180, 155, 130, 105) for x in (70, 170))
    (table,) = tables_of(page_of(content + above), (20, 5, 280, 195), structure=no_objects)
    assert table.rows() == [[str(x) for x in X[:3]]] * 3
