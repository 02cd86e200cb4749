"""Words on their side in tables of PDFs: headings of narrow columns, names beside rows, and what is in a margin."""

from __future__ import annotations

import pytest

from tests.small_pdf import line, pdf, text
from zoo.apps.documents import Word, open_document
from zoo.apps.tables import Table, TableExtractor
from zoo.apps.tables.structure import build_table
from zoo.apps.tables.turned_words import split_directions, with_turned_lines
from zoo.images.boxes import Detection

HEADS = ["Oxygen saturation", "Temperature", "Blood pressure", "Heart rate"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
NUMBERS = [[f"{(7 * i + 13 * j) % 90 + 10}.{j}" for j in range(4)] for i in range(6)]


def on_side(x: float, y: float, words: str, way: int = 1) -> str:
    """Content that shows words running upwards (1) or downwards (-1) from a place in points."""
    return f"BT /F1 10 Tf 0 {way} {-way} 0 {x} {y} Tm ({words}) Tj ET\n"


def table(way: int, ruled: bool) -> str:
    content = text(60, 300, "Day", 10)
    for j, one in enumerate(HEADS):
        content += on_side(148 + 60 * j, 300 if way > 0 else 385, one, way)
    for i, (day, numbers) in enumerate(zip(DAYS, NUMBERS, strict=True)):
        content += text(60, 280 - 18 * i, day, 10)
        content += "".join(text(140 + 60 * j, 280 - 18 * i, one, 10) for j, one in enumerate(numbers))
    return content + "".join(line(50, y, 380, y) for y in (395, 292, 184) if ruled)


@pytest.fixture(scope="module")
def extract() -> TableExtractor:
    pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
    return TableExtractor()


def rows_of(content: str, extract: TableExtractor) -> list[list[str]]:
    page = open_document(pdf([content], size=(420, 460))).page(1)
    (found,) = extract(page.image, page.words, rules=page.rules)
    return found.rows(repeat=False)


@pytest.mark.parametrize(("way", "ruled"), [(1, False), (1, True), (-1, True)])
def test_headings_on_their_side(way: int, ruled: bool, extract: TableExtractor) -> None:
    body = [[day, *numbers] for day, numbers in zip(DAYS, NUMBERS, strict=True)]
    assert rows_of(table(way, ruled), extract) == [["Day", *HEADS], *body]


def test_a_name_beside_some_rows_is_a_cell_over_them(extract: TableExtractor) -> None:
    found = rows_of(table(1, True) + on_side(45, 244, "Week one"), extract)
    assert [row[0] for row in found] == ["", "Week one", "", "", "", "", ""]
    assert found[1][1:] == ["Monday", *NUMBERS[0]]


def test_a_stamp_in_the_margin_is_in_no_cell(extract: TableExtractor) -> None:
    stamp = on_side(30, 60, "A stamp that runs along the page, as preprints have it, much longer than its table is")
    assert rows_of(table(1, True) + stamp, extract) == rows_of(table(1, True), extract)


def test_lines_of_words_on_their_side() -> None:
    words = [
        Word("a", (0, 0, 30, 10)),
        Word("up", (50, 60, 60, 90), angle=-90),
        Word("wards", (50, 20, 60, 55), angle=-90),
        Word("next", (64, 40, 74, 90), angle=-90),
        Word("down", (90, 0, 100, 30), angle=90),
        Word("far", (90, 60, 100, 90), angle=90),
    ]
    upright, lines = split_directions(words)
    assert [word.text for word in upright] == ["a"]
    assert [(one.text, one.box) for one in lines] == [
        ("up wards", (50, 20, 60, 90)),
        ("next", (64, 40, 74, 90)),
        ("down", (90, 0, 100, 30)),
        ("far", (90, 60, 100, 90)),
    ]


def grid(rows: int, columns: int, header: bool, words: list[Word]) -> Table:
    """A table of rows 20 high and columns 100 wide."""
    objects = [Detection("table row", 0.9, (0, 20.0 * r, 100.0 * columns, 20.0 * r + 20)) for r in range(rows)]
    objects += [Detection("table column", 0.9, (100.0 * c, 0, 100.0 * c + 100, 20.0 * rows)) for c in range(columns)]
    if header:
        objects.append(Detection("table column header", 0.9, (0, 0, 100.0 * columns, 20)))
    return build_table(objects, words)


WORDS = [
    Word(f"{r}{c}", (100.0 * c + 40, 20.0 * r + 4, 100.0 * c + 80, 20.0 * r + 16)) for r in range(4) for c in range(3)
]


def test_in_one_row_it_is_in_its_cell() -> None:
    found = with_turned_lines(grid(4, 3, False, WORDS), [Word("x", (110, 42, 120, 58), angle=90)], WORDS)
    assert found.rows()[2] == ["20", "21 x", "22"]


def test_to_the_right_of_its_column() -> None:
    found = with_turned_lines(grid(4, 3, True, WORDS), [Word("both", (285, 22, 297, 58), 0.9, 90)], WORDS)
    assert [row[3] for row in found.rows()] == ["", "both", "both", ""]
    assert found.shape == (4, 4)
    (cell,) = (one for one in found.cells if one.text == "both")
    assert (cell.row, cell.row_span, cell.column, cell.confidence) == (1, 2, 3, 0.9)


def test_two_beside_one_column() -> None:
    lines = [Word("first", (5, 2, 17, 38), angle=-90), Word("others", (5, 42, 17, 78), angle=-90)]
    found = with_turned_lines(grid(4, 3, False, WORDS), lines, WORDS)
    assert [row[0] for row in found.rows()] == ["first", "first", "others", "others"]
    assert found.shape == (4, 4)


def test_among_the_words_of_its_column_it_is_left_out() -> None:
    words = [*WORDS, Word("left", (100, 24, 115, 36)), Word("left", (100, 44, 115, 56))]
    before = grid(4, 3, True, words)
    assert with_turned_lines(before, [Word("both", (118, 22, 130, 58), angle=90)], words) == before


def test_headings_of_a_table_without_a_header() -> None:
    lines = [Word("heading", (150 + 100 * c, -70, 162 + 100 * c, -4), angle=-90) for c in range(2)]
    found = with_turned_lines(grid(4, 3, False, WORDS), lines, WORDS)
    assert (found.header_rows, found.shape) == (1, (5, 3))
    assert found.rows()[0] == ["", "heading", "heading"]
    assert found.box[1] == -70
    far = [Word("heading", (150, -170, 162, -100), angle=-90)]
    assert with_turned_lines(grid(4, 3, False, WORDS), far, WORDS).shape == (4, 3)


def test_a_table_without_such_words_is_the_same() -> None:
    before = grid(4, 3, True, WORDS)
    assert with_turned_lines(before, [], WORDS) is before
