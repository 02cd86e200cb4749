"""Lattices and the words in them: rows and columns that rules do not show, without any page."""

from __future__ import annotations

import pytest

from zoo.apps.tables import Word
from zoo.apps.tables.lattice import Lattice
from zoo.apps.tables.lattice_words import with_cut_cells, with_lines, with_sides, without_gaps


def test_a_stroke_in_a_gap_between_cells_is_no_column() -> None:
    xs, ys = (0.0, 50.0, 54.0, 100.0), (0.0, 20.0, 40.0)
    lattice = Lattice(xs, ys, tuple((r, c, 1, 1) for r in range(2) for c in range(3)), "ink")
    words = [Word(text, (x, y, x + 20.0, y + 10.0)) for x in (10.0, 60.0) for y, text in ((5.0, "Name"), (25.0, "1"))]
    edge = Word("−", (51.0, 5.0, 53.0, 15.0))
    assert without_gaps(lattice, [*words, edge]) == without_gaps(lattice, words)
    assert len(without_gaps(lattice, words).xs) == 3
    assert len(without_gaps(lattice, [*words, Word("i", edge.box)]).xs) == 4


def test_lines_of_numbers_in_a_band_are_rows():

    lattice = Lattice(
        (0, 100, 200, 300, 400), (0, 50, 100), tuple((r, c, 1, 1) for r in (0, 1) for c in range(4)), "ink"
    )
    numbers = [("6", 0, 20), ("OTSL", 100, 10), ("0.9", 200, 10), ("HTML", 100, 30), ("0.8", 200, 30)]
    band = [Word(text, (x + 5, y, x + 45, y + 10)) for text, x, y in numbers]
    more = [Word("1", (x + 5, y + 50, x + 15, y + 60)) for x in (200, 250) for y in (10, 30)]
    assert len(with_lines(lattice, band).ys) == 3  # one number in each line
    found = with_lines(lattice, [*band, Word("7", (360, 10, 370, 20)), Word("5", (360, 30, 370, 40))])
    assert found.ys == (0, 25, 50, 100)
    assert (0, 0, 2, 1) in found.cells
    assert (1, 2, 1, 1) in found.cells
    assert len(with_lines(lattice, more).ys) == 3


def test_words_that_are_higher_than_their_row_leave_its_borders_in_order():
    """As words on their side are, where a picture is read as if it were upright."""
    lattice = Lattice(
        (0, 100, 200, 300, 400), (0, 50, 100), tuple((r, c, 1, 1) for r in (0, 1) for c in range(4)), "ink"
    )
    tall = [Word("7", (x + 5, -30, x + 45, 60)) for x in (0, 200, 300)]
    words = [*tall, Word("1", (105, 10, 145, 20)), *(Word("5", (x + 5, 30, x + 45, 40)) for x in range(0, 400, 100))]
    assert list(found := with_lines(lattice, words).ys) == sorted(found)


def test_a_name_beside_lines_of_numbers_is_a_cell_of_its_own():
    lattice = Lattice(
        (0, 100, 200, 300, 400), (0, 50, 100), tuple((r, c, 1, 1) for r in (0, 1) for c in range(4)), "ink"
    )

    def band(*lines: str) -> list[Word]:
        cells = [line.split("|") for line in lines]
        return [
            Word(text, (c * 100 + 5 + 30 * i, 10 + 15 * r, c * 100 + 30 + 30 * i, 20 + 15 * r))
            for r, line in enumerate(cells)
            for c, cell in enumerate(line)
            for i, text in enumerate(cell.split())
        ]

    found = with_lines(lattice, band("WBC|TG|10.64 (3.7)|0.5", "|CG|12.15 (4.6)|<0.001 d"))
    assert (0, 0, 2, 1) in found.cells
    assert {(0, 2, 1, 1), (1, 2, 1, 1)} <= set(found.cells)
    parted = with_lines(lattice, band("PaO2|Group C|39.8±7|41.1±2", "(mmHg)|Group L|40.1±8|44.1±9", "|P|0.3|0.02"))
    assert len(parted.ys) == 5
    assert (0, 0, 1, 1) in parted.cells
    one = with_lines(lattice, band("Age|n|56.4 ± 1.4|52.4 ± 2.1", "|(%)|(100%)|(97%)"))
    assert len(one.ys) == 3


def test_a_border_that_is_not_seen_in_one_row_goes_through_a_gap_of_its_words():
    cells = ((0, 0, 1, 1), (0, 1, 1, 1), (1, 0, 1, 2))
    lattice = Lattice((0.0, 100.0, 200.0), (0.0, 20.0, 40.0), cells, "ink")
    left, right = Word("x", (5.0, 25.0, 45.0, 35.0)), Word("x", (150.0, 25.0, 190.0, 35.0))
    assert len(with_cut_cells(lattice, [left, right]).cells) == 4
    assert with_cut_cells(lattice, [left]) == lattice
    near = Word("x", (102.0, 25.0, 140.0, 35.0)), Word("x", (60.0, 25.0, 98.0, 35.0))
    assert with_cut_cells(lattice, near) == lattice  # a text that goes on across the border
    assert with_cut_cells(lattice, [Word("x", (60.0, 25.0, 140.0, 35.0))]) == lattice


def test_a_heading_above_named_numbers_is_a_row_of_its_own():
    lattice = Lattice((0, 90, 200, 290), (0, 80, 100), tuple((r, c, 1, 1) for r in range(2) for c in range(3)), "ink")
    texts = [("Score, n (%)", 5, 5), *((text, 5, y) for text, y in (("<6", 30), ("7", 55)))]
    texts += [(f"{x + y} (0)", x, y) for x in (100, 210) for y in (30, 55)]
    words = [Word(text, (x, y, x + 60, y + 10)) for text, x, y in texts]
    found = with_lines(lattice, words)
    assert len(found.ys) == 5
    assert [len(own) for own in found.words_of_cells(words)][:9] == [1, 0, 0, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(("gap", "rows"), [(4.0, 2), (15.0, 3)])
def test_a_caption_across_the_borders_is_no_row_of_headings(gap: float, rows: int):
    xs, ys = (0.0, 50.0, 100.0, 150.0), (20.0, 40.0, 60.0)
    lattice = Lattice(xs, ys, tuple((r, c, 1, 1) for r in range(2) for c in range(3)), "rules")
    # No word is across a border, but those of one text are nearer than two headings.
    words = [Word("Table", (10.0, 5.0, 50.0 - gap / 2, 15.0)), Word("2:", (50.0 + gap / 2, 5.0, 100.0 - gap / 2, 15.0))]
    words.append(Word("exports", (100.0 + gap / 2, 5.0, 140.0, 15.0)))
    assert len(with_sides(lattice, words).ys) - 1 == rows


@pytest.mark.parametrize(("text", "columns"), [("2.5", 2), ("Inc.", 1)])
def test_numbers_near_a_border_that_is_not_drawn_are_cells_of_their_own(text: str, columns: int):
    lattice = Lattice((0.0, 50.0, 100.0), (0.0, 20.0, 40.0), ((0, 0, 1, 2), (1, 0, 1, 1), (1, 1, 1, 1)), "rules")
    words = [Word("202", (15.0, 5.0, 40.0, 17.0)), Word(text, (54.0, 5.0, 80.0, 17.0))]
    assert sum(cell[0] == 0 for cell in with_cut_cells(lattice, words).cells) == columns
