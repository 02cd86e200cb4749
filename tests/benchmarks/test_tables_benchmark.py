"""The answers and the scores of the benchmark of tables; neither its material nor its peers need be there."""

from __future__ import annotations

import json

import pytest

from benchmarks import pages, table_contenders, table_material, table_samples, table_scores, tables
from tests.small_pdf import pdf, text
from zoo.apps.tables import Table, build_table
from zoo.apps.tables.grits import grits

SAMPLES = list(table_samples.samples())
MATERIAL = table_material.material(table_material.material_folder())
HTML = "<table><tr><td colspan=2>a b</td></tr><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>"
TRUE = Table.from_html(HTML)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_the_truth_comes_back_from_objects_and_words(sample):
    found = build_table(sample.objects, sample.words)
    assert found.shape == sample.true.shape
    assert grits(sample.true, found, "top").f == 1
    assert grits(sample.true, found, "con").f > 0.98
    assert grits(sample.true, found, "loc").f > 0.75


def test_every_file_has_a_source_and_a_hash_and_every_page_an_answer():
    files = [one for one in MATERIAL if one.set != "drawn"]
    assert len({(one.repo, one.path) for one in files}) == len(files) == len({one.sha256 for one in files})
    assert len({one.key for one in MATERIAL}) == len(MATERIAL)
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


def test_a_drawn_page_has_no_words(tmp_path):
    pytest.importorskip("pypdfium2", reason="needs pypdfium2")
    from zoo.apps.documents import open_document

    (tmp_path / "words.pdf").write_bytes(pdf([text(40, 150, "Name"), text(40, 100, "a")]))
    table_material.draw(tmp_path / "words.pdf", tmp_path / "drawn" / "words.pdf")
    with open_document(tmp_path / "drawn" / "words.pdf") as document:
        seen = [(len(page.words or ()), bool((page.image < 100).any())) for page in document.pages()]
    assert seen == [(0, True)] * 2


def test_files_come_from_mirrors_and_their_hash_is_checked(tmp_path, monkeypatch):
    first = next(one for one in MATERIAL if one.set == "pages")
    monkeypatch.setattr(table_material, "material", lambda folder: [first])
    monkeypatch.setattr(table_material, "read_file", lambda repo, commit, path, mirrors: b"another picture")
    assert "expected" in table_material.fetch(tmp_path, None)[0]
    assert not list(tmp_path.iterdir())


def test_a_grid_that_repeats_spanning_cells():
    box = lambda *place: type("Box", (), dict(zip(("x1", "y1", "x2", "y2"), place, strict=True)))
    cell = lambda text, *place: type("Cell", (), {"value": text, "bbox": box(*place)})
    a, b, c = cell("a", 0, 0, 2, 1), cell("b", 0, 1, 1, 2), cell("c", 1, 1, 2, 2)
    assert table_contenders._merged([[a, a], [b, c]]) == [[0, 0, 1, 2, "a"], [1, 0, 1, 1, "b"], [1, 1, 1, 1, "c"]]


def test_scores_of_a_file():
    cells = [[c.row, c.column, c.row_span, c.column_span, c.text] for c in TRUE.cells]
    wrong = [[r, c, rs, cs, text.replace("2", "5")] for r, c, rs, cs, text in cells]
    rest = {"error": None, "start": 1, "wall": 1, "cpu": 1, "peak": 1}
    answer = {"pages": {"1": [wrong, cells, cells], "3": [HTML]}, **rest}
    found = table_scores.score({1: [TRUE, TRUE], 2: [TRUE]}, answer, MATERIAL[0])
    assert [row[5:] for row in found["tables"]] == [[3, 3], [3, 3], [3, 0]]
    assert found["false"] == 2
    assert table_scores.like_pdfplumber({1: [TRUE]})[1][0].rows() == [["ab", ""], ["1", "2"], ["3", ""]]
    backwards = table_scores.like_pdfplumber({1: [table_material.table_of([[0, 0, 1, 1, "דגב א"]])]})
    assert backwards[1][0].rows() == [["אבגד"]]
    figures = table_scores.summary([found])
    assert (figures["right tables"], figures["missed"], figures["right rows"], figures["right files"]) == (2, 1, 6, 0)
    assert table_scores.right_rows(TRUE, table_material.table_of(wrong)) == {0, 2}


def test_rows_that_two_libraries_agree_on():
    """The second library has two of three true rows; one of these two is found."""
    cells = [[c.row, c.column, c.row_span, c.column_span, c.text] for c in TRUE.cells]
    first_wrong, last_wrong = ([[*c[:4], c[4].replace(a, "x")] for c in cells] for a in ("a", "3"))
    answer = {"pages": {"1": [first_wrong]}, "error": None, "start": 1, "wall": 1, "cpu": 1, "peak": 1}
    found = table_scores.score({1: [TRUE], 2: [TRUE]}, answer, MATERIAL[0], {"pages": {"1": [last_wrong]}})
    assert [row[5:] for row in found["tables"]] == [[3, 2, 2, 1], [3, 0, 0, 0]]
    assert tables.figures(table_scores.summary([found]))[2] == "2 of 6; agreed: 1 of 2"


def test_rows_are_right_whatever_the_white_space_and_the_kind_of_dash():
    true, found = (
        table_material.table_of([[0, 0, 1, 1, a], [1, 0, 1, 1, b]])
        for a, b in (("−1.5 – 2", "µM . . . ."), ("–1.5-2", "uM"))
    )
    assert len(table_scores.right_rows(true, found)) == 1


def test_figures_in_the_docs(tmp_path):
    """The final half alone, losing tables with their peer, the newest result."""
    rest = {"error": None, "start": 1.0, "wall": 1.0, "cpu": 1.0, "peak": 1, "pages": 1, "false": 0}
    table = lambda con: [1, [2, 2], [2, 2], con, 1.0, 2, 1]
    found = {"files": [{"file": f"x/{half}.png", "half": half} for half in ("final", "look")], "contenders": {}}
    for who, con in (("zoo", 0.96), ("rapid_table", 0.98)):
        found["contenders"][who] = [{"tables": [table(con)], **rest}, {"tables": [table(0.1)], **rest}]
    process = {"wall": 1.0, "cpu": 0.9, "peak": 100.0}
    for name, date in (("tables-a.json", "2026-01-01"), ("tables-b.json", "2026-01-02")):
        machine = {"date": date, "cpu": "a CPU", "cores": 2, "threads": 1, "versions": {"img2table": "2.0.0"}}
        result = {"environment": machine, "sets": {"pages": found}, "process": process}
        (tmp_path / name).write_text(json.dumps(result))
        process = {**process, "wall": 2.0}
    text = pages.with_figures("Before" + "".join(pages.FIGURES) + "after", tmp_path)
    assert "| zoo | 0.960 | 1.000 | 1 of 2 | 1 of 1 | 0 | 0 | 1 of 1 |" in text
    assert "0.100" not in text
    assert "2.00 s" in text
    assert "2026-01-02, a CPU, 2 cores, 1 threads; img2table 2.0.0 (`tables-b.json`)" in text
    assert text.startswith("Before")
    assert text.endswith("after")
    assert pages.with_figures(text, tmp_path) == text
    assert "zoo is behind in GriTS-Con here: x/final.png: rapid_table 0.980 to 0.960." in pages._tables(result)
