"""Reasons to doubt ruled tables: of lattices that fit their words, and of lattices that do not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from zoo.apps.tables import Table, Word
from zoo.apps.tables.doubts import find_doubts
from zoo.apps.tables.lattice import Lattice, lattice_table
from zoo.apps.tables.text_lines import text_lines

PAPER = np.full((220, 320, 3), 255, np.uint8)
FULL = [["Name", "2023", "2024"], ["Cash", "100", "200"], ["Debts", "300", "400"]]


def doubted(rows: list[list[str]], pixels: np.ndarray = PAPER, more: tuple[Word, ...] = ()) -> Table:
    """The table of rows that are 40 pixels high and columns of 100, a word of 60 x 10 in each that has a text."""
    xs, ys = (0.0, 100.0, 200.0, 300.0), tuple(40.0 * r for r in range(len(rows) + 1))
    lattice = Lattice(xs, ys, tuple((r, c, 1, 1) for r, c in itertools.product(range(len(rows)), range(3))), "rules")
    words = [
        Word(text, (100.0 * c + 10, 40.0 * r + 5, 100.0 * c + 70, 40.0 * r + 15))
        for r, row in enumerate(rows)
        for c, text in enumerate(row)
        if text
    ]
    words += more
    return find_doubts(lattice_table(lattice, words, 1), text_lines(pixels, words), None, pixels)


def reasons(table: Table) -> set[tuple[str, int, int]]:
    return {(reason, cell.row, cell.column) for cell in table.cells for reason in cell.doubts}


def test_a_lattice_that_fits_its_words_is_not_doubted():
    assert doubted(FULL).all_doubts == ()
    assert doubted([["Name", "", "2024"], ["Cash", "", ""]]).all_doubts == ()


def test_a_caption_and_a_note_within_the_rules_are_doubted():
    table = doubted([["Table 3 Assets", "", ""], *FULL, ["Source: the bank", "", ""]])
    assert reasons(table) == {("perhaps the table's title", 0, 0), ("perhaps a note below the table", 4, 0)}
    assert doubted([["Balance Sheet", "", ""], *FULL]).all_doubts == ()


def test_a_line_that_goes_on_below_a_rule_is_doubted():
    assert reasons(doubted([FULL[0], ["", "kg/year", ""], *FULL[1:]])) == {
        ("its text goes on from the row above: perhaps one row", 1, 1)
    }


@pytest.mark.parametrize(("y", "is_doubted"), [(18.0, False), (28.0, True)])
def test_a_wide_space_across_a_row_is_doubted(y: float, is_doubted: bool):
    below = tuple(Word("more", (100.0 * c + 10, 40 + y, 100.0 * c + 70, 50 + y)) for c in range(3))
    lines = tuple(Word("a line", (10.0, 5.0 + y, 70.0, 15.0 + y)) for y in (132.0, 144.0))
    found = reasons(doubted([*FULL, ["Sums", "500", "600"]], more=(*below, *lines)))
    assert found == (
        {("a space across its row: perhaps several rows", 1, c) for c in range(3)} if is_doubted else set()
    )


@pytest.mark.parametrize(("high", "is_doubted"), [(10, True), (3, False)])
def test_ink_without_a_word_is_doubted(high: int, is_doubted: bool):
    pixels = PAPER.copy()
    pixels[50 : 50 + high, 120:160:3] = 0  # a word that the text layer lacks, or a row of dots
    found = reasons(doubted([FULL[0], ["Cash", "", "200"]], pixels))
    assert found == ({("there is ink in it, but no text", 1, 1)} if is_doubted else set())
