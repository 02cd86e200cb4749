"""Titles, notes, paragraphs and charts at and instead of tables: lines of typewriting with an answer each."""

from __future__ import annotations

import pytest

from zoo.apps.tables import Cell, Table, Word
from zoo.apps.tables.surrounding import why_no_table, without_titles_and_notes

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


def test_what_is_no_table() -> None:
    prose = [
        "The odds of a female living",
        "in such housing were the",
        "same as those of others and",
        "went on to be the",
    ]
    assert "text in columns" in (why_no_table(table([[line, line] for line in prose]), 0.5) or "")
    prose[1:3] = ["in such housing were the same,", "or so. Those of others and"]
    beside = ["Figure 2", *prose, "8.4", "4.2", "0.5"]
    assert "text in columns" in (
        why_no_table(table([[a, "Age", b] for a, b in zip(beside, [*prose, *prose], strict=True)]), 0.5) or ""
    )
    assert why_no_table(table([[line, str(i)] for i, line in enumerate(prose)]), 0.5) is None
    assert "no text" in (why_no_table(table([["", ""]]), 0.5) or "")
    assert "one row" in (why_no_table(table([["1", "2"]]), 0.1) or "")
    assert why_no_table(table([["1", "2"]]), 0.9) is None  # a picture of one row
    chart = [["80", "", "", "", ""], ["60", "", "", "", ""], ["", "2004", "2005", "", ""]]
    assert "chart" in (why_no_table(table(chart), 0.5) or "")
