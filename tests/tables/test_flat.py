"""One header row of names such as "Revenue / 2023", and rows that are named with the heading above them."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest
from hypothesis import given
from random_tables import EXAMPLES, make, tables
from test_real_tables import detected

from zoo.apps.tables import Table, build_table


def sheet() -> Table:
    rows = [
        ["", "Revenue", "", "Date"],
        ["", "2023", "2024", "Date"],
        ["Assets", "", "", ""],
        ["Cash", "1,204.50", "(3.00)", "31 March 2024"],
        ["Other", "7", "8", "1 April 2024"],
        ["Liabilities", "", "", ""],
        ["Long", "", "", ""],
        ["", "1", "2", "3 May 2024"],
        ["End", "", "", ""],
    ]
    wide = {(r, 0): (1, 4) for r in (2, 5, 6, 8)}
    table = make(rows, 2, {(0, 0): (2, 1), (0, 1): (1, 2), (0, 3): (2, 1), **wide})
    cells = [replace(cell, is_projected_row_header=cell.column_span == 4) for cell in table.cells]
    return replace(table, cells=tuple(cells), source="a.pdf", page=3)


FLAT = [
    ["", "Revenue / 2023", "Revenue / 2024", "Date"],
    ["Assets / Cash", "1,204.50", "(3.00)", "31 March 2024"],
    ["Assets / Other", "7", "8", "1 April 2024"],
    ["Liabilities / Long", "1", "2", "3 May 2024"],
    ["End", "", "", ""],
]


def test_flat() -> None:
    found = sheet().flat()
    assert found.rows(repeat=False) == FLAT
    cells = [c for c in sheet().cells if c.column_span < 4]
    for heading in (c for c in sheet().cells if c.column_span == 4):  # in the first column alone
        cells += [replace(heading, column_span=1)]
        cells += [replace(heading, column=c, column_span=1, text="") for c in range(1, 4)]
    assert replace(sheet(), cells=tuple(cells)).flat().rows(repeat=False) == FLAT
    assert (found.header_rows, found.source, found.page) == (1, "a.pdf", 3)
    assert found.flat() == found == Table.from_json(found.to_json())
    assert found.row_boxes[:2] == ((0, 0, 40, 10), (0, 15, 40, 20))
    assert [cell.box for cell in found.cells[:2]] == [(0, 0, 10, 10), (10, 0, 20, 10)]
    assert make([["a", "b"], ["c", "d"]], 1).flat() == make([["a", "b"], ["c", "d"]], 1)


def test_columns_under_headings_have_types() -> None:
    table = sheet()
    records = table.flat().to_records(types=True)
    assert records[0] == {
        "column 1": "Assets / Cash",
        "Revenue / 2023": 1204.5,
        "Revenue / 2024": -3.0,
        "Date": datetime.date(2024, 3, 31),
    }
    assert records[-1] == {"column 1": "End", "Revenue / 2023": None, "Revenue / 2024": None, "Date": None}
    assert table.to_records(types=True)[1]["Revenue / 2023"] == "1,204.50"  # "Assets" is in the same column
    assert [row["Date"] for row in table.flat().to_records()] == [row[3] for row in FLAT[1:]]


def test_frames_have_the_same_names() -> None:
    pytest.importorskip("pandas", reason="needs pandas")
    frame = sheet().flat().to_pandas(types=True)
    assert list(frame.columns) == FLAT[0]
    assert frame["Revenue / 2023"].dtype == float
    assert list(sheet().to_pandas(header="flat").columns) == FLAT[0]


def test_a_real_table_with_headings() -> None:
    _, objects, words = detected("gmft_3_1")
    found = build_table(objects, words).flat()
    assert found.shape == (12, 8)
    assert [row[0] for row in found.rows()][1:8:6] == ["transalkylation / BEC", "transalkylation / UTL(cha)"]
    assert [row[0] for row in found.rows()][-1] == "disproportionation / UTL(cha)"


@EXAMPLES
@given(tables())
def test_no_text_is_lost(table: Table) -> None:
    found = table.flat()
    assert found.header_rows == min(table.header_rows, 1)
    whole = " ".join(cell.text for cell in found.cells)
    assert all(cell.text in whole for cell in table.cells)
    assert found.flat().rows() == found.rows()
