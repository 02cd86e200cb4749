"""The pages and tables that the benchmark of tables makes; its peers need not be installed."""

from __future__ import annotations

import pytest

from benchmarks import table_contenders, table_pages, tables
from zoo.apps.tables import build_table
from zoo.apps.tables.grits import grits

SAMPLES = list(table_pages.samples())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_the_truth_comes_back_from_objects_and_words(sample):
    placed = sample.placed()
    for one in (sample, placed):
        found = build_table(one.objects, one.words)
        assert found.shape == one.true.shape
        assert grits(one.true, found, "top").f == 1
        assert grits(one.true, found, "con").f > 0.98
        assert grits(one.true, found, "loc").f > 0.75
    assert all(box[0] >= 0 and box[2] <= table_pages.PAGE[0] for box in (placed.place, placed.true.box))


def test_a_table_of_cells_has_no_holes():
    table = tables.table_of([[0, 0, 1, 2, "a  b", None], [1, 1, 1, 1, "c\nd", (0.0, 0.0, 1.0, 1.0)]])
    assert table.rows(repeat=False) == [["a b", ""], ["", "c d"]]
    assert tables.html_of(table) == (
        '<html><body><table><tr><td colspan="2" rowspan="1">a b</td></tr>'
        '<tr><td colspan="1" rowspan="1"></td><td colspan="1" rowspan="1">c d</td></tr></table></body></html>'
    )


def test_a_grid_that_repeats_spanning_cells():
    a, b, c = ("a", (0, 0, 2, 1)), ("b", (0, 1, 1, 2)), ("c", (1, 1, 2, 2))
    found = [cell[:5] for cell in table_contenders._merged([[a, a], [b, c]])]
    assert found == [[0, 0, 1, 2, "a"], [1, 0, 1, 1, "b"], [1, 1, 1, 1, "c"]]


def test_of_several_tables_the_one_in_the_place_counts():
    boxes = [(0, 0, 10, 10), (5, 5, 30, 30)]
    assert table_contenders._nearest(boxes, (6, 6, 28, 28)) == 1
    assert table_contenders._nearest(boxes, (40, 40, 50, 50)) is None
    assert table_contenders._nearest([], (0, 0, 1, 1)) is None
