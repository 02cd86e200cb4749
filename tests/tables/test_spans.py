"""Spanning cells that the words contradict."""

from __future__ import annotations

import pytest

from zoo.apps.tables import Table, Word, build_table
from zoo.apps.tables.reading import is_legible
from zoo.images.boxes import Detection

SPANNING, PROJECTED = "table spanning cell", "table projected row header"


def table(texts: list[list[str]], *spans: tuple[str, int, int, int, int], header: int = 1) -> Table:
    """A table of columns 100 wide and rows 20 high; a text is at the left of its cell, ">" before it moves it on."""
    rows, columns = len(texts), len(texts[0])
    objects = [Detection("table row", 1.0, (0, 20 * r, 100 * columns, 20 * r + 20)) for r in range(rows)]
    objects += [Detection("table column", 1.0, (100 * c, 0, 100 * c + 100, 20 * rows)) for c in range(columns)]
    objects += [Detection("table column header", 1.0, (0, 0, 100 * columns, 20 * header))]
    objects += [
        Detection(label, 0.9, (100.0 * c, 20.0 * r, 100.0 * (c + wide), 20.0 * (r + high)))
        for label, r, c, high, wide in spans
    ]
    words = []
    for r, row in enumerate(texts):
        for c, text in enumerate(row):
            x, y = 100 * c + 5 + 50 * text.count(">"), 20 * r + 5 + 6 * text.count("v")
            own = text.strip(">v")
            words += [Word(own, (x, y, x + 8 * len(own), y + 10))] if own else []
    return build_table(objects, words, check_spans=True)


def spans(found: Table) -> list[tuple[int, int, int, int]]:
    return [(c.row, c.column, c.row_span, c.column_span) for c in found.cells if c.row_span * c.column_span > 1]


@pytest.mark.parametrize(
    ("texts", "given", "kept"),
    [
        # Two numbers, one below the other, and blank cells around a number.
        ([["a", "b"], ["x", "1"], ["y", "2"]], (1, 1, 2, 1), []),
        ([["a", "b"], ["x", ""], ["y", "2"], ["z", ""]], (1, 1, 3, 1), []),
        # A text between two rows is of both.
        ([["a", "b"], ["x", "v2"], ["y", ""]], (1, 1, 2, 1), [(1, 1, 2, 1)]),
        # Headers side by side, a header over two columns, and one in two lines.
        ([["a", "b", "c"], ["x", "1", "2"]], (0, 0, 1, 3), []),
        ([["a", ">over both", ""], ["x", "1", "2"]], (0, 1, 1, 2), [(0, 1, 1, 2)]),
        ([["long", "one"], ["name", "two"], ["x", "1"]], (0, 0, 2, 1), [(0, 0, 2, 1)]),
        # A text within one column, and one that reaches into the next.
        ([["a", "b", "c"], ["x", "1", ""], ["y", "1", "2"]], (1, 1, 1, 2), []),
        ([["a", "b", "c"], ["x", ">not known", ""], ["y", "1", "2"]], (1, 1, 1, 2), [(1, 1, 1, 2)]),
    ],
)
def test_a_span_holds_one_text(texts, given, kept):
    assert spans(table(texts, (SPANNING, *given), header=2 if texts[1][0] == "name" else 1)) == kept


def test_labels_hold_up_to_the_next_one():
    texts = [["a", "b"], ["first", "1"], ["", "2"], ["", "3"], ["next", "4"], ["", "5"]]
    assert spans(table(texts, (SPANNING, 2, 0, 4, 1))) == [(1, 0, 3, 1), (4, 0, 2, 1)]
    assert spans(table(texts)) == []


def test_a_heading_has_nothing_beside_it():
    texts = [["a", "b", "c"], ["group", "", ""], ["x", "1", "2"], ["group", "", "7"], ["y", "1", "2"]]
    found = table(texts, (PROJECTED, 1, 0, 1, 3), (PROJECTED, 3, 0, 1, 3))
    assert [cell.row for cell in found.cells if cell.is_projected_row_header] == [1]
    assert spans(found) == []  # it is within its column
    texts[1][0] = "a group of many"
    assert spans(table(texts, (PROJECTED, 1, 0, 1, 3))) == [(1, 0, 1, 3)]


def test_letters_of_panels_are_over_all_columns():
    body = [["(a)", "", ""], ["x", "1", "2"], ["(b)", "", ""], ["y", "3", "4"]]
    heading = (PROJECTED, 1, 0, 1, 1)
    assert spans(table([["", "p", "q"], *body], heading)) == [(1, 0, 1, 3), (3, 0, 1, 3)]
    assert spans(table([["", "p", "q"], *body[:2]])) == []  # a table has several
    assert spans(table([["", "p", "q"], ["men", "", ""], body[1], ["women", "", ""], body[3]])) == []


def test_two_lines_of_a_header_are_one_row():
    texts = [
        ["vGroup", "vCorrosion", "vResistance"],
        ["", "rate (mm)", "(ohm)"],
        ["a", "1.5", "24"],
        ["b", "2.5", "25"],
    ]
    assert table(texts, header=2).rows()[:2] == [["Group", "Corrosion rate (mm)", "Resistance (ohm)"], texts[2]]
    texts[1] = ["", "0.5", "0.7"]  # numbers are no second line
    assert table(texts, header=2).shape == (4, 3)
    texts[:2] = [["vGroup", "v$10,000–", "v$15,000–"], ["", "14,999", "29,999"]]  # but of ranges
    assert table(texts, header=2).rows()[0] == ["Group", "$10,000– 14,999", "$15,000– 29,999"]
    texts[:2] = [["", ">over both", ""], ["Group", "one", "two"]]
    assert table(texts, (SPANNING, 0, 1, 1, 2), header=2).shape == (4, 3)


def test_a_text_of_a_header_is_over_the_columns_in_whose_middle_it_is():
    texts = [["", "", "over", ""], ["name", "one", "two", "six"], ["x", "1", "2", "3"]]
    found = table(texts, (SPANNING, 0, 2, 1, 2), header=2)
    assert spans(found) == [(0, 0, 2, 1), (0, 1, 1, 3)]
    assert found.rows(repeat=False)[0] == ["name", "over", "", ""]
    assert spans(table(texts, (SPANNING, 0, 2, 1, 2), header=3)) == [(0, 2, 1, 2)]  # no row below the header
    blank = table(texts[1:], (SPANNING, 0, 0, 1, 2), header=1)
    assert spans(blank) == []


def test_lines_of_a_header_beside_a_cell_over_columns_are_one_cell():
    texts = [["vAll", ">over both", ""], ["houses", "one", "two"], ["x", "1", "2"]]
    found = table(texts, (SPANNING, 0, 1, 1, 2), header=2)
    assert spans(found) == [(0, 0, 2, 1), (0, 1, 1, 2)]
    assert found.rows()[1] == ["All houses", "one", "two"]
    texts[1][0] = "Houses"
    assert spans(table(texts, (SPANNING, 0, 1, 1, 2), header=2)) == [(0, 1, 1, 2)]


@pytest.mark.parametrize(("column", "text", "is_heading"), [(2, "the next", False), (1, ">last of both", True)])
def test_a_heading_begins_at_the_left_or_is_centred(column, text, is_heading):
    rows = [["a", "b", "c"], ["x", "1", "2"], ["", "", ""], ["y", "3", "4"]]
    rows[2][column] = text
    found = table(rows, (PROJECTED, 2, 0, 1, 3))
    assert (spans(found) == [(2, 0, 1, 3)]) == is_heading
    assert found.rows(repeat=False)[2][0 if is_heading else column] == text.strip(">")


def test_numbers_nearer_than_words_are_in_their_columns():
    texts = [["a", "b", "c"], ["x", "1,234,567.89", "1,234,567.90"], ["y", "1", "2"]]
    for label, left in ((SPANNING, 1), (PROJECTED, 0)):
        assert table(texts, (label, 1, left, 1, 3 - left)).rows() == texts
    texts[1][1:] = ["as it was in", "its one year"]
    assert spans(table(texts, (SPANNING, 1, 1, 1, 2))) == [(1, 1, 1, 2)]


@pytest.mark.parametrize(
    ("texts", "rows"),
    [
        ([["vIndian/", "1"], ["Alaskan", ""], ["Other", "2"]], 3),
        ([["vGrade", "1"], ["of it", ""], ["Third", "3"], ["Other", "2"]], 4),
        ([["vGrade", "1"], ["Grade 2", ""], ["Other", "2"]], 4),  # a name without a number
        ([["vmale", "1"], ["female", ""], ["other", "2"]], 4),  # names with small letters
        ([["vGrade", "1"], ["of it", "3"], ["Other", "2"]], 4),
        ([["Grade", "1"], ["vof it", ""], ["Other", "2"]], 4),  # not near
    ],
)
def test_names_that_go_on_in_the_next_line(texts, rows):
    found = table([["a", "b"], *texts])
    assert found.shape == (rows, 2)
    assert [cell.text for cell in found.cells if cell.row == rows - 1] == texts[-1]


def test_a_heading_over_two_rows_is_one():
    texts = [["a", "b"], ["group", ""], ["", ""], ["x", "1"]]
    assert table(texts, (PROJECTED, 1, 0, 2, 2)).rows() == [texts[0], texts[1], texts[3]]


def test_signs_that_a_reader_is_unsure_of_are_no_text():
    box = (0.0, 0.0, 9.0, 9.0)
    assert not is_legible([Word(text, box, 0.8) for text in ("-1", "= _", ".''", "4*8*,")])
    assert is_legible([Word(text, box, 0.95) for text in ("-1", "= _", ".''", "4*8*,")])
    assert is_legible([Word(text, box, 0.8) for text in ("Total", "Net", "25", "17")])
    assert is_legible([Word(text, box, 0.8) for text in ("Total", "Net", "25", "17", "-", "-", "–", "-")])
    assert not is_legible([Word(text, box, 0.4) for text in ("ee", "1.3", "Im", "q", "-")])
    assert not is_legible([Word("-", box, 0.9)] * 5)
    assert not is_legible([Word(text, box, 0.8) for text in ("[", "1", "1", "l")])  # the edges of empty boxes
    assert not is_legible([Word("1", box, 0.9)] * 3)
    assert is_legible([Word(text, box, 0.9) for text in ("1", "2")])


def test_a_name_below_a_cell_over_columns_holds_down_to_the_body():
    texts = [["", ">>both", "", ""], ["Name", "All", ">share", ""], ["", "", "one", "two"], ["x", "3", "1", "2"]]
    found = table(texts, (SPANNING, 0, 1, 1, 3), (SPANNING, 1, 2, 1, 2), header=3)
    assert spans(found) == [(0, 0, 3, 1), (0, 1, 1, 3), (1, 1, 2, 1), (1, 2, 1, 2)]


def test_a_row_of_a_header_without_words_goes():
    texts = [["Name", ">both", ""], ["", "", ""], ["", "one", "two"], ["x", "1", "2"]]
    found = table(texts, (SPANNING, 0, 1, 1, 2), header=3)
    assert found.rows(repeat=False) == [["Name", "both", ""], ["", "one", "two"], ["x", "1", "2"]]
