"""Tables that a model wrote beside the words of a page: where they disagree, a cell is doubtful."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import zoo
from tests.image_text_checkpoint import write_image_text_checkpoint
from tests.small_pdf import pdf, text
from zoo.apps.cli import main
from zoo.apps.documents import open_document
from zoo.apps.markup.extractor import ModelExtractorConfig
from zoo.apps.markup.otsl import CELL_TAGS, table_of_otsl
from zoo.apps.markup.reading import read_page
from zoo.apps.markup.table_words import LEFT_OUT, OTHER_COLUMN, OTHER_ROW, OTHER_TEXT, fit_table, with_words
from zoo.apps.tables import Table, Word

ROWS = [["Fruit", "Price", "Sold"], ["Pear", "1.08", "12"], ["Plum", "2.35", "7"], ["Quince", "6.40", "12"]]
PLACE = (100.0, 100.0, 400.0, 180.0)


def words() -> list[Word]:
    """Those of ROWS, 100 pixels apart in a row and 20 from row to row, and two of the page around."""
    found = [
        Word(content, (100 + 100 * c, 100 + 20 * r, 140 + 100 * c, 112 + 20 * r))
        for r, row in enumerate(ROWS)
        for c, content in enumerate(row)
    ]
    return [Word("12", (100, 20, 120, 32)), *found, Word("Notes", (100, 300, 140, 312))]


def written(rows: list[list[str]]) -> Table:
    head = "".join(f"<ched>{cell}" for cell in rows[0])
    body = ["".join(f"<fcel>{cell}" if cell else "<ecel>" for cell in row) for row in rows[1:]]
    return fit_table(table_of_otsl("<nl>".join([head, *body])), PLACE)


def doubts(table: Table) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for cell in table.cells:
        for reason in cell.doubts:
            found.setdefault(reason, []).append((cell.row, cell.column))
    return found


@pytest.mark.parametrize("is_placed", [True, False])
def test_cells_are_around_their_words(is_placed: bool):
    table = with_words(written(ROWS), words(), is_placed)
    assert doubts(table) == {}
    assert [cell.text for cell in table.cells] == [cell for row in ROWS for cell in row]
    at = {(cell.row, cell.column): cell.box for cell in table.cells}
    assert at[1, 1] == (200, 120, 240, 132)
    assert at[3, 2] == (300, 160, 340, 172)
    assert table.outside == ()


def test_other_texts_are_doubtful():
    rows = [list(row) for row in ROWS]
    rows[2][1] = "2.85"
    table = with_words(written(rows), words())
    assert doubts(table) == {OTHER_TEXT: [(2, 1)], LEFT_OUT: [(2, 1)]}
    assert [word.text for word in table.outside] == ["2.35"]


def test_cells_that_leave_out_words_are_doubtful():
    rows = [list(row) for row in ROWS]
    rows[3][1] = ""
    assert doubts(with_words(written(rows), words())) == {LEFT_OUT: [(3, 1)]}


def test_texts_in_other_rows_and_columns_are_doubtful():
    rows = [list(row) for row in ROWS]
    rows[1][0], rows[2][0] = rows[2][0], rows[1][0]
    assert doubts(with_words(written(rows), words())) == {OTHER_ROW: [(1, 0), (2, 0)]}
    rows = [list(row) for row in ROWS]
    rows[2][1], rows[2][2] = rows[2][2], rows[2][1]
    assert doubts(with_words(written(rows), words())) == {OTHER_COLUMN: [(2, 1), (2, 2)]}


def test_a_picture_of_a_table_has_no_words_to_differ_from():
    table = written(ROWS)
    assert with_words(table, [Word("12", (100, 20, 120, 32)), Word("Notes", (100, 300, 140, 312))]) == table


def test_spaces_dashes_and_quotes_are_no_difference():
    rows = [["Fruit", "Share"], ["Pear’s", "12 %"], ["Plum", "−5%"]]
    found = [Word("Fruit", (0, 0, 9, 9)), Word("Share", (20, 0, 29, 9)), Word("Pear's", (0, 10, 9, 19))]
    found += [Word("12%", (20, 10, 29, 19)), Word("Plum", (0, 20, 9, 29)), Word("-5", (20, 20, 25, 29))]
    found += [Word("%", (26, 20, 29, 29))]
    table = with_words(fit_table(written(rows), (0, 0, 30, 30)), found)
    assert doubts(table) == {}
    assert table.cells[5].box == (20, 20, 29, 29)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    tags = [f"<{name}>" for name in CELL_TAGS if name != "fcel"]
    folder = write_image_text_checkpoint(tmp_path_factory.mktemp("tables") / "model", more=tags)
    (folder.parent / "one.pdf").write_bytes(pdf([text(40, 100, "One")]))
    return folder


def test_the_command_writes_the_tables_of_the_model(folder, capsys, monkeypatch):
    """Random weights write a table with the help of a bias, which generation_config.json does not have."""
    monkeypatch.chdir(folder.parent)
    ids = zoo.load(folder).tokenizer.added_tokens()
    bias = {ids["<otsl>"]: 100.0} | {ids[tag]: 30.0 for tag in ("<fcel>", "<nl>", "</otsl>")}
    extract = ModelExtractorConfig.extractor

    def biased(self: ModelExtractorConfig) -> Any:
        extractor = extract(self)
        extractor.model.generation = extractor.model.generation.replace(logit_bias=bias)
        return extractor

    monkeypatch.setattr(ModelExtractorConfig, "extractor", biased)
    assert main(["table", "one.pdf", "--model", "model", "--device", "cpu", "-o", "out.json"]) == 0
    written = json.loads(Path("out.json").read_text(encoding="utf-8"))
    with open_document("one.pdf") as document:
        page = read_page(biased(ModelExtractorConfig(model="model", device="cpu")).model, document.page(1).image)
    assert any(table.cells for table in page.tables)
    found = [(len(table["cells"]), table["page"]) for table in (written if isinstance(written, list) else [written])]
    assert found == [(len(table.cells), 1) for table in page.tables if table.cells]
    assert "zoo: warning: the answer was cut off after" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--structure", "zoo-table-structure"], "--model reads whole pages: leave out --structure"),
        (["--threshold", "0.4"], "--model reads whole pages: leave out --threshold"),
        (["--ocr", "none"], "--model reads whole pages: leave out --ocr"),
    ],
)
def test_options_of_other_models_are_refused(folder, capsys, monkeypatch, arguments: list[str], message: str):
    monkeypatch.chdir(folder.parent)
    with pytest.raises(SystemExit):
        main(["table", "one.pdf", "--model", "model", *arguments])
    assert message in capsys.readouterr().err


def test_a_key_is_of_the_model(folder, tmp_path):
    other = shutil.copytree(folder, tmp_path / "other")
    first = ModelExtractorConfig(model=str(folder)).key()
    assert first == ModelExtractorConfig(model=str(folder)).key()
    (other / "generation_config.json").write_text("{}")
    assert first != ModelExtractorConfig(model=str(other)).key()
