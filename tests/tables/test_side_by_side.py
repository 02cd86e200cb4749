"""Tables beside each other that the network took for one."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.apps.tables import Cell, Table
from zoo.apps.tables.side_by_side import part_repeated_header
from zoo.images.boxes import Box


def table_of(rows: list[list[str]], origin: str = "model") -> Table:
    def box(r: int, c: int) -> Box:
        return 50.0 * c, 20.0 * r, 50.0 * c + 50, 20.0 * r + 20

    R, C = len(rows), len(rows[0])
    cells = [
        Cell(r, c, 1, 1, box(r, c), text, is_header=r == 0, origin=origin)
        for r, row in enumerate(rows)
        for c, text in enumerate(row)
    ]
    lines = tuple((0.0, 20.0 * r, 50.0 * C, 20.0 * r + 20) for r in range(R))
    columns = tuple((50.0 * c, 0.0, 50.0 * c + 50, 20.0 * R) for c in range(C))
    return Table(tuple(cells), lines, columns, (0.0, 0.0, 50.0 * C, 20.0 * R), 0.9, 1)


AGES = [["Age", "Number"] * 3, ["1", "10", "4", "40", "7", "70"], ["2", "20", "5", "50", "8", "80"]]
AGES += [["3", "30", "6", "60", "", ""]]
PAPER = np.full((120, 400, 3), 255, np.uint8)


def test_a_header_that_repeats_is_that_of_tables_beside_each_other():
    first, second, third = part_repeated_header(table_of(AGES), PAPER)
    assert first.rows() == [["Age", "Number"], ["1", "10"], ["2", "20"], ["3", "30"]]
    assert second.rows()[1] == ["4", "40"]
    assert third.rows() == [["Age", "Number"], ["7", "70"], ["8", "80"]]
    assert third.box == (200.0, 0.0, 300.0, 60.0)
    assert [one.header_rows for one in (first, second, third)] == [1, 1, 1]


@pytest.mark.parametrize(
    "table",
    [
        table_of(AGES, "rules"),
        table_of([["Name", *row] for row in AGES]),
        table_of([["2005"] * 4, *(["1", "2", "3", "4"] for _ in range(4))]),
        table_of([["", "%", "", "%"], *(["1", "2", "3", "4"] for _ in range(4))]),
    ],
    ids=["ruled", "names", "one text", "blank"],
)
def test_other_headers_are_those_of_one_table(table: Table):
    assert part_repeated_header(table, PAPER) == [table]


@pytest.mark.parametrize("down", [False, True])
def test_a_rule_across_holds_a_table_together_and_one_down_parts_it(down: bool):
    page = PAPER.copy()
    page[20] = 0
    if down:
        page[:, 100] = page[:, 200] = 0
    assert len(part_repeated_header(table_of(AGES), page)) == (3 if down else 1)
