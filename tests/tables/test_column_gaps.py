"""Columns at the gaps of the text, of lines of words made here."""

from __future__ import annotations

import pytest

from zoo.apps.tables.column_gaps import with_gaps
from zoo.apps.tables.structure import COLUMN, ROW
from zoo.images.boxes import Box, Detection

LINES = [[(x, 20.0 * y + 3, x + wide, 20.0 * y + 15) for x, wide in ((10, 40), (90, 30), (170, 50))] for y in range(8)]


def columns(lines: list[list[Box]], *found: tuple[float, float]) -> list[tuple[float, float]]:
    objects = [Detection(COLUMN, 0.9, (a, 0.0, b, 160.0)) for a, b in found]
    objects += [Detection(ROW, 0.9, (0.0, 20.0 * y, 230.0, 20.0 * y + 18)) for y in range(8)]
    got = with_gaps(objects, lines, 0.5)
    assert [o for o in got if o.label == ROW] == objects[len(found) :]
    return sorted((o.box[0], o.box[2]) for o in got if o.label == COLUMN)


def test_columns_in_the_gaps_of_the_text_stay() -> None:
    assert columns(LINES, (5, 60), (80, 130), (160, 225)) == [(5, 60), (80, 130), (160, 225)]


def test_a_border_that_cuts_words_moves_to_the_gap() -> None:
    (a, b), (c, d), (e, f) = columns(LINES, (5, 100), (105, 150), (150, 225))
    assert (a, d, e, f) == (5, 150, 150, 225)
    assert 50 <= b <= c <= 90


@pytest.mark.parametrize("across", [0, 1])
def test_a_column_is_split_at_a_gap_that_hardly_any_line_crosses(across: int) -> None:
    lines = [*LINES[across:], *([[(10.0, 3.0, 120.0, 15.0), LINES[0][2]]] if across else [])]
    (_, a), (b, _), last = columns(lines, (5, 140), (160, 225))
    assert 50 <= a < b <= 90
    assert last == (160, 225)


def test_a_gap_that_many_lines_cross_or_few_have_is_none() -> None:
    crossing = [
        [(10.0, box[1], 120.0, box[3]), last] if y % 2 else line
        for y, (line, (box, _, last)) in enumerate(zip(LINES, LINES, strict=True))
    ]
    assert columns(crossing, (5, 140), (160, 225)) == [(5, 140), (160, 225)]
    few = [line if y == 3 else [line[0], line[2]] for y, line in enumerate(LINES)]
    assert columns(few, (5, 140), (160, 225)) == [(5, 140), (160, 225)]
    spaces = [[(10.0, y0, 62.0, y1), (68.0, y0, 120.0, y1), last] for (_, y0, _, y1), _, last in LINES]
    assert columns(spaces, (5, 140), (160, 225)) == [(5, 140), (160, 225)]


def test_columns_that_overlap_in_a_gap_are_left_to_the_words() -> None:
    assert columns(LINES, (5, 80), (60, 130), (160, 225)) == [(5, 80), (60, 130), (160, 225)]


def test_without_columns_or_lines_nothing_changes() -> None:
    row = Detection(ROW, 0.9, (0.0, 0.0, 10.0, 10.0))
    column = Detection(COLUMN, 0.9, (0.0, 0.0, 10.0, 10.0))
    assert with_gaps([row], LINES, 0.5) == [row]
    assert with_gaps([row, column], [], 0.5) == [row, column]
