"""Rows of XLSX workbooks: what cells become, in parts in any order, and what is refused."""

from __future__ import annotations

import datetime
import pickle
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from zoo.apps.batch import xlsx_source
from zoo.apps.batch.sources import open_source
from zoo.apps.batch.xlsx_source import sheet_rows
from zoo.errors import InputError

openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl, which reads workbooks")


def workbook(path: Path, rows: Sequence[Sequence[Any]], *others: str) -> str:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(list(row))
    for name in others:
        book.create_sheet(name)
    book.save(path)
    return str(path)


def test_cells_are_values(tmp_path: Path) -> None:
    day = datetime.datetime(2024, 5, 6)
    rows = [
        [None],
        ["text", "n", 2023],
        ["a", 5, day],
        [],
        ["b", 0.5, day.replace(hour=7)],
        [7, None, True],
        ["=1+1", "#N/A", None],
    ]
    (names, _), *found = sheet_rows(workbook(tmp_path / "a.xlsx", [*rows, ["c", 1, 2, None, "x"]]))
    assert list(names) == ["text", "n", "2023"]
    assert [list(row.values()) for row, _ in found[:-1]] == [
        ["a", 5, "2024-05-06"],
        ["b", 0.5, "2024-05-06T07:00:00"],
        [7, None, True],
        [None, "#N/A", None],  # openpyxl computes no formula, and keeps no value of it
    ]
    assert [problem for _, problem in found] == [None] * 4 + ["a value in column 5, which has no name"]


def test_parts_in_any_order(tmp_path: Path) -> None:
    paths = [workbook(tmp_path / f"{k}.xlsx", [["text", "k"], *([i, k] for i in range(10))]) for k in range(2)]
    source, parts = open_source(paths, ["text"], media=None, rows=4)
    assert [(part.first, part.rows) for part in parts] == [(0, 4), (4, 4), (8, 2)] * 2
    other = pickle.loads(pickle.dumps(source))
    for part in (*parts, *reversed(parts), parts[2], parts[1]):
        for one in (source, other):
            rows = one.read(part)
            assert [row["text"] for row in rows.given] == [str(part.first + i) for i in range(part.rows)]
            assert {row["k"] for row in rows.kept} == {int(part.path == paths[1])}
    workbook(tmp_path / "0.xlsx", [["text", "k"], [1, 2]])
    with pytest.raises(InputError, match=r"0\.xlsx has changed: 1 row where there were 4"):
        pickle.loads(pickle.dumps(source)).read(parts[0])


def test_a_wrong_size_in_the_file_cuts_nothing(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [["text", "n"], ["a", 1], ["b", 2]])
    with zipfile.ZipFile(path) as given:
        files = {name: given.read(name) for name in given.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert b'ref="A1:B3"' in files[sheet]
    files[sheet] = files[sheet].replace(b'ref="A1:B3"', b'ref="A1:A2"')
    with zipfile.ZipFile(path, "w") as written:
        for name, data in files.items():
            written.writestr(name, data)
    assert len(list(sheet_rows(path))) == 3


def test_other_sheets_are_named(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [["text"], ["a"]], "Notes", "More")
    with pytest.warns(UserWarning, match="'Sheet' is read, and others are not: Notes, More"):
        assert len(list(sheet_rows(path))) == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["text", None, "n"], ["a", 1, 2]], "column 2 has no name in row 1"),
        ([["text", "text"], ["a", "b"]], "'text' names two columns"),
    ],
)
def test_columns_have_names(rows: list[list[Any]], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        list(sheet_rows(workbook(tmp_path / "a.xlsx", rows)))


def test_what_is_no_workbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = Path(workbook(tmp_path / "good.xlsx", [["text"], ["a"]])).read_bytes()
    path = tmp_path / "a.xlsx"
    for data, message in (
        (b"text\na\n", "is not an XLSX workbook, or is damaged"),
        (good[: len(good) // 2], "is not an XLSX workbook, or is damaged"),
        (xlsx_source.OLE + bytes(600), "an encrypted workbook, or an old one"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=message):
            list(sheet_rows(str(path)))
    path.write_bytes(good)
    with zipfile.ZipFile(path, "a") as archive:  # no part of a workbook, which openpyxl would not read
        archive.writestr("xl/worksheets/bomb.xml", bytes(1 << 20))
    monkeypatch.setattr(xlsx_source, "MAX_BYTES", 1 << 20)
    with pytest.raises(InputError, match="bytes when it is decompressed, expected 1,048,576 at most"):
        list(sheet_rows(str(path)))
