"""XLSX: what a spreadsheet program shows is the table, and a workbook that it would call damaged is never written."""

from __future__ import annotations

import dataclasses
import datetime
import re
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from random_tables import EXAMPLES, make, of_cells, tables

from zoo.apps.tables import Cell, Table, as_xlsx, save_xlsx
from zoo.errors import InputError, TableError

openpyxl = pytest.importorskip("openpyxl", reason="the extra 'tables': openpyxl")


def opened(path):
    book = openpyxl.load_workbook(path, data_only=False)
    return book.worksheets


def shown(value: str | None) -> str:
    """A text as ECMA-376 has it: what _xHHHH_ stands for."""
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found[1], 16)), value or "")


def written(table: Table, path, **options):
    table.to_xlsx(path, **options)
    return opened(path)[0]


@settings(EXAMPLES, max_examples=60)
@given(tables())
def test_texts_and_merged_cells_are_those_of_the_table(table):
    with TemporaryDirectory() as folder:
        sheet = written(table, Path(folder) / "table.xlsx")
    spans = {(c.row + 1, c.column + 1, c.row + c.row_span, c.column + c.column_span) for c in table.cells}
    merged = {(m.min_row, m.min_col, m.max_row, m.max_col) for m in sheet.merged_cells.ranges}
    assert merged == {span for span in spans if span[:2] != span[2:]}
    for cell in table.cells:
        assert shown(sheet.cell(cell.row + 1, cell.column + 1).value) == cell.text


@pytest.mark.parametrize("types", [True, False])
@pytest.mark.parametrize("text", ["=1+1", "#N/A", "TRUE", "2026-13-01", "007", "1e5", "  =x", "1.204", "3 - 4"])
def test_a_text_stays_a_text(text, types, tmp_path):
    found = written(make([[text]]), tmp_path / "a.xlsx", types=types)["A1"]
    assert (found.value, found.data_type) == (text, "s")
    with zipfile.ZipFile(tmp_path / "a.xlsx") as file:
        assert b"<f>" not in file.read("xl/worksheets/sheet1.xml")


@pytest.mark.parametrize(
    ("text", "value", "shape"),
    [
        ("12", 12, "0"),
        ("-3.50", -3.5, "0.00"),
        ("0.716", 0.716, "0.000"),
        ("+7", 7, "+0;-0"),
        ("+12.4%", 0.124, "+0.0%;-0.0%"),
        ("-3.2%", -0.032, "0.0%"),
        ("\u22128.7 %", -0.087, "0.0%"),
        ("$ 5.00", 5, '"$"0.00'),
        ("-1,204 EUR", -1204, '#,##0" EUR"'),
        ("CHF 12", 12, '"CHF "0'),
        ("007", "007", "General"),
        ("1,234", 1234, "#,##0"),
        ("1,234.50", 1234.5, "#,##0.00"),
        ("(12.5 %)", -0.125, "0.0%;(0.0%)"),
        ("2024-03-31", datetime.datetime(2024, 3, 31), "yyyy-mm-dd"),
        ("1899-12-31", "1899-12-31", "General"),
        ("1234567890123456", "1234567890123456", "General"),
        ("=1", "=1", "General"),
        ("٣", "٣", "General"),
        ("5 %", 0.05, "0%"),
    ],
)
def test_what_is_sure_to_be_a_number_is_one(text, value, shape, tmp_path):
    found = written(make([[text]]), tmp_path / "a.xlsx")["A1"]
    assert (found.value, found.number_format) == (value, shape)
    found = written(make([[text]]), tmp_path / "a.xlsx", types=False)["A1"]
    assert (found.value, found.number_format, found.data_type) == (text, "General", "s")


def test_a_column_of_numbers_has_a_sum(tmp_path):
    """What a reader is unsure of, and the header, are no numbers."""
    rows = [["Item", "2024", "Share"], ["Ink", "900", "-3.2%"], ["Paper", "1,100", "+0.5%"], ["Pens", "35O", "n/a"]]
    table = make(rows, header_rows=1)
    table = dataclasses.replace(table, cells=tuple(dataclasses.replace(c, confidence=0.99) for c in table.cells))
    sheet = written(table, tmp_path / "a.xlsx")
    columns = [[cell.value for cell in column] for column in sheet.iter_cols()]
    assert columns == [["Item", "Ink", "Paper", "Pens"], ["2024", 900, 1100, "35O"], ["Share", -0.032, 0.005, "n/a"]]


def test_the_header_is_bold_and_columns_are_as_wide_as_their_texts(tmp_path):
    sheet = written(make([["a", "b"], ["x" * 40, "y" * 500]], header_rows=1), tmp_path / "a.xlsx")
    assert [[cell.font.bold for cell in row] for row in sheet.iter_rows()] == [[True, True], [False, False]]
    wide, widest = (sheet.column_dimensions[letter].width for letter in "AB")
    assert 40 <= wide <= 45
    assert wide < widest < 100
    assert sheet.freeze_panes == "A2"
    sheet = written(make([["字" * 20, "b"]]), tmp_path / "b.xlsx")
    assert 40 <= sheet.column_dimensions["A"].width <= 45
    assert sheet.freeze_panes is None


def test_a_text_with_lines_is_wrapped(tmp_path):
    sheet = written(make([["a\nb", "c"]]), tmp_path / "a.xlsx")
    assert [sheet[at].alignment.wrap_text for at in ("A1", "B1")] == [True, None]


def test_white_space_is_marked_as_significant(tmp_path):
    make([[" a", " ", "\n"]]).to_xlsx(tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "a.xlsx") as file:
        xml = file.read("xl/worksheets/sheet1.xml").decode()
    assert '<t xml:space="preserve"> a</t>' in xml
    assert "<t>_x0020_</t>" in xml
    assert "<t>_x000A_</t>" in xml


@pytest.mark.parametrize(("text", "length"), [("a" * 32_768, 32_767), ("😀" * 20_000, 16_383), ("\x01" * 5000, 4681)])
def test_a_text_beyond_a_cell_is_refused_or_cut_if_asked(text, length, tmp_path):
    with pytest.raises(TableError, match=r"row 0, column 0 has a text of .* at most 32,767 fit; cut=True shortens it"):
        make([[text]]).to_xlsx(tmp_path / "a.xlsx")
    assert not list(tmp_path.iterdir())
    assert shown(written(make([[text]]), tmp_path / "a.xlsx", cut=True)["A1"].value) == text[:length]


def test_the_longest_text_fits(tmp_path):
    assert written(make([["a" * 32_767]]), tmp_path / "a.xlsx")["A1"].value == "a" * 32_767


def test_a_grid_beyond_a_sheet_is_refused(tmp_path, monkeypatch):
    with pytest.raises(TableError, match="1 x 16,385 positions, a sheet 1,048,576 x 16,384"):
        of_cells([Cell(0, 0, 1, 16_385, (0, 0, 1, 1))], 1, 16_385).to_xlsx(tmp_path / "a.xlsx")
    monkeypatch.setattr(as_xlsx, "MAX_ROWS", 2)
    with pytest.raises(TableError, match="3 x 1 positions, a sheet 2 x"):
        make([["a"], ["b"], ["c"]]).to_xlsx(tmp_path / "a.xlsx")


def test_each_table_has_its_sheet(tmp_path):
    save_xlsx([make([["a"]]), make([["b"]])], tmp_path / "a.xlsx")
    save_xlsx([make([["a"]]), make([["b"]])], tmp_path / "b.xlsx", names=["Größe", "x" * 31])
    assert [(s.title, s["A1"].value) for s in opened(tmp_path / "a.xlsx")] == [("Table 1", "a"), ("Table 2", "b")]
    assert [s.title for s in opened(tmp_path / "b.xlsx")] == ["Größe", "x" * 31]


@pytest.mark.parametrize(
    "name", ["", "x" * 32, "😀" * 16, *(f"a{c}b" for c in "[]:*?/\\\n"), "'a", "a'", "History", "hisTORY"]
)
def test_names_that_sheets_must_not_have_are_refused(name, tmp_path):
    with pytest.raises(TableError, match="the sheet name"):
        save_xlsx([make([["a"]])], tmp_path / "a.xlsx", names=[name])


def test_names_that_do_not_fit_the_tables_are_refused(tmp_path):
    two = [make([["a"]])] * 2
    for names in (["Sheet", "sheet"], ["a", "a"]):
        with pytest.raises(TableError, match="the same to Excel"):
            save_xlsx(two, tmp_path / "a.xlsx", names=names)
    for names in (["a"], "ab"):
        with pytest.raises(InputError, match="expected 2 texts"):
            save_xlsx(two, tmp_path / "a.xlsx", names=names)
    with pytest.raises(TableError, match="at least one sheet"):
        save_xlsx([], tmp_path / "a.xlsx")
    with pytest.raises(TableError, match=r"ends in \.xlsx"):
        save_xlsx(two, tmp_path / "a.xls")


def test_an_empty_table_is_an_empty_sheet(tmp_path):
    assert written(of_cells([], 0, 3), tmp_path / "a.xlsx").dimensions == "A1:A1"
