"""Rows that were detected as one: what the words must look like for them to be cut."""

from __future__ import annotations

import pytest

from zoo.images.boxes import Detection
from zoo.tables import Word, build_table, words_outside

WIDTH, PITCH = 100.0, 20.0


def objects(tops, columns=3, header=False, bottom=20.0):
    """Rows of 20 pixels from these tops, and columns of 100."""
    found = [Detection("table row", 0.9, (0, top, WIDTH * columns, top + PITCH)) for top in tops]
    height = max(tops) + bottom
    found += [Detection("table column", 0.9, (c * WIDTH, 0, (c + 1) * WIDTH, height)) for c in range(columns)]
    if header:
        found.append(Detection("table column header", 0.9, (0, 0, WIDTH * columns, PITCH)))
    return found


def line(top, *texts, high=10.0):
    return [
        Word(text, (c * WIDTH + 10, top + 5, c * WIDTH + 60, top + 5 + high)) for c, text in enumerate(texts) if text
    ]


WORDS = [*line(0, "a", "b", "c"), *line(20, "d", "e", "f"), *line(40, "g", "h", "i"), *line(60, "j", "k", "l")]


@pytest.mark.parametrize("missed", [20, 40])
def test_a_row_that_was_suppressed_comes_back(missed):
    """Its words lie between the rows that are left."""
    tops = [top for top in (0, 20, 40, 60) if top != missed]
    table = build_table(objects(tops), WORDS)
    assert table.rows() == [["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"], ["j", "k", "l"]]
    assert words_outside(table, WORDS) == []
    middles = [(y0 + y1) / 2 for _, y0, _, y1 in table.row_boxes]
    assert middles == sorted(middles)


@pytest.mark.parametrize(
    "words",
    [
        [*line(40, "g", "h", "i", high=4), *line(48, "j", "k", "l", high=4)],  # two lines of one row
        [*line(40, "g", "h", "i"), *line(60, "j", "", "l")],  # a column goes on, and another does not
    ],
    ids=["near", "other columns"],
)
def test_lines_of_one_row_stay_together(words):
    table = build_table(objects([0, 20, 40], bottom=40), [*WORDS[:6], *words])
    assert table.shape == (3, 3)


def test_two_columns_say_too_little():
    table = build_table(objects([0, 20, 60], columns=2), [word for word in WORDS if word.box[0] < 2 * WIDTH])
    assert table.shape == (3, 2)


def test_a_header_may_have_two_lines():
    tops = [0, 40, 60, 80]
    words = [*line(0, "a", "b", "c"), *line(20, "d", "e", "f")]
    words += [word for top in tops[1:] for word in line(top, "1", "2", "3")]
    table = build_table(objects(tops, header=True), words)
    assert table.shape == (4, 3)
    assert table.rows()[0] == ["a d", "b e", "c f"]
