"""The Table type: what it refuses, what it gives back, and its JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from random_tables import EXAMPLES, TEXTS, make, of_cells, tables

from zoo.apps.tables import Cell, Table, Word
from zoo.errors import TableError

BOX = (0.0, 0.0, 1.0, 1.0)


def cell(row: int, column: int, row_span: int = 1, column_span: int = 1, header: bool = False) -> Cell:
    return Cell(row, column, row_span, column_span, BOX, f"{row}{column}", is_header=header)


def test_a_spanning_cell_is_at_each_of_its_positions():
    table = make([["a", "b", "c"], ["d", "", ""]], 1, {(1, 0): (1, 3)})
    assert table.shape == (2, 3)
    assert [[c.text for c in row] for row in table.grid()] == [["a", "b", "c"], ["d", "d", "d"]]
    assert table.rows() == [["a", "b", "c"], ["d", "d", "d"]]
    assert table.rows(repeat=False) == [["a", "b", "c"], ["d", "", ""]]
    assert repr(table) == "<Table: 2 rows, 1 of header, 3 columns, 4 cells, score 0.750>"


def test_cells_are_sorted():
    assert of_cells([cell(1, 0), cell(0, 0)], 2, 1) == of_cells([cell(0, 0), cell(1, 0)], 2, 1)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3)])
def test_a_table_without_positions_exports(shape):
    table = of_cells([], *shape)
    assert table.grid() == [[]] * shape[0]
    assert table.to_csv() == "\r\n" * shape[0]
    assert table.to_html().count("<tr>") == shape[0]
    assert table.to_markdown() == ("" if shape[1] == 0 else "|  |  |  |\n| --- | --- | --- |\n")
    assert Table.from_json(table.to_json()) == table
    assert Table.from_html(table.to_html()).shape == (shape[0], 0)


@pytest.mark.parametrize(
    ("cells", "header_rows", "message"),
    [
        ([cell(0, 0), cell(0, 1), cell(1, 0)], 0, "no cell covers row 1, column 1"),
        ([cell(0, 0, 2, 2), cell(1, 1)], 0, "row 1, column 1 .* overlaps the cell at row 0, column 0"),
        ([cell(0, 0, 2, 3)], 0, "reaches out of the grid of 2 x 2"),
        ([cell(0, 0, 2, 2), cell(2, 0)], 0, "reaches out of the grid of 2 x 2"),
        ([cell(0, 0, 2, 2, True)], 1, "across the line below the 1 header rows"),
        ([cell(0, 0, 1, 2), cell(1, 0, 1, 2)], 1, "is_header=False, and there are 1 header rows"),
        ([cell(0, 0, 2, 2)], 3, "header_rows is 3, and the table has 2 rows"),
        ([cell(0, 0, 2, 2)], -1, "header_rows is -1"),
    ],
)
def test_cells_that_do_not_fit_are_refused(cells, header_rows, message):
    with pytest.raises(TableError, match=message):
        of_cells(cells, 2, 2, header_rows)


def test_a_grid_beyond_memory_is_refused():
    boxes = [BOX] * 100_000
    with pytest.raises(TableError, match="100,000 x 100,000 positions, at most 1,000,000"):
        Table((), boxes, boxes, BOX)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"box": (0, 0, math.nan, 1)}, "box of the cell at row 0, column 0 is .*nan"),
        ({"box": (0, 0, 1)}, "expected four finite numbers"),
        ({"box": ("0", 0, 1, 1)}, "four finite numbers"),
        ({"box": None}, "four finite numbers"),
        ({"box": (2, 0, 1, 1)}, "expected x0 <= x1"),
        ({"confidence": math.inf}, "confidence .* finite"),
        ({"row": -1}, "row of .* whole number from 0"),
        ({"row_span": 0}, "row_span of .* whole number from 1"),
        ({"column": 0.5}, "column of .* whole number"),
        ({"column": True}, "column of .* whole number"),
        ({"is_header": "false"}, "is_header of .* expected True or False"),
        ({"text": None}, "expected a str"),
        ({"text": "a\ud800"}, r"lone surrogate, U\+D800, at 1"),
    ],
)
def test_cells_that_are_none_are_refused(fields, message):
    given = {"row": 0, "column": 0, "row_span": 1, "column_span": 1, "box": BOX, **fields}
    with pytest.raises(TableError, match=message):
        Cell(**given)


@pytest.mark.parametrize("word", [("\udfff", BOX), ("a", (math.nan, 0, 1, 1)), ("a", BOX, "0.5")])
def test_words_that_are_none_are_refused(word):
    with pytest.raises(TableError, match="word"):
        Word(*word)


def test_numbers_of_numpy_become_those_of_python():
    box = np.array([0, 1, 2, 3], np.float32)
    found = Cell(np.int64(0), np.int32(0), 1, 1, box, confidence=np.float32(0.5), is_header=np.bool_(False))
    json.dumps(Table((found,), (box,), (box,), box, np.float64(1), np.int64(0)).to_dict())
    assert found.box == (0.0, 1.0, 2.0, 3.0)


@EXAMPLES
@given(tables())
def test_json_gives_back_the_same_table(table):
    assert Table.from_json(table.to_json()) == table
    assert Table.from_json(table.to_json(indent=1).encode()) == table
    assert Table.from_dict(table.to_dict()) == table


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(colums=[]), "a field 'colums'"),
        (lambda data: data.update(origin=None), "a field 'origin'"),  # which cells have
        (lambda data: data.update(header_row=1), "did you mean 'header_rows'"),
        (lambda data: data.pop("score"), "the table has no score"),
        (lambda data: data.update(cells={}), "cells of the table is a dict, expected a list"),
        (lambda data: data["cells"][0].pop("row"), r"cells\[0\] has no row"),
        (lambda data: data["cells"].append(3), r"cells\[2\] is a int, expected an object"),
        (lambda data: data["row_boxes"][0].pop(), r"row_boxes\[0\] .* four"),
        (lambda data: data.update(box=None), "the table's box"),
        (lambda data: data["cells"].pop(), "no cell covers row 0, column 1"),
    ],
)
def test_json_of_no_table_is_refused(change, message):
    data = make([["a", "b"]]).to_dict()
    change(data)
    with pytest.raises(TableError, match=message):
        Table.from_json(json.dumps(data))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": NaN}', '{"a": "\\ud800"}', "\ud800", b"\xff", "[" * 100_000])
def test_what_is_not_json_is_refused(text):
    with pytest.raises(TableError, match="the table"):
        Table.from_json(text)


@EXAMPLES
@given(TEXTS)
def test_a_text_may_be_any(text):
    assert Table.from_json(make([[text]]).to_json()).cells[0].text == text
