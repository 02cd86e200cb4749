"""Tables that go on over pages: what is joined, what is not and why, and that nothing is lost."""

from __future__ import annotations

import csv
import itertools
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_tables import make

from tests.small_pdf import pdf, text
from tests.tables.stub_config import StubConfig
from zoo.apps.cli import main
from zoo.apps.documents import Page, open_document
from zoo.apps.tables import Table, TableExtractor, Word, extract_document, join_pages
from zoo.apps.tables.pages import PageTables, Surroundings, surroundings_of
from zoo.errors import TableError
from zoo.images.boxes import Detection

HEADER = ["Item", "2023", "Share"]
BASE = [[f"item {i}", str(100 + i), f"{i}.5 %"] for i in range(20)]


def placed(
    rows: list[list[str]], page: int, top: float = 60, header: int = 0, widths: Sequence[int] = (200, 90, 90)
) -> Table:
    """On a page of 600 x 800, with rows of 20."""
    table = make(rows, header)
    left = [100 + sum(widths[:c]) for c in range(len(widths) + 1)]
    columns = [(float(a), top, float(b), top + 20 * len(rows)) for a, b in itertools.pairwise(left)]
    boxes = [(100.0, top + 20 * r, float(left[-1]), top + 20 * (r + 1)) for r in range(len(rows))]
    box = (100.0, top, float(left[-1]), boxes[-1][3])
    return replace(table, row_boxes=tuple(boxes), column_boxes=tuple(columns), box=box, source="a.pdf", page=page)


def page_of(
    *tables: Table, above: str = "", below: str = "", page: int | None = None, error: str | None = None
) -> PageTables:
    number = page or tables[0].page or 1
    around = tuple(Surroundings(above, below) for _ in tables)
    return PageTables("a.pdf", "0" * 64, number, 9, tables, error, size=(600, 800), around=around)


def first_part(rows: int = 10) -> Table:
    return placed([HEADER, *BASE[:rows]], 1, top=760 - 20 * (rows + 1), header=1)


def joined(*pages: PageTables) -> tuple[list[PageTables], list[str]]:
    said: list[str] = []
    found = list(join_pages(pages, said.append))
    assert [one.page for one in found] == [one.page for one in pages]
    assert all(len(one.around) == len(one.tables) for one in found)
    return found, said


def test_a_table_of_three_pages() -> None:
    """One page repeats the header, one does not, on one it was not found to be a header."""
    second = placed([HEADER, *BASE[10:14]], 2, top=60)
    second = replace(second, row_boxes=(*second.row_boxes[:-1], (100, 140, 480, 740)), box=(100, 60, 480, 740))
    pages = page_of(first_part()), page_of(second), page_of(placed(BASE[14:], 3))
    (first, *rest), said = joined(*pages)
    (table,) = first.tables
    assert not said
    assert [one.tables for one in rest] == [(), ()]
    assert table.rows() == [HEADER, *BASE]
    assert table.header_rows == 1
    assert (table.page, table.pages) == (1, (1, 2, 3))
    assert table.row_pages == (1,) * 11 + (2,) * 4 + (3,) * 6
    assert table.row_boxes[11] == second.row_boxes[1]
    assert table.grid()[15][0].box == pages[2].tables[0].cells[0].box
    assert Table.from_json(table.to_json()) == table
    assert table.flat().row_pages == table.row_pages
    assert [PageTables.from_dict(json.loads(json.dumps(one.to_dict()))) for one in rest] == rest
    assert joined(*pages)[0] == [first, *rest]


def test_other_tables_stay_where_they_are() -> None:
    upper, lower = placed([["x", "y"]] * 3, 1, 60, widths=(100, 100)), placed([["p", "q", "r"]] * 4, 2, 400)
    pages = (
        page_of(upper, first_part()),
        page_of(placed(BASE[10:], 2), lower),
        page_of(page=3),
        page_of(placed(BASE, 4)),
    )
    pages = (
        replace(pages[0], around=(Surroundings("", "another table"), Surroundings("another table", ""))),
        replace(pages[1], around=(Surroundings("", "another table"), Surroundings("another table", "Some text."))),
        *pages[2:],
    )
    found, _ = joined(*pages)
    assert found[0].tables[0] == upper
    assert found[0].tables[1].pages == (1, 2)
    assert found[1].tables == (lower,)
    assert found[1].around == (Surroundings("another table", "Some text."),)
    assert found[2:] == list(pages[2:])


@pytest.mark.parametrize(
    "above", ["(continued)", "Table 3 (continued)", "Table 3. Sales of items (cont.)", "Tab. 3 – Fortsetzung"]
)
def test_a_title_that_says_so(above: str) -> None:
    found, said = joined(
        page_of(first_part(), below="continued on next page"), page_of(placed(BASE[10:], 2), above=above)
    )
    assert not said
    assert found[0].tables[0].rows() == [HEADER, *BASE]


def test_numbers_that_were_taken_for_a_header() -> None:
    found, said = joined(page_of(first_part()), page_of(placed(BASE[10:], 2, header=1)))
    assert not said
    assert found[0].tables[0].rows() == [HEADER, *BASE]
    assert sum(cell.is_header for cell in found[0].tables[0].cells) == 3


OTHER_HEADER = ["Item", "2024", "Share"]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ({}, {"above": "Table 4. Costs"}, "there is 'Table 4. Costs' above the second"),
        ({}, {"above": "In 2024 sales continued to grow, as the table shows:"}, "above the second"),
        ({}, {"above": "\ufffc"}, "there is something above the second"),
        ({"below": "Source: own data."}, {}, "there is 'Source: own data.' below the first"),
        ({"rows": [HEADER, *BASE[:10]], "top": 100}, {}, "the first ends at 40%"),
        ({}, {"top": 400}, "the second begins at 50%"),
        ({}, {"rows": [OTHER_HEADER, *BASE[10:]], "header": 1}, "the second has another header"),
        ({}, {"rows": [["Name", "Code", "Town"], *BASE[10:]], "header": 1}, "the second has another header"),
        ({}, {"rows": [row[:2] for row in BASE], "widths": (200, 180)}, "they have 3 and 2 columns"),
        ({}, {"widths": (90, 90, 200)}, "their columns are in other places"),
        ({}, {"size": (800, 600)}, "their pages are not of the same size"),
        ({}, {"rows": [["", "", ""]] * 3}, "no text that could be compared"),
    ],
)
def test_what_is_doubtful_is_not_joined(first: dict[str, Any], second: dict[str, Any], reason: str) -> None:
    a: dict[str, Any] = {"rows": [HEADER, *BASE[:10]], "top": 540, "header": 1, **first}
    b: dict[str, Any] = {"rows": BASE[10:], **second}
    sides = [{key: of.pop(key) for key in ("above", "below") if key in of} for of in (a, b)]
    size = b.pop("size", (600, 800))
    pages = page_of(placed(page=1, **a), **sides[0]), replace(page_of(placed(page=2, **b), **sides[1]), size=size)
    found, said = joined(*pages)
    assert found == list(pages)
    (text,) = said
    assert text.startswith("a.pdf, pages 1 and 2: two tables are not joined: ")
    assert reason in text


def test_pages_between_and_errors() -> None:
    parts = first_part(), placed(BASE[10:], 2)
    for pages in (
        (page_of(parts[0]), page_of(page=2, error="damaged"), page_of(replace(parts[1], page=3))),
        (page_of(parts[0]), page_of(replace(parts[1], page=3))),
        (page_of(parts[0]), replace(page_of(parts[1]), source="b.pdf")),
        (page_of(parts[0]), replace(page_of(parts[1]), around=())),
    ):
        said: list[str] = []
        assert list(join_pages(pages, said.append)) == list(pages)
        assert not said


def test_several_ways() -> None:
    """Two tables beside one another, and a wide one that might go on from either."""
    left, right = placed(BASE[:5], 1, 660), placed(BASE[5:10], 1, 660)
    pages = page_of(left, right), page_of(placed(BASE[10:], 2))
    found, said = joined(*pages)
    assert found == list(pages)
    assert said == ["a.pdf, pages 1 and 2: tables are not joined: there are several ways to do it"]


def test_a_table_of_very_many_pages() -> None:
    """In linear time, and no more held than it needs; then as many pages without one."""
    rows = [[f"{i}", "1", "2"] for i in range(34)]
    pages = [page_of(placed(rows, number)) for number in range(1, 61)]
    found = list(join_pages(iter(pages)))
    assert found[0].tables[0].shape == (60 * 34, 3)
    assert not any(one.tables for one in found[1:])
    ahead = iter(page_of(placed(rows[:5], number)) for number in range(1, 61))
    results = join_pages(ahead, lambda _: None)
    next(results)
    assert next(ahead).page == 3  # one page ahead


def test_detectors_are_not_exact() -> None:
    rng = random.Random(0)
    for _ in range(50):
        a, b = first_part(), placed(BASE[10:], 2)
        move = rng.uniform(-40, 40)
        columns = [
            tuple(v + rng.uniform(-9, 9) + (move if i % 2 == 0 else 0) for i, v in enumerate(c)) for c in b.column_boxes
        ]
        found, said = joined(page_of(a), page_of(replace(b, column_boxes=columns)))
        assert not said
        assert found[0].tables[0].shape == (21, 3)


def words(*given: tuple[str, float, float]) -> list[Word]:
    return [Word(text, (x, y, x + 8 * len(text), y + 12)) for text, x, y in given]


def test_what_lies_around_a_table() -> None:
    image = np.full((800, 600, 3), 255, np.uint8)
    table = placed(BASE[:10], 1, 200)
    given = words(("12", 300, 780), ("Title", 120, 20), ("beside", 500, 150), ("Table", 110, 170), ("4", 160, 170))
    page = Page("a.pdf", 1, 1, image, given)
    assert surroundings_of(page, [table]) == (Surroundings("Table 4", ""),)
    near = replace(page, words=words(("note", 120, 405)))
    assert surroundings_of(near, [table]) == (Surroundings("", "note"),)
    top = placed(BASE[:10], 1, 50)
    assert surroundings_of(replace(page, words=words(("Heading", 120, 36))), [top]) == (Surroundings("Heading", ""),)
    other = placed(BASE[:5], 1, 500)
    assert surroundings_of(replace(page, words=[]), [table, other]) == (
        Surroundings("", "another table"),
        Surroundings("another table", ""),
    )
    scan = replace(page, words=None)
    assert surroundings_of(scan, [table]) == (Surroundings("", ""),)
    image[20:30, 150:300] = image[780:790, 300:310] = image[401:403, 100:480] = 0  # title, number, the table's rule
    assert surroundings_of(scan, [table]) == (Surroundings("", ""),)
    image[450:460, 150:300] = 0
    assert surroundings_of(scan, [table]) == (Surroundings("", "\ufffc"),)


def test_row_pages_are_checked() -> None:
    table = placed(BASE[:3], 2)
    for wrong in ((2, 2), (2, 3, 2), (1, 2, 3), (2, 2, "3")):
        with pytest.raises(TableError, match="row_pages"):
            replace(table, row_pages=wrong)


def long_pdf() -> bytes:
    """A table of three columns over three pages, with no header."""
    pages = [
        "".join(text(30 + 100 * x, 30 + 66 * (2 - y), f"{name}{x}{y}") for x in range(3) for y in range(3))
        for name in "abc"
    ]
    return pdf(pages)


EXPECTED = [[f"{name}{x}{y}" for x in range(3)] for name in "abc" for y in range(3)]


def thirds(image: np.ndarray, **_: Any) -> list[Detection]:
    Y, X = image.shape[:2]
    rows = [Detection("table row", 0.9, (0.0, i * Y / 3, float(X), (i + 1) * Y / 3)) for i in range(3)]
    return [*rows, *(Detection("table column", 0.9, (i * X / 3, 0.0, (i + 1) * X / 3, float(Y))) for i in range(3))]


def test_a_document() -> None:
    pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
    extract = TableExtractor(thirds, None)
    with open_document(long_pdf(), name="long.pdf") as document:
        (table,) = extract_document(document, extract, join=True)
        assert table.rows() == EXPECTED
        assert (table.source, table.pages) == ("long.pdf", (1, 2, 3))
        assert [one.pages for one in extract_document(document, extract, "2-")] == [(2,), (3,)]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_every_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], jobs: str
) -> None:
    pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
    monkeypatch.setattr("zoo.apps.cli.table_options.ExtractorConfig", StubConfig)
    monkeypatch.chdir(tmp_path)
    Path("long.pdf").write_bytes(long_pdf())
    base = ["table", "long.pdf", "--no-detection", "--join", "--jobs", jobs]
    assert main([*base, "-o", "out", "--format", "csv,xlsx"]) == 0
    assert "3 pages of 1 document, 1 table\n" in capsys.readouterr().err
    with open("out/long-pages-1-3-table-1.csv", encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == EXPECTED
    assert [
        len(json.loads(line)["tables"]) for line in Path("out/tables.jsonl").read_text(encoding="utf-8").splitlines()
    ] == [1, 1, 1]
    before = Path("out/long-pages-1-3-table-1.csv").read_bytes()
    Path("out/long-pages-1-3-table-1.csv").unlink()
    lines = Path("out/tables.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("out/tables.jsonl").write_text("".join(lines[:2]), encoding="utf-8")
    assert main([*base, "-o", "out", "--resume"]) == 0
    assert Path("out/long-pages-1-3-table-1.csv").read_bytes() == before
    if jobs == "2":
        return
    assert main([*base, "-o", "all.jsonl"]) == 0
    found = [
        PageTables.from_dict({k: v for k, v in json.loads(line).items() if k != "key"})
        for line in Path("all.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [[table.pages for table in one.tables] for one in found] == [[(1, 2, 3)], [], []]
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl, which writes workbooks")
    assert main([*base, "-o", "all.xlsx"]) == 0
    book = openpyxl.load_workbook("all.xlsx")
    assert book.sheetnames == ["Pages 1-3 Table 1"]
    assert [[cell.value for cell in row] for row in book.worksheets[0].rows] == EXPECTED
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow, which writes Parquet")
    assert main([*base, "-o", "all.parquet", "--flat"]) == 0
    (row,) = parquet.read_table("all.parquet").to_pylist()
    assert (row["page"], row["last_page"], row["rows"]) == (1, 3, 9)
    with pytest.raises(SystemExit):
        main([*base, "-o", "all.jsonl", "--resume"])
    assert "needs -o FOLDER" in capsys.readouterr().err
