"""The answers and the scores of the benchmark of tables; neither its material nor its peers need be there."""

from __future__ import annotations

import pytest

from benchmarks import table_contenders, table_material, table_samples, tables
from zoo.apps.tables import Table, build_table
from zoo.apps.tables.grits import grits

SAMPLES = list(table_samples.samples())
MATERIAL = table_material.material(table_material.material_folder())
TRUE = Table.from_html("<table><tr><td colspan=2>a b</td></tr><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_the_truth_comes_back_from_objects_and_words(sample):
    found = build_table(sample.objects, sample.words)
    assert found.shape == sample.true.shape
    assert grits(sample.true, found, "top").f == 1
    assert grits(sample.true, found, "con").f > 0.98
    assert grits(sample.true, found, "loc").f > 0.75


def test_every_file_has_a_source_and_a_hash_and_every_page_an_answer():
    assert len({(one.repo, one.path) for one in MATERIAL}) == len(MATERIAL) == len({one.sha256 for one in MATERIAL})
    assert {one.repo for one in MATERIAL} == set(table_material.SOURCES)
    assert {one.set for one in MATERIAL} == set(tables.SETS)
    pages = [one for one in MATERIAL if one.set == "pages"]
    assert len(pages) == 16
    assert sum(len(one.answer[1]) for one in pages) == 14


def test_a_table_of_cells_has_no_holes():
    table = table_material.table_of([[0, 0, 1, 2, "a  b"], [1, 1, 1, 1, "c\nd"], [1, 1, 1, 1, "e"]])
    assert table.rows(repeat=False) == [["a b", ""], ["", "c d"]]


def test_regions_of_icdar_become_tables_of_their_page():
    text = """<document><table><region page="2">
    <cell start-row="3" start-col="1" end-col="2"><content>a\nb</content></cell>
    <cell start-row="4" start-col="1"><content>c</content></cell></region></table></document>"""
    assert [table.rows(repeat=False) for table in table_material.icdar(text)[2]] == [[["a b", ""], ["c", ""]]]


def test_files_come_from_mirrors_and_their_hash_is_checked(tmp_path, monkeypatch):
    first = next(one for one in MATERIAL if one.set == "pages")
    monkeypatch.setattr(table_material, "material", lambda folder: [first])
    monkeypatch.setattr(table_material, "_read", lambda repo, path, mirrors: b"another picture")
    assert "expected" in table_material.fetch(tmp_path, None)[0]
    assert not list(tmp_path.iterdir())


def test_a_grid_that_repeats_spanning_cells():
    box = lambda *place: type("Box", (), dict(zip(("x1", "y1", "x2", "y2"), place, strict=True)))
    cell = lambda text, *place: type("Cell", (), {"value": text, "bbox": box(*place)})
    a, b, c = cell("a", 0, 0, 2, 1), cell("b", 0, 1, 1, 2), cell("c", 1, 1, 2, 2)
    assert table_contenders._merged([[a, a], [b, c]]) == [[0, 0, 1, 2, "a"], [1, 0, 1, 1, "b"], [1, 1, 1, 1, "c"]]


def test_rows_and_columns_that_html_spans():
    parser = table_contenders._Html()
    parser.feed("<table><tr><td rowspan=2>a</td><td>b</td></tr><tr><td>c</td></tr></table>")
    assert parser.cells() == [[0, 0, 2, 1, "a"], [0, 1, 1, 1, "b"], [1, 1, 1, 1, "c"]]


def test_scores_of_a_file():
    cells = [[c.row, c.column, c.row_span, c.column_span, c.text] for c in TRUE.cells]
    wrong = [[r, c, rs, cs, text.replace("2", "5")] for r, c, rs, cs, text in cells]
    rest = {"error": None, "start": 1, "wall": 1, "cpu": 1, "peak": 1}
    found = tables.score({1: [TRUE, TRUE], 2: [TRUE]}, {"pages": {"1": [wrong, cells, cells], "3": [cells]}, **rest}, 3)
    assert [row[5:] for row in found["tables"]] == [[3, 3], [3, 3], [3, 0]]
    assert found["false"] == 2
    figures = tables.summary([found])
    assert (figures["right tables"], figures["missed"], figures["right rows"], figures["right files"]) == (2, 1, 6, 0)
    assert tables.right_rows(TRUE, table_material.table_of(wrong)) == 2
