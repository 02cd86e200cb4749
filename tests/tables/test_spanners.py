"""Headings over several columns, by the rules below them, in pictures drawn here."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.apps.tables.spanners import with_ruled_header
from zoo.images.boxes import Box, Detection

COLUMNS = [(10.0, 90.0), (100.0, 180.0), (190.0, 270.0), (280.0, 360.0), (370.0, 450.0)]
NAMES = [(10, 60), (125, 150), (215, 240), (305, 330), (395, 420)]
ROW, COLUMN, HEADER, SPANNING = (f"table {name}" for name in ("row", "column", "column header", "spanning cell"))


def line(y: float, *xs: tuple[float, float]) -> list[Box]:
    return [(float(a), float(y), float(b), float(y) + 10) for a, b in xs]


def found(
    upper: list[list[Box]], *rules: tuple[int, int, int], header: float = 62.0, more: tuple[Detection, ...] = ()
) -> dict[str, list[Box]]:
    """The boxes of each label for lines above the columns' own names, of two lines, and rules (y, x0, x1)."""
    lines = [
        *upper,
        *([line(36, *NAMES[1:])] if header != 41 else []),
        line(48, *NAMES),
        line(70, *NAMES),
        line(90, *NAMES),
    ]
    image = np.full((110, 460, 3), 255, np.uint8)
    for y, x0, x1 in rules:
        image[y : y + 2, x0:x1] = 0
    objects = [Detection(COLUMN, 0.9, (a, 0.0, b, 105.0)) for a, b in COLUMNS]
    objects += [Detection(ROW, 0.8, (10.0, y, 450.0, y + 14.0)) for y in (8.0, 34.0, 46.0, 68.0, 88.0)]
    objects += [Detection(HEADER, 0.9, (10.0, 5.0, 450.0, header)), *more]
    boxes: dict[str, list[Box]] = {}
    for label, _, box in with_ruled_header(objects, image, lines, 0.5):
        boxes.setdefault(label, []).append(box)
    return boxes


def rows(boxes: dict[str, list[Box]]) -> list[tuple[float, float]]:
    return sorted((box[1], box[3]) for box in boxes[ROW])


BODY = [(68, 82), (88, 102)]


def test_a_rule_shows_the_columns_of_the_heading_above_it_and_ends_its_row():
    boxes = found([line(10, (150, 190), (195, 220))], (23, 100, 270), (63, 10, 450))
    assert [box == pytest.approx((100, 10, 270, 24), abs=2) for box in boxes[SPANNING]] == [True]
    assert rows(boxes) == [(10, 20), (36, 58), *BODY]
    assert boxes[HEADER][0][3] == pytest.approx(63, abs=2)


def test_the_header_ends_at_the_rule_below_all_columns():
    boxes = found([line(10, (150, 220))], (23, 100, 270), (63, 10, 450), header=44.0)
    assert rows(boxes) == [(10, 20), (36, 58), *BODY]


def test_names_of_columns_are_below_a_rule():
    boxes = found([line(30, (150, 220))], (42, 100, 270), header=41.0)
    assert boxes[HEADER][0][3] >= 58
    assert len(boxes[SPANNING]) == 1


def test_a_rule_in_parts_across_the_table_ends_the_header():
    boxes = found([line(10, (150, 220))], (23, 100, 270), (63, 10, 200), (63, 210, 450))
    assert len(boxes[SPANNING]) == 1
    assert boxes[HEADER][0][3] == pytest.approx(63, abs=2)


def test_two_headings_above_one_rule_are_in_the_middle_of_their_columns():
    boxes = found([line(10, (165, 205), (340, 390))], (23, 100, 450))
    assert [box[:3:2] for box in boxes[SPANNING]] == [(100, 270), (280, 450)]


def test_two_lines_of_a_heading_are_one_and_a_rule_parts_two_headings():
    boxes = found([line(2, (150, 220)), line(13, (160, 210))], (25, 100, 270))
    assert [box[1] for box in boxes[SPANNING]] == [2]
    assert rows(boxes)[0] == (2, 23)
    boxes = found([line(0, (150, 220)), line(15, (160, 210))], (12, 100, 360), (28, 100, 270))
    assert rows(boxes)[:2] == [(0, 10), (15, 25)]


def test_where_headings_are_ruled_others_are_over_one_column():
    over = [Detection(SPANNING, 0.9, box) for box in ((10.0, 8.0, 180.0, 20.0), (10.0, 8.0, 90.0, 60.0))]
    boxes = found([line(10, (150, 220))], (23, 100, 270), more=tuple(over))
    assert boxes[SPANNING][0] == over[1].box
    assert len(boxes[SPANNING]) == 2


@pytest.mark.parametrize(
    ("rule", "upper", "header"),
    [
        ((23, 10, 450), [(150, 220)], 62.0),  # across the table
        ((23, 125, 150), [(125, 150)], 62.0),  # an underlined word
        ((23, 100, 270), [(125, 150), (215, 240)], 62.0),  # a text for each column
        ((23, 100, 270), [(150, 350)], 62.0),  # a text that is wider
        ((23, 100, 270), [], 62.0),
        ((83, 100, 270), [(150, 220)], 62.0),  # below the header
    ],
)
def test_what_shows_no_columns(rule, upper, header):
    boxes = found([line(10, *upper)] if upper else [], rule, header=header)
    assert SPANNING not in boxes
    assert rows(boxes) == [(8, 22), (34, 48), (46, 60), *BODY]
