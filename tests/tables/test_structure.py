"""From objects and words to a table: the rules one by one, and the corners in which other programs crash."""

from __future__ import annotations

import time

import pytest

from zoo.apps.tables import Table, Word, build_table, words_outside
from zoo.images.boxes import Detection

ROW, COLUMN, HEADER = "table row", "table column", "table column header"
SPANNING, PROJECTED = "table spanning cell", "table projected row header"


def grid(rows: int, columns: int, *more: Detection) -> list[Detection]:
    """Rows 20 pixels high and columns 100 wide, from (0, 0)."""
    return [
        *(Detection(ROW, 0.9, (0, 20 * r, 100 * columns, 20 * r + 20)) for r in range(rows)),
        *(Detection(COLUMN, 0.8, (100 * c, 0, 100 * c + 100, 20 * rows)) for c in range(columns)),
        *more,
    ]


def at(label: str, row: int, column: int, row_span: int, column_span: int, score: float = 0.9) -> Detection:
    return Detection(label, score, (100 * column, 20 * row, 100 * (column + column_span), 20 * (row + row_span)))


def word(text: str, row: float, column: float, **more: float) -> Word:
    """A word 40 pixels wide in the middle of a grid's position."""
    x, y = 100 * column + 30, 20 * row + 5
    return Word(text, (x, y, x + 40, y + 10), **more)


def full(rows: int, columns: int) -> list[Word]:
    return [word(f"{r}.{c}", r, c) for r in range(rows) for c in range(columns)]


def spans(table: Table) -> list[tuple[int, int, int, int]]:
    return [(c.row, c.column, c.row_span, c.column_span) for c in table.cells if c.row_span * c.column_span > 1]


def test_a_grid_and_its_words():
    table = build_table(grid(2, 3, at(HEADER, 0, 0, 1, 3)), full(2, 3))
    assert table.rows() == [["0.0", "0.1", "0.2"], ["1.0", "1.1", "1.2"]]
    assert [cell.is_header for cell in table.cells] == [True] * 3 + [False] * 3
    assert table.box == (0, 0, 300, 40)
    assert table.row_boxes == ((0, 0, 300, 20), (0, 20, 300, 40))
    assert table.column_boxes == ((0, 0, 100, 40), (100, 0, 200, 40), (200, 0, 300, 40))
    assert table.cells[4].box == (100, 20, 200, 40)


def test_rows_become_as_wide_as_the_columns_and_columns_as_high_as_the_rows():
    objects = [
        Detection(ROW, 0.9, (12, 0, 180, 20)),
        Detection(ROW, 0.9, (9, 21, 170, 40)),
        Detection(COLUMN, 0.9, (10, 3, 99, 37)),
        Detection(COLUMN, 0.9, (101, 2, 190, 44)),
    ]
    table = build_table(objects)
    assert table.box == (10, 0, 190, 40)
    assert table.row_boxes == ((10, 0, 190, 20), (10, 21, 190, 40))
    assert table.column_boxes == ((10, 0, 99, 40), (101, 0, 190, 40))


@pytest.mark.parametrize("words", [None, []], ids=["none", "empty"])
def test_without_words_every_cell_is_there_and_empty(words):
    table = build_table(grid(3, 2), words)
    assert table.shape == (3, 2)
    assert {cell.text for cell in table.cells} == {""}


def test_a_blank_page_keeps_its_grid():
    """Words elsewhere, or blank ones, say nothing about rows."""
    table = build_table(grid(3, 2), [Word("caption", (0, 200, 50, 210)), word("  ", 0, 0)])
    assert table.shape == (3, 2)


def test_rows_and_columns_without_words_are_left_out():
    words = [w for w in full(4, 3) if w.text[0] != "2" and w.text[2] != "1"]
    table = build_table(grid(4, 3, at(HEADER, 0, 0, 1, 3)), words)
    assert table.rows() == [["0.0", "0.2"], ["1.0", "1.2"], ["3.0", "3.2"]]
    assert table.header_rows == 1


def test_a_row_wholly_inside_spans_keeps_its_place():
    """Row 2 has no word of its own: all of its cells began above."""
    objects = grid(4, 2, at(SPANNING, 1, 0, 2, 1), at(SPANNING, 1, 1, 2, 1))
    words = [w for w in full(4, 2) if w.text[0] != "2"]
    for table in (build_table(objects), build_table(objects, words)):
        assert table.shape == (4, 2)
        assert spans(table) == [(1, 0, 2, 1), (1, 1, 2, 1)]
        assert table.to_html().count("<tr") == 4
    assert build_table(objects, words).rows()[2] == ["1.0", "1.1"]


def test_a_row_without_words_under_a_heading_goes():
    table = build_table(grid(3, 2, at(PROJECTED, 1, 0, 1, 2)), [w for w in full(3, 2) if w.text[0] != "1"])
    assert table.rows() == [["0.0", "0.1"], ["2.0", "2.1"]]


def test_a_row_partly_inside_spans_goes_with_its_share_of_them():
    objects = grid(3, 2, at(SPANNING, 1, 0, 2, 1))
    table = build_table(objects, [w for w in full(3, 2) if w.text[0] != "2"])
    assert table.shape == (2, 2)
    assert spans(table) == []


def test_words_and_rows_without_height():
    objects = grid(2, 2, Detection(ROW, 0.99, (0, 20, 200, 20)), Detection(COLUMN, 0.99, (100, 0, 100, 40)))
    objects += [Detection(SPANNING, 0.9, (0, 10, 200, 10)), Detection(HEADER, 0.9, (0, 10, 200, 10))]
    words = [*full(2, 2), Word("line", (10, 8, 30, 8)), Word("point", (150, 30, 150, 30)), Word("corner", (0, 0, 0, 0))]
    table = build_table(objects, words)
    assert table.shape == build_table(objects).shape == (2, 2)
    assert table.header_rows == 0
    assert table.rows() == [["corner line 0.0", "0.1"], ["1.0", "1.1 point"]]


def test_worse_rows_that_better_ones_cover_go():
    objects = grid(
        3,
        2,
        Detection(ROW, 0.6, (0, 8, 200, 28)),  # 60 per cent of it in the first row
        Detection(ROW, 0.7, (0, 2, 200, 58)),  # a third in each of the three
        Detection(COLUMN, 0.6, (130, 0, 230, 60)),
    )
    assert build_table(objects).row_boxes == build_table(grid(3, 2)).row_boxes
    assert build_table(objects).column_boxes == build_table(grid(3, 2)).column_boxes


def test_what_two_rows_cover_twice_counts_once():
    """32 of 70 pixels, of which 8 by both."""
    objects = [Detection(COLUMN, 0.9, (0, 0, 100, 70)), *(Detection(ROW, 0.9, (0, y, 100, y + 20)) for y in (0, 12))]
    assert build_table([*objects, Detection(ROW, 0.6, (0, 0, 100, 70))]).shape == (3, 1)


@pytest.mark.parametrize(("overlap", "stays"), [(0.45, True), (0.55, False)])
def test_how_much_rows_and_columns_may_overlap(overlap, stays):
    """Half of the worse one, of 20 and of 100 pixels."""
    y, x = 40 - 20 * overlap, 200 - 100 * overlap
    objects = grid(2, 2, Detection(ROW, 0.6, (0, y, 200, y + 20)), Detection(COLUMN, 0.6, (x, 0, x + 100, 40)))
    assert build_table(objects).shape == (2 + stays, 2 + stays)


@pytest.mark.parametrize(
    ("headers", "header_rows"),
    [
        ([(0, 0, 300, 20)], 1),
        ([(0, 0, 300, 40)], 2),
        ([(0, 0, 300, 31)], 2),
        ([(0, 0, 300, 29)], 1),
        ([(0, 0, 300, 9)], 0),
        ([(0, 20, 300, 40)], 2),  # grown up to the first row: no position above it is uncovered
        ([(0, 0, 300, 20), (0, 60, 300, 80)], 1),  # a second header further down is none
        ([(0, 0, 300, 20), (0, 0, 300, 40)], 2),
        ([(0, 0, 300, 80)], 4),
        ([(0, 300, 300, 320)], 0),
    ],
)
def test_the_header_is_the_rows_that_it_covers_by_half(headers, header_rows):
    table = build_table(grid(4, 3, *(Detection(HEADER, 0.9, box) for box in headers)), full(4, 3))
    assert table.header_rows == header_rows
    assert [row[0].is_header for row in table.grid()] == [r < header_rows for r in range(4)]
    assert table.to_csv().count("\n") == 4
    assert table.to_html().count("<tr") == 4


@pytest.mark.parametrize(
    ("box", "span"),
    [
        ((0, 0, 200, 20), (0, 0, 1, 2)),
        ((0, 0, 149, 20), None),  # less than half of the second column
        ((0, 0, 151, 20), (0, 0, 1, 2)),
        ((60, 0, 300, 20), (0, 1, 1, 2)),
        ((5, 3, 95, 52), (0, 0, 3, 1)),  # 12 of 20 pixels of the third row
        ((0, 0, 40, 9), None),
        ((400, 0, 600, 20), None),
    ],
)
def test_spans_snap_to_the_rows_and_columns_that_they_cover_by_half(box, span):
    table = build_table(grid(4, 3, Detection(SPANNING, 0.9, box)))
    assert spans(table) == ([] if span is None else [span])


@pytest.mark.parametrize(
    ("rows", "span"),
    [((0, 3), (0, 0, 2, 1)), ((1, 4), (2, 0, 2, 1)), ((1, 3), None), ((0, 4), (0, 0, 2, 1))],
)
def test_no_cell_reaches_across_the_line_below_the_header(rows, span):
    """The smaller part goes, the one below where both are equal; what is left of one position is no span."""
    first, end = rows
    table = build_table(grid(5, 2, at(HEADER, 0, 0, 2, 2), at(SPANNING, first, 0, end - first, 1)))
    assert spans(table) == ([] if span is None else [span])


def test_the_better_span_keeps_what_two_want():
    objects = grid(3, 4, at(SPANNING, 0, 0, 1, 3, 0.9), at(SPANNING, 0, 2, 1, 2, 0.8), at(SPANNING, 1, 1, 2, 3, 0.7))
    assert spans(build_table(objects)) == [(0, 0, 1, 3), (1, 1, 2, 3)]  # of the second one position was left
    crossing = grid(3, 4, at(SPANNING, 1, 0, 1, 4, 0.9), at(SPANNING, 0, 1, 3, 1, 0.8), at(SPANNING, 0, 2, 2, 2, 0.7))
    assert spans(build_table(crossing)) == [(0, 2, 1, 2), (1, 0, 1, 4)]
    within = grid(3, 4, at(SPANNING, 1, 1, 1, 2, 0.9), at(SPANNING, 0, 0, 3, 4, 0.8))
    assert spans(build_table(within)) == [(0, 0, 1, 4), (1, 1, 1, 2)]


@pytest.mark.parametrize(
    ("better", "left"),
    [
        ((0, 0, 2, 1), (0, 1, 2, 2)),
        ((0, 2, 2, 1), (0, 0, 2, 2)),
        ((0, 0, 1, 3), (1, 0, 1, 3)),
        ((1, 0, 1, 3), (0, 0, 1, 3)),
        ((0, 0, 2, 3), None),
        ((1, 1, 2, 1), (0, 0, 1, 3)),
        ((1, 3, 2, 1), (0, 0, 2, 3)),
    ],
)
def test_of_a_worse_span_the_largest_rectangle_is_left(better, left):
    """The largest rectangle of whole rows or columns is left of 2 x 3 positions."""
    objects = grid(3, 4, at(SPANNING, *better), at(SPANNING, 0, 0, 2, 3, 0.8))
    assert spans(build_table(objects)) == sorted([better] if left is None else [better, left])


def test_a_heading_detected_as_spanning_cell_too_stays_a_heading():
    for scores in ((0.9, 0.8), (0.8, 0.9)):
        objects = grid(3, 3, at(SPANNING, 1, 0, 1, 3, scores[0]), at(PROJECTED, 1, 0, 1, 3, scores[1]))
        table = build_table(objects)
        assert spans(table) == [(1, 0, 1, 3)]
        assert [cell.row for cell in table.cells if cell.is_projected_row_header] == [1]
        assert table.cells[3].confidence == pytest.approx((0.9 + 0.8 + 0.9) / 3)


def test_a_single_column_keeps_header_spans_and_headings():
    objects = grid(5, 1, at(HEADER, 0, 0, 1, 1), at(PROJECTED, 1, 0, 1, 1), at(SPANNING, 2, 0, 2, 1))
    table = build_table(objects, full(5, 1))
    assert table.header_rows == 1
    assert spans(table) == [(2, 0, 2, 1)]
    assert [cell.is_projected_row_header for cell in table.cells] == [False, True, False, False]
    assert [cell.text for cell in table.cells] == ["0.0", "1.0", "2.0 3.0", "4.0"]


def test_a_single_row_keeps_its_spans():
    table = build_table(grid(1, 3, at(SPANNING, 0, 1, 1, 2), at(PROJECTED, 0, 0, 1, 1)), full(1, 3))
    assert spans(table) == [(0, 1, 1, 2)]
    assert not table.cells[0].is_projected_row_header


@pytest.mark.parametrize(("label", "shape"), [(ROW, (3, 1)), (COLUMN, (1, 3))])
def test_rows_alone_or_columns_alone(label, shape):
    objects = [o for o in grid(3, 3) if o.label == label]
    table = build_table(objects, full(3, 3))
    assert table.shape == shape
    assert table.box == (0, 0, 300, 60)
    assert table.cells[1].text in ("1.0 1.1 1.2", "0.1 1.1 2.1")
    assert table.cells[1].confidence == pytest.approx(((0.9 if label == ROW else 0.8) + 1) / 2)


def test_nothing_detected_is_a_table_of_nothing():
    words = full(1, 2)
    assert build_table([]).shape == (0, 0)
    assert build_table([]).score == 0
    table = build_table([Detection("table", 0.9, (1, 2, 3, 4)), at(SPANNING, 0, 0, 1, 2)], words)
    assert table.shape == (0, 0)
    assert table.cells == ()
    assert (table.box, table.score) == ((1, 2, 3, 4), 0.9)
    assert words_outside(table, words) == words


def test_what_lies_outside_the_table_is_left_out():
    """By half of its own area: of the object "table", or of the box that is given."""
    neighbour = [o._replace(box=tuple(v + 500 for v in o.box)) for o in grid(2, 2)]
    partly = Detection(ROW, 0.9, (0, 40, 500, 60))
    objects = [*grid(2, 2), partly, *neighbour]
    first, second = Detection("table", 0.9, (0, 0, 200, 62)), Detection("table", 0.8, (500, 500, 700, 540))
    assert build_table([*objects, first, second]).row_boxes == build_table(grid(2, 2)).row_boxes
    assert build_table([*objects, first, second]).score == 0.9
    given = build_table([*objects, first, second], box=second.box)
    assert (given.shape, given.box, given.score) == ((2, 2), second.box, 0.8)


def test_words_outside_the_table_are_told():
    words = [
        *full(2, 2),
        Word("above", (0, -30, 50, -20)),
        Word("half in", (190, 0, 210, 10)),
        Word("out", (191, 20, 211, 30)),
    ]
    table = build_table(grid(2, 2), words)
    assert [w.text for w in words_outside(table, words)] == ["above", "out"]
    assert table.rows() == [["0.0", "0.1 half in"], ["1.0", "1.1"]]


def test_a_word_goes_to_the_cell_that_holds_most_of_it():
    objects = [
        *grid(2, 3, at(SPANNING, 0, 0, 1, 2)),
        Detection(ROW, 0.9, (0, 50, 300, 70)),  # a gap of 10 pixels above it
    ]
    words = [
        *full(2, 3)[3:],
        Word("mostly span", (70, 5, 240, 15)),  # 30 and 100 pixels of the span's positions
        Word("third", (150, 7, 290, 17)),
        Word("gap", (10, 41, 30, 44)),
        Word("below", (10, 46, 30, 49)),
        Word("last", (130, 55, 290, 65)),
    ]
    table = build_table(objects, words)
    assert table.rows(repeat=False) == [["mostly span", "", "third"], ["1.0 gap", "1.1", "1.2"], ["below", "", "last"]]


def test_what_a_word_shares_with_the_positions_of_a_span_is_added():
    """45 x 10 pixels in each of two positions of the span, 50 x 10 in each of the cells beside them."""
    objects = grid(2, 2, at(SPANNING, 0, 0, 2, 1))
    assert build_table(objects, [*full(2, 2), Word("over", (55, 10, 150, 30))]).cells[0].text == "0.0 1.0 over"


def test_a_word_in_two_rows_at_once_goes_to_the_nearest():
    """Detected rows overlap by some pixels."""
    objects = [
        Detection(ROW, 0.9, (0, 0, 100, 24)),
        Detection(ROW, 0.9, (0, 16, 100, 40)),
        Detection(COLUMN, 0.9, (0, 0, 100, 40)),
    ]
    words = [
        Word("a", (0, 4, 9, 14)),
        Word("lower", (50, 17, 60, 23.9)),
        Word("upper", (50, 16.1, 60, 22)),
        word("b", 1.3, 0),
    ]
    assert build_table(objects, words).rows() == [["a upper"], ["lower b"]]
    assert build_table(objects, words[:2]).rows() == [["a"], ["lower"]]


def test_confidence():
    words = [word("a", 1, 0, confidence=0.5), word("b", 1, 1, confidence=0.9), word("c", 0, 0)]
    table = build_table(grid(2, 2, at(SPANNING, 1, 0, 1, 2, 0.7)), words)
    assert table.cells[0].confidence == pytest.approx((0.9 + 0.8 + 1) / 3)
    assert table.cells[1].confidence == pytest.approx((0.9 + 0.8) / 2)
    assert table.cells[2].confidence == pytest.approx((0.9 + 0.8 + 0.7 + 0.7) / 4)
    assert table.score == pytest.approx((0.9 + 0.8) / 2)


def test_thresholds():
    objects = grid(2, 2, at(HEADER, 0, 0, 1, 2, 0.5), at(SPANNING, 1, 0, 1, 2, 0.6))
    assert (build_table(objects).header_rows, spans(build_table(objects))) == (0, [(1, 0, 1, 2)])
    assert build_table(objects, thresholds=0.49).header_rows == 1
    table = build_table(objects, thresholds={HEADER: 0.4, SPANNING: 0.6})
    assert (table.header_rows, spans(table)) == (1, [])
    assert build_table(objects, thresholds=1).shape == (0, 0)


def test_a_page_of_the_detector_may_be_given_as_well():
    """Its "table rotated" is another table's, or that of the image before it was turned."""
    table = build_table(
        grid(2, 2, Detection("table rotated", 0.99, (50, 50, 60, 60)), Detection("table", 0.9, (0, 0, 200, 40)))
    )
    assert table.shape == (2, 2)


def test_hundreds_of_rows_take_no_time():
    """About 0.15 s; two orders of magnitude more would be a product of all words and all cells."""
    begin = time.process_time()
    table = build_table(grid(200, 50), full(200, 50))
    assert time.process_time() - begin < 15
    assert table.rows()[199][49] == "199.49"
