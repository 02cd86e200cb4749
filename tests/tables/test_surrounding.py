"""Titles, notes, paragraphs and charts at and instead of tables: lines of typewriting with an answer each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from zoo.apps.tables import Cell, Table, Word
from zoo.apps.tables.surrounding import fit_to_ink, has_lines, why_no_table, without_titles_and_notes

BORDERS = (0.0, 100.0, 200.0, 300.0)  # of three columns, pixels
TABLE = ["            2023      2024", "Sales       12        15", "Costs       7         9"]


def words(lines: list[str]) -> list[Word]:
    """Words of letters 8 pixels wide and 14 high, lines 18 pixels apart."""
    found = []
    for y, line in enumerate(lines):
        x = 0
        for part in line.split(" "):
            if part:
                found.append(Word(part, (8.0 * x, 18.0 * y, 8.0 * (x + len(part)), 18.0 * y + 14)))
            x += len(part) + 1
    return found


def table(texts: list[list[str]]) -> Table:
    R, C = len(texts), len(texts[0])
    rows = [(0.0, 18.0 * r, 100.0 * C, 18.0 * r + 18) for r in range(R)]
    columns = [(100.0 * c, 0.0, 100.0 * c + 100, 18.0 * R) for c in range(C)]
    cells = [Cell(r, c, 1, 1, rows[r], text) for r, row in enumerate(texts) for c, text in enumerate(row)]
    return Table(tuple(cells), tuple(rows), tuple(columns), (0.0, 0.0, 100.0 * C, 18.0 * R))


def left(lines: list[str]) -> str:
    every = words(lines)
    kept = without_titles_and_notes(every, table([["", "", ""]] * len(lines)))
    return " ".join(word.text for word in kept)


OF_TABLE = " ".join(word.text for word in words(TABLE))


@pytest.mark.parametrize(
    "lines",
    [
        ["This table shows what was sold"],
        ["This table shows what was sold", "in each year"],
        ["Table 3      Sales of each year"],
        ["[In thousands]"],
        ["               [In thousands]"],
        ["               (in millions)"],
        ["What was sold in each year", "(reference date: March)"],
    ],
)
def test_titles(lines: list[str]) -> None:
    assert left(lines + TABLE) == OF_TABLE


@pytest.mark.parametrize(
    "lines",
    [
        ["Source: us"],
        ["* estimated"],
        ["Sales are without those of March", "in each year"],
        ["Table 4. What is on another page"],
    ],
)
def test_notes(lines: list[str]) -> None:
    assert left(TABLE + lines) == OF_TABLE


@pytest.mark.parametrize(
    "lines",
    [
        ["              Sales of both years", *TABLE],  # over two columns
        [*TABLE, "Total"],
        [*TABLE[:2], "Of which", *TABLE[1:]],
        ["1,234,567,890 234,567,890 345,678", *TABLE],
        ["This is the only text of a table", "of two lines"],
    ],
)
def test_lines_of_tables(lines: list[str]) -> None:
    assert left(lines) == " ".join(word.text for word in words(lines))


def test_columns_as_close_as_words_are_no_titles() -> None:
    """Lines of read cells, 6 pixels apart at the border, each of which could be one text."""
    found = [
        Word(text, (x0, 18.0 * y, x1, 18.0 * y + 14))
        for y in range(6)
        for text, x0, x1 in (("cost of water", 10.0, 97.0), ("12 %", 103.0, 140.0))
    ]
    assert without_titles_and_notes(found, table([["", "", ""]] * 6)) == found


PROSE = ["The odds of a female living", "in such housing were the", "same as those of others and", "went on to be the"]


def test_what_is_no_table() -> None:
    prose = list(PROSE)
    assert "text in columns" in (why_no_table(table([[line, line] for line in prose]), 0.5) or "")
    assert why_no_table(table([[line, line] for line in prose]), 0.5, [-5.0, 18.0]) is None  # rules around its header
    assert why_no_table(table([[line, line] for line in prose]), 0.5, [18.0, 75.0]) is not None
    prose[1:3] = ["in such housing were the same,", "or so. Those of others and"]
    beside = ["Figure 2", *prose, "8.4", "4.2", "0.5"]
    assert "text in columns" in (
        why_no_table(table([[a, "Age", b] for a, b in zip(beside, [*prose, *prose], strict=True)]), 0.5) or ""
    )
    assert why_no_table(table([[line, str(i)] for i, line in enumerate(prose)]), 0.5) is None
    assert "no text" in (why_no_table(table([["", ""]]), 0.5) or "")
    assert "one row" in (why_no_table(table([["1", "2"]]), 0.1) or "")
    assert why_no_table(table([["1", "2"]]), 0.9) is None  # a picture of one row
    assert "one column" in (why_no_table(table([["a"], ["b"]]), 0.9) or "")
    chart = [["80", "", "", "", ""], ["60", "", "", "", ""], ["", "2004", "2005", "", ""]]
    assert "chart" in (why_no_table(table(chart), 0.5) or "")


def test_the_text_below_the_topmost_rule_is_no_title() -> None:
    lines = ["Group of what was sold abroad", *TABLE]
    shape = table([["", "", ""]] * len(lines))
    assert len(without_titles_and_notes(words(lines), shape, rule=-2.0)) == len(words(lines))
    assert len(without_titles_and_notes(words(lines), shape, rule=16.0)) == len(words(TABLE))


def ink(*boxes: tuple[int, int, int, int], colour: int = 0) -> np.ndarray:
    pixels = np.full((100, 400, 3), 255, np.uint8)
    for x0, y0, x1, y1 in boxes:
        pixels[y0:y1, x0:x1] = colour
    return pixels


def test_outer_edges_go_to_where_the_ink_ends() -> None:
    found = table([["", "", ""]] * 3)
    seen = fit_to_ink(found, (0.0, 0.0, 350.0, 70.0), ink((10, 2, 310, 4), (10, 60, 310, 62)), words(TABLE))
    assert seen.box == (10.0, 2.0, 310.0, 62.0)
    assert seen.row_boxes[0] == (10.0, 2.0, 310.0, 18.0)
    assert seen.column_boxes[2] == (200.0, 2.0, 310.0, 62.0)
    assert seen.row_boxes[1] == (10.0, 18.0, 310.0, 36.0)
    cells = {(cell.row, cell.column): cell.box for cell in seen.cells}
    assert cells[2, 2] == (10.0, 36.0, 310.0, 62.0)  # the cells of this table are as wide as its rows


def test_a_filled_header_is_ink() -> None:
    found = table([["", "", ""]] * 3)
    seen = fit_to_ink(found, (0.0, 0.0, 300.0, 54.0), ink((4, 3, 290, 18), colour=230), [])
    assert seen.box == (4.0, 3.0, 290.0, 54.0)  # 18 is a border of rows


def test_outer_edges_stay_where_words_are_between() -> None:
    found = table([["", "", ""]] * 3)
    title = Word("Title", (20.0, -16.0, 60.0, -4.0))
    pixels = ink((20, 2, 290, 40))
    moved = Word("Title", (20.0, 60.0, 60.0, 72.0))
    assert fit_to_ink(found, (0.0, 0.0, 300.0, 90.0), ink((0, 0, 300, 80)), [moved]).box[3] == 54.0
    cut = Word("Total", (20.0, 49.0, 60.0, 61.0))  # a word that the edge cuts is part of the table
    assert fit_to_ink(found, (0.0, 0.0, 300.0, 90.0), ink((20, 76, 290, 80)), [cut]).box[3] == 80.0
    assert (
        fit_to_ink(found, (0.0, 0.0, 300.0, 54.0), pixels, [*words(TABLE), title]).box[3] == 54.0
    )  # the last row's words
    assert fit_to_ink(found, (0.0, 0.0, 300.0, 54.0), ink(), []).box == found.box


def test_an_axis_in_two_cells_is_a_chart_of_several_panels() -> None:
    names, years = ["Austria", "Belgium", "Denmark"], "2004 2005 2006 2007"
    rows = [names, ["12", "13", ""], ["Spain", "France", "Italy"], [years, "", years]]
    assert why_no_table(table(rows), 1.0) == "has the same axis twice, as a chart of several panels"
    assert why_no_table(table([*rows[:3], [years, "", "4 8 2 1"]]), 1.0) is None
    assert why_no_table(table([rows[3], *rows[:3]]), 1.0) is None  # a heading


def test_a_row_of_even_steps_below_others_is_an_axis() -> None:
    names = ["2001", "30.5", "49.0", "20.4", "x"]
    assert why_no_table(table([names, names, ["0%", "10%", "20% 30%", "40%", ""]]), 1.0) == "has the axis of a chart"
    for last in (["1990", "2000", "2010", "2021", "2030"], ["10", "20", "30", "40", ""], ["5", "5", "5", "5", "5"]):
        assert why_no_table(table([names, names, last]), 1.0) is None
    years = ["2001", "2002", "2003", "2004", "2005"]
    assert why_no_table(table([years, names, names]), 1.0) is None
    assert why_no_table(table([names, ["1", "2", "3", "4", "5"]]), 1.0) is None  # a scale
    assert why_no_table(table([names, ["10", "20", "30", "40", "50"]]), 1.0) == "has the axis of a chart"
    beside = {
        "4 000|3 000|2 000|1 000|0": "has the axis of a chart",
        "4,500|4,000 3,500 3,000|2,500 2,000": "has the axis of a chart",
        "2020|2015|2010|2005|2000": None,
        "9|8|7|6|5": None,
    }
    for column, reason in beside.items():
        assert why_no_table(table([[text, ""] for text in column.split("|")]), 1.0) == reason
        assert why_no_table(table([[text, "a", "b"] for text in column.split("|")]), 1.0) is None  # amounts
    assert why_no_table(table([[line, ""] for line in PROSE]), 0.5, is_ruled=True) == "is text in columns"
    assert why_no_table(table([["1"], ["2"]]), 0.5, is_ruled=True) is None


def test_a_few_texts_without_rules_fills_and_numbers_are_no_table() -> None:
    names = table([["Vera Holm", "Li Na", "Jan Berg"], ["Oslo", "Lund", "Graz"]])
    assert "a few texts" in (why_no_table(names, 0.1, is_drawn=False) or "")
    assert why_no_table(names, 0.1) is None
    assert why_no_table(names, 0.9, is_drawn=False) is None  # a picture of a small table
    assert why_no_table(table([["a", "12"], ["b", "7"]]), 0.1, is_drawn=False) is None
    pixels = np.full((60, 200, 3), 255, np.uint8)
    pixels[20:30, 10:60] = 0
    assert not has_lines(pixels, (0.0, 10.0, 199.0, 50.0))
    pixels[40] = 200
    assert has_lines(pixels, (0.0, 10.0, 199.0, 50.0))


def test_lists_contents_and_fields_are_no_tables() -> None:
    contents = [["1 Aims", "3"], ["2 Ways", "3"], ["2.1 Samples", "5"], ["2.2 Costs", "7"], ["Notes", "9"]]
    assert why_no_table(table(contents), 0.5) == "is a table of contents"
    for c, changed in ((1, "1"), (0, "100 7")):  # pages that do not go up, names that are numbers
        others = [[*row[:c], changed, *row[c + 1 :]] if i > 1 else row for i, row in enumerate(contents)]
        assert why_no_table(table(others), 0.5) is None
    listed = table([["1.", "Wash the cups"], ["2.", "Dry the plates"], ["a)", "Sort all 12"]])
    assert why_no_table(listed, 0.1, is_drawn=False) == "is a list"
    assert why_no_table(listed, 0.1) is None
    fields = table([["Total:", "12"], ["Paid:", "7"], ["Due:", "5"]])
    assert "fields" in (why_no_table(fields, 0.1, is_drawn=False) or "")
    assert why_no_table(fields, 0.9, is_drawn=False) is None  # a picture of a small table
    assert "words" in (why_no_table(table([["r λ", ")"], ["r - λ", ")"], ["x", ""]]), 0.9) or "")


def test_a_column_of_prose_beside_a_figure_is_no_table() -> None:
    prose = [
        "The odds of a female living",
        "in such housing were the same,",
        "as those of others, and",
        "went on to be so.",
    ]
    beside = table([[line, name] for line, name in zip(prose, ["Born", "", "Aged", ""], strict=True)])
    assert why_no_table(beside, 0.5) == "is text beside a figure or a list"
    assert why_no_table(beside, 0.5, [-5.0, 18.0]) is None  # its rows are ruled
    paragraphs = table([["Peace " * 20, "War " * 20], ["War " * 20, ""]])
    assert why_no_table(paragraphs, 0.5) == "is text beside a figure or a list"


def test_boxes_around_the_lines_of_a_text_are_no_table() -> None:
    cut = [["The odds of a", "female"], ["living in such", "housing were"], ["the same as", "those of"], ["12", "7"]]
    cells = [
        Cell(r, c, 1, wide, (0.0, 18.0 * r, 100.0, 18.0 * r + 18), text)
        for r, (row, at) in enumerate(zip(cut, (1, 3, 2, 5), strict=True))
        for text, c, wide in zip(row, (0, at), (at, 6 - at), strict=True)
    ]
    spread = replace(table([[""] * 6] * 4), cells=tuple(cells))
    assert why_no_table(spread, 0.5, is_ruled=True) == "is text in columns"
    assert why_no_table(table(cut), 0.5, is_ruled=True) is None  # all rows have the same columns
    lines = table([["", line] for line in PROSE[:1] * 5])
    assert why_no_table(replace(lines, box=(0.0, 0.0, 150.0, 90.0)), 0.5, is_ruled=True) == "is text in columns"
    assert why_no_table(replace(lines, box=(0.0, 0.0, 150.0, 90.0)), 0.5) == "is text in lines"
    assert why_no_table(replace(lines, box=(0.0, 0.0, 900.0, 90.0)), 0.5) is None  # a column to fill in


def test_lines_of_dense_letters_are_no_rules() -> None:
    pixels = np.full((60, 200, 3), 255, np.uint8)
    pixels[20:30] = (np.arange(200) * 37 % 200)[:, None]  # of many shades
    assert not has_lines(pixels, (0.0, 10.0, 199.0, 50.0))
    pixels[40] = 200
    assert has_lines(pixels, (0.0, 10.0, 199.0, 50.0))


def test_rules_without_texts_are_a_chart_s() -> None:
    bars = table([["", "3.5", "", ""], *[[""] * 4] * 4])
    assert "chart" in (why_no_table(bars, 0.5, is_ruled=True, is_read=True) or "")
    blank = table([["Name", "Day", "From", "To"], *[[""] * 4] * 4])
    assert why_no_table(blank, 0.5, is_ruled=True, is_read=True) is None
