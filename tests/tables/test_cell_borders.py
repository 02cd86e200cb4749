"""Borders that cut no letters: of pictures drawn here, with rows and columns that are off."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from zoo.apps.tables import Cell, Table
from zoo.apps.tables.cell_borders import fitted_cell_boxes

X, Y = (20, 120, 260, 400), (15, 45, 75, 105, 135)  # where columns and rows begin and end


def grid(rows, columns, spans=()):
    """A table of intervals; spans: (row, column, row_span, column_span)."""
    under = {(r + i, c + j) for r, c, n, m in spans for i in range(n) for j in range(m)}
    places = [(r, c, 1, 1) for r in range(len(rows)) for c in range(len(columns)) if (r, c) not in under] + list(spans)
    cells = [
        Cell(r, c, n, m, (columns[c][0], rows[r][0], columns[c + m - 1][1], rows[r + n - 1][1]), "")
        for r, c, n, m in sorted(places)
    ]
    left, right, top, bottom = columns[0][0], columns[-1][1], rows[0][0], rows[-1][1]
    return Table(
        tuple(cells),
        tuple((left, a, right, b) for a, b in rows),
        tuple((a, top, b, bottom) for a, b in columns),
        (left, top, right, bottom),
    )


def intervals(borders):
    return [(float(a), float(b)) for a, b in pairwise(borders)]


def page(texts, shade=()):
    """White paper with texts (x0, y0, x1, y1) of bars as letters; shade: (top, bottom, grey)."""
    image = np.full((160, 420, 3), 255, np.uint8)
    for top, bottom, grey in shade:
        image[top:bottom, 20:400] = grey
    for x0, y0, x1, y1 in texts:
        image[y0:y1, x0:x1:3] = 0 if image[y0, x0].mean() > 128 else 255
    return image


def centred(left, right, top, bottom, width=60):
    middle = (left + right) // 2
    return middle - width // 2, (top + bottom) // 2 - 6, middle + width // 2, (top + bottom) // 2 + 6


TEXTS = {(r, c): centred(X[c], X[c + 1], Y[r], Y[r + 1]) for r in range(4) for c in range(3)}


def assert_whole(found, table, texts):
    for box, cell in zip(found, table.cells, strict=True):
        if (cell.row, cell.column) not in texts:
            continue
        x0, y0, x1, y1 = texts[cell.row, cell.column]
        assert (box[0] <= x0, box[1] <= y0, box[2] >= x1, box[3] >= y1) == (True,) * 4, (cell.row, cell.column, box)


@pytest.mark.parametrize("off", [0, 22, -22])
def test_columns_that_cut_words_give_way(off):
    columns = intervals([X[0] + off, *(x + off for x in X[1:-1]), X[-1] + off])
    table = grid(intervals(Y), columns)
    assert_whole(fitted_cell_boxes(page(TEXTS.values()), table), table, TEXTS)


@pytest.mark.parametrize("off", [0, 11, -11])
def test_rows_that_cut_words_give_way(off):
    table = grid(intervals([y + off for y in Y]), intervals(X))
    assert_whole(fitted_cell_boxes(page(TEXTS.values()), table), table, TEXTS)


def test_what_lies_between_two_columns_is_read_with_the_nearer():
    columns = [(20.0, 115.0), (170.0, 230.0), (300.0, 400.0)]  # the second word begins at 160, the third at 300
    table = grid(intervals(Y), columns)
    found = fitted_cell_boxes(page(TEXTS.values()), table)
    assert_whole(found, table, TEXTS)


def test_a_cell_that_spans_columns_holds_no_border_back():
    texts = {**TEXTS, (0, 0): (70, 24, 210, 36)}
    del texts[0, 1]
    table = grid(intervals(Y), intervals([20, 105, 260, 400]), [(0, 0, 1, 2)])
    assert_whole(fitted_cell_boxes(page(texts.values()), table), table, texts)


def test_borders_on_rules_leave_them_out():
    image = page(TEXTS.values())
    for y in Y[1:-1]:
        image[y, 20:400:2] = 0  # dotted
    image[15:135, 120:122] = 0
    table = grid(intervals([15, 47, 75, 105, 135]), intervals([20, 122, 260, 400]))
    found = fitted_cell_boxes(image, table)
    assert_whole(found, table, TEXTS)
    for x0, y0, x1, y1 in found:
        inside = image[int(y0) : int(y1), int(x0) : int(x1)].mean(-1) < 128
        assert inside.mean(1).max() < 0.4
        assert inside.mean(0).max() < 0.7


def ruled(texts, xs=X, ys=Y):
    """With a rule at each border."""
    image = page(texts)
    for x in xs:
        image[Y[0] : Y[-1], x - 1 : x + 1] = 0
    for y in ys:
        image[y - 1 : y + 1, X[0] : X[-1]] = 0
    return image


@pytest.mark.parametrize("off", [-6, 5, 14])
def test_a_rule_is_the_border_though_letters_touch_it(off):
    texts = {k: (X[k[1]] + 2, y0, X[k[1] + 1] - 2, y1) for k, (_, y0, _, y1) in TEXTS.items()}
    del texts[1, 1], texts[2, 1]  # paper, where a border could lie as well
    table = grid(intervals(Y), intervals([X[0], *(x + off for x in X[1:-1]), X[-1]]))
    assert_whole(fitted_cell_boxes(ruled(texts.values()), table), table, texts)


@pytest.mark.parametrize("off", [-5, 0, 5])
def test_the_frame_is_in_no_cell(off):
    """The frame is in no cell, if the table was found with it or without."""
    table = grid(
        intervals([Y[0] - off, *Y[1:-1], Y[-1] + off]),
        intervals([X[0] - off, *X[1:-1], X[-1] + off]),
    )
    image = ruled(TEXTS.values())
    found = fitted_cell_boxes(image, table)
    assert_whole(found, table, TEXTS)
    for x0, y0, x1, y1 in found:
        inside = image[int(y0) : int(y1), int(x0) : int(x1)].mean(-1) < 128
        assert max(inside.mean(1).max(), inside.mean(0).max()) < 0.5


def test_a_line_full_of_letters_is_no_rule():
    """Letters of four pixels, of which two thirds are ink, with paper above and below."""
    texts = {
        k: (X[k[1]] + 2, (y0 + y1) // 2 - 2, X[k[1] + 1] - 2, (y0 + y1) // 2 + 2) for k, (_, y0, _, y1) in TEXTS.items()
    }
    image = page(texts.values())
    for x0, y0, x1, y1 in texts.values():
        image[y0:y1, x0 + 1 : x1 : 3] = 0
    table = grid(intervals([y + 12 for y in Y]), intervals(X))
    assert_whole(fitted_cell_boxes(image, table), table, texts)


def test_shaded_rows_are_no_text():
    image = page(TEXTS.values(), [(15, 45, 40), (75, 105, 200)])
    table = grid(intervals([15, 52, 70, 110, 135]), intervals(X))
    assert_whole(fitted_cell_boxes(image, table), table, TEXTS)


def test_a_table_at_the_edge_of_its_picture():
    image = page(TEXTS.values())[19:131, 20:395]
    texts = {k: (a - 20, b - 19, c - 20, d - 19) for k, (a, b, c, d) in TEXTS.items()}
    table = grid(intervals([0, 26, 56, 86, 112]), intervals([0, 100, 240, 375]))
    assert_whole(fitted_cell_boxes(image, table), table, texts)


def test_words_that_touch_the_edge_of_the_picture():
    image = page(TEXTS.values())[:, 40:360]
    texts = {k: (a - 40, b, c - 40, d) for k, (a, b, c, d) in TEXTS.items()}
    table = grid(intervals(Y), intervals([0, 80, 220, 320]))
    assert_whole(fitted_cell_boxes(image, table), table, texts)


def test_without_ink_nothing_moves():
    table = grid(intervals(Y), intervals(X))
    assert fitted_cell_boxes(page(()), table) == [cell.box for cell in table.cells]
    assert fitted_cell_boxes(page(()), Table((), (), (), (0.0, 0.0, 0.0, 0.0))) == []


def test_a_rule_between_columns_stops_at_cells_over_all_of_them():
    over = [(r, 0, 1, 3) for r in (0, 2)]
    table = grid(intervals(Y), intervals(X), over)
    texts = {(r, 0): (24, Y[r] + 9, 200, Y[r] + 21) for r in (0, 2)}
    texts |= {(r, c): (X[c] + 2, Y[r] + 9, X[c + 1] - 2, Y[r] + 21) for r in (1, 3) for c in range(3)}
    image = page(texts.values())
    for r in (1, 3):
        for x in X[1:-1]:
            image[Y[r] : Y[r + 1], x : x + 2] = 0
    found = fitted_cell_boxes(image, table)
    assert_whole(found, table, {k: v for k, v in texts.items() if k[0] in (1, 3)})
    for x in X[1:-1]:  # the rule itself is in no cell of one column
        assert all(not box[0] <= x < box[2] for box, cell in zip(found, table.cells, strict=True) if cell.row in (1, 3))
