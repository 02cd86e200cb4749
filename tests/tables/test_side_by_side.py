"""Tables beside each other that a detector or the network took for one."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from zoo.apps.tables import Cell, Table, Word
from zoo.apps.tables.finding import ink_words
from zoo.apps.tables.side_by_side import part_repeated_header, part_side_by_side
from zoo.images.boxes import Box


def words_of(x: float, y: float, pitch: float, rows: int = 6) -> list[Word]:
    """Rows of a name and a number."""
    return [
        Word(f"{name}{r}", (x + dx, y + pitch * r, x + dx + 40, y + pitch * r + 10))
        for r in range(rows)
        for name, dx in (("name", 0), ("1", 80))
    ]


@pytest.mark.parametrize(("second", "tables"), [((48, 20), 2), ((40, 20), 1)], ids=["not level", "level"])
def test_lines_that_are_not_level_are_two_tables(second: tuple[float, float], tables: int):
    words = [*words_of(20, 40, 20), *words_of(220, *second)]
    boxes = part_side_by_side((0.0, 0.0, 400.0, 200.0), words)
    assert len(boxes) == tables
    if tables == 2:
        (_, _, right, bottom), (left, top, *_) = boxes
        assert 140 < right == left < 220
        assert (top, bottom) == (43.0, 155.0)


@pytest.mark.parametrize(("second", "tables"), [(50, 2), (40, 1)], ids=["not level", "level"])
def test_the_same_in_the_ink_of_a_picture(second: int, tables: int):
    image = Image.new("RGB", (400, 200), "white")
    for x, y in ((20, 40), (220, second)):
        for row in range(6):
            for dx, text in ((0, f"name {row}"), (80, str(row))):
                ImageDraw.Draw(image).text((x + dx, y + 20 * row), text, "black", font_size=12)
    box = (0.0, 0.0, 400.0, 200.0)
    assert len(part_side_by_side(box, ink_words(np.asarray(image), box))) == tables


def test_texts_beside_a_table_are_no_table():
    sentences = [
        Word("word", (220 + 30 * i, 45 + 13 * r, 245 + 30 * i, 55 + 13 * r)) for r in range(8) for i in range(5)
    ]
    assert len(part_side_by_side((0.0, 0.0, 400.0, 200.0), [*words_of(20, 40, 20), *sentences])) == 1


def table_of(rows: list[list[str]], origin: str = "model") -> Table:
    def box(r: int, c: int) -> Box:
        return 50.0 * c, 20.0 * r, 50.0 * c + 50, 20.0 * r + 20

    R, C = len(rows), len(rows[0])
    cells = [
        Cell(r, c, 1, 1, box(r, c), text, is_header=r == 0, origin=origin)
        for r, row in enumerate(rows)
        for c, text in enumerate(row)
    ]
    lines = tuple((0.0, 20.0 * r, 50.0 * C, 20.0 * r + 20) for r in range(R))
    columns = tuple((50.0 * c, 0.0, 50.0 * c + 50, 20.0 * R) for c in range(C))
    return Table(tuple(cells), lines, columns, (0.0, 0.0, 50.0 * C, 20.0 * R), 0.9, 1)


AGES = [["Age", "Number"] * 3, ["1", "10", "4", "40", "7", "70"], ["2", "20", "5", "50", "8", "80"]]
AGES += [["3", "30", "6", "60", "", ""]]
PAPER = np.full((120, 400, 3), 255, np.uint8)


def test_a_header_that_repeats_is_that_of_tables_beside_each_other():
    first, second, third = part_repeated_header(table_of(AGES), PAPER)
    assert first.rows() == [["Age", "Number"], ["1", "10"], ["2", "20"], ["3", "30"]]
    assert second.rows()[1] == ["4", "40"]
    assert third.rows() == [["Age", "Number"], ["7", "70"], ["8", "80"]]
    assert third.box == (200.0, 0.0, 300.0, 60.0)
    assert [one.header_rows for one in (first, second, third)] == [1, 1, 1]


@pytest.mark.parametrize(
    "table",
    [
        table_of(AGES, "rules"),
        table_of([["Name", *row] for row in AGES]),
        table_of([["2005"] * 4, *(["1", "2", "3", "4"] for _ in range(4))]),
        table_of([["", "%", "", "%"], *(["1", "2", "3", "4"] for _ in range(4))]),
    ],
    ids=["ruled", "names", "one text", "blank"],
)
def test_other_headers_are_those_of_one_table(table: Table):
    assert part_repeated_header(table, PAPER) == [table]


@pytest.mark.parametrize("down", [False, True])
def test_a_rule_across_holds_a_table_together_and_one_down_parts_it(down: bool):
    page = PAPER.copy()
    page[20] = 0
    if down:
        page[:, 100] = page[:, 200] = 0
    assert len(part_repeated_header(table_of(AGES), page)) == (3 if down else 1)
