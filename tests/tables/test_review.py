"""The page for reviewing tables: what it says of hostile texts, and all that a reader does with it in a browser."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.small_pdf import pdf, text
from tests.tables.random_tables import make
from tests.tables.stub_config import StubConfig
from tests.web.browser import chromium
from zoo.apps.batch.formulas import escape_formulas
from zoo.apps.cli import main
from zoo.apps.documents import Page
from zoo.apps.tables import Cell, Table
from zoo.apps.tables.batch import ExtractorConfig, PageTables, Worker, extract_pages
from zoo.apps.tables.review import ReviewWriter
from zoo.apps.tables.values import Number, column_values, number_format, parse_number
from zoo.errors import TableError

pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
HOSTILE = '</script><img src=x onerror="alert(1)">'
WORDS = ["=1+1", "a,b", 'say "x"', "<b>", "&amp;", "e", "f", "g", "h"]


def tables_of(result: PageTables) -> PageTables:
    (table,) = result.tables
    cells = list(table.cells)
    cells[4] = dataclasses.replace(cells[4], confidence=0.3)
    cells[8] = dataclasses.replace(cells[8], confidence=0.5, text=HOSTILE)
    first, second, *rest = cells
    first = dataclasses.replace(first, column_span=2, text=first.text + second.text)
    changed: Table = dataclasses.replace(table, cells=(first, *rest), outside=())
    return dataclasses.replace(result, tables=(changed,))


@pytest.fixture
def review(tmp_path: Path) -> tuple[Path, list[Table]]:
    escaped = [word.replace("\\", "").replace("(", "").replace(")", "") for word in WORDS]
    content = "".join(text(20 + 100 * (i % 3), 160 - 66 * (i // 3), word) for i, word in enumerate(escaped))
    (tmp_path / "two pages.pdf").write_bytes(pdf([content, text(20, 100, "lone")]))
    config = StubConfig(detection=None)
    pages = Worker(config).plan(str(tmp_path / "two pages.pdf"))
    out = ReviewWriter(tmp_path / "review.html", config)
    first, second = extract_pages(pages, Worker(config))
    first = tables_of(first)
    out.add(first)
    out.add(second)
    assert out.close() == [tmp_path / "review.html"]
    return tmp_path / "review.html", [*first.tables, *second.tables]


def test_texts_are_texts(review: tuple[Path, list[Table]]) -> None:
    page = review[0].read_text()
    assert HOSTILE not in page
    blocks = re.findall(r'<script type="application/json" class="page">(.*?)</script>', page)
    assert [Table.from_dict(table) for block in blocks for table in json.loads(block)["tables"]] == review[1]
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    import base64

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_too_many_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoo.apps.tables.review.MAX_BYTES", 1000)
    (tmp_path / "a.pdf").write_bytes(pdf([text(20, 100, "a")]))
    config = StubConfig(detection=None)
    with pytest.raises(TableError, match="review fewer at once"):
        ReviewWriter(tmp_path / "r.html", config).add(
            *extract_pages(Worker(config).plan(str(tmp_path / "a.pdf")), Worker(config))
        )


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoo.apps.cli.table_options.ExtractorConfig", StubConfig)
    (tmp_path / "a.pdf").write_bytes(pdf([text(20, 100, "a")]))
    to = tmp_path / "review.html"
    assert main(["table", str(tmp_path / "a.pdf"), "--no-detection", "--review", str(to)]) == 0
    assert 'class="page"' in to.read_text()
    ExtractorConfig()  # the class itself is as it was


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as one:
        yield one


def opened(browser: Any, path: Path, **context: Any) -> Any:
    page = browser.new_context(accept_downloads=True, **context).new_page()
    page.set_default_timeout(60_000)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("dialog", lambda dialog: page.problems.append(dialog.message))
    page.on("request", lambda request: page.problems.append(request.url) if _is_stray(request.url) else None)
    page.goto(path.as_uri())
    return page


def _is_stray(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:"))


def test_a_reader_edits_and_saves(review: tuple[Path, list[Table]], browser: Any, tmp_path: Path) -> None:
    path, tables = review
    page = opened(browser, path)
    boxes = page.locator("#cells td, #cells th")
    assert boxes.all_inner_texts() == [cell.text for cell in tables[0].cells]
    assert page.locator("#cells .doubt").count() == 2
    assert page.locator("#doubts button").all_inner_texts()[0].startswith("30 %")
    # Where a cell comes from is shown while the pointer is on it.
    boxes.nth(2).hover()
    assert page.locator("#marks rect").nth(2).get_attribute("class") == "here"
    # The most doubtful cell, by the keyboard.
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.textContent") == tables[0].cells[3].text
    page.keyboard.press("Enter")
    page.keyboard.type("corrected")
    page.keyboard.press("Enter")
    assert page.locator("#cells .edited").all_inner_texts() == ["corrected"]
    assert page.locator("#cells .doubt").count() == 1
    # An edit that is dropped.
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.type("no")
    page.keyboard.press("Escape")
    assert page.locator("#cells .edited").count() == 1
    wanted = [["corrected" if t == tables[0].cells[3].text else t for t in row] for row in tables[0].rows()]
    with page.expect_download() as download:
        page.click("#csv")
    assert download.value.suggested_filename == "two pages-page-1-table-1.csv"
    data = Path(download.value.path()).read_bytes().decode()
    assert list(csv.reader(io.StringIO(data, newline=""))) == wanted
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl (the extra tables) reads XLSX")
    with page.expect_download() as download:
        page.click("#html")
    found = Table.from_html(re.findall(r"<table>.*?</table>", Path(download.value.path()).read_text("utf-8"), re.S)[0])
    assert found.rows() == wanted
    assert found.header_rows == tables[0].header_rows
    with page.expect_download() as download:
        page.click("#xlsx")
    download.value.save_as(tmp_path / "all.xlsx")
    book = openpyxl.load_workbook(tmp_path / "all.xlsx")
    assert book.sheetnames == ["1 Page 1 Table 1", "2 Page 2 Table 1"]
    sheet = book.worksheets[0]
    assert [str(one) for one in sheet.merged_cells.ranges] == ["A1:B1"]
    assert sheet["A1"].value == tables[0].cells[0].text
    assert sheet["A1"].data_type == "s"  # no formula
    assert sheet["B2"].value == "corrected"
    assert sheet["C3"].value == HOSTILE
    # Edits are there when the page is opened again, until they are taken back.
    page.reload()
    assert page.locator("#cells .edited").all_inner_texts() == ["corrected"]
    page.click("#undo")
    assert boxes.all_inner_texts() == [cell.text for cell in tables[0].cells]
    page.keyboard.press("PageDown")
    assert [t for t in boxes.all_inner_texts() if t] == ["lone"]
    assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_can_be_read(review: tuple[Path, list[Table]], browser: Any, scheme: str) -> None:
    page = opened(browser, review[0], viewport={"width": 390, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.inner_text("#title") == "two pages.pdf, page 1"  # without the folders, which would fill the line
    # The whole width of the page is seen, and a button enlarges it; the place of a cell is brought into view.
    assert page.evaluate("document.getElementById('sheet').offsetWidth") <= 390
    page.click("#zoom")
    page.keyboard.press("n")
    seen = page.locator("#marks rect.here").bounding_box()
    assert seen["width"] > 200
    assert 0 <= seen["x"] <= 390 - 40
    colours = page.evaluate("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
    ink, paper = (np.array([int(v) for v in re.findall(r"\d+", colour)[:3]]) for colour in colours)
    assert abs(ink.mean() - paper.mean()) > 150
    assert (paper.mean() < 60) == (scheme == "dark")
    page.emulate_media(media="print")
    assert page.locator("#csv").is_hidden()
    assert page.locator("#cells").is_visible()
    assert page.problems == []


def grid(rows: int, columns: int, doubts: dict[tuple[int, int], str], of_table: tuple[str, ...] = ()) -> Table:
    """A table of numbers under names, of which some cells are doubtful."""
    row_boxes = [(0.0, 20.0 * r, 20.0 * columns, 20.0 * (r + 1)) for r in range(rows)]
    column_boxes = [(20.0 * c, 0.0, 20.0 * (c + 1), 20.0 * rows) for c in range(columns)]
    cells = [
        Cell(
            *(r, c, 1, 1, (20.0 * c, 20.0 * r, 20.0 * (c + 1), 20.0 * (r + 1))),
            "" if (r, c) == (0, 0) else f"name {c}" if r == 0 else f"item {r}" if c == 0 else f"{r},{c:03}.50",
            is_header=r == 0,
            doubts=(doubts[r, c],) if (r, c) in doubts else (),
        )
        for r in range(rows)
        for c in range(columns)
    ]
    return Table(tuple(cells), tuple(row_boxes), tuple(column_boxes), column_boxes[0], header_rows=1, doubts=of_table)


@pytest.fixture
def wide_review(tmp_path: Path) -> Path:
    tables = (
        grid(3, 2, {}),
        grid(4, 20, {(2, 1): "two lines", (3, 4): "two lines"}, ("cut",)),
        grid(2, 2, {(1, 1): "<b>"}),
    )
    out = ReviewWriter(tmp_path / "review.html", StubConfig(detection=None))
    page = Page("a.png", 1, 1, np.full((300, 500, 3), 255, np.uint8))
    out.add(PageTables("a.png", "0", 1, 1, tables), page)
    return out.close()[0]


@pytest.mark.parametrize("width", [390, 1280])
def test_doubtful_tables_come_first_and_wide_ones_say_so(wide_review: Path, browser: Any, width: int) -> None:
    page = opened(browser, wide_review, viewport={"width": width, "height": 800})
    assert [text.strip() for text in page.locator("#choice option").all_inner_texts()] == [
        "table 2  (3)",
        "table 3  (1)",
        "table 1",
    ]
    assert page.inner_text("#doubts h2 >> nth=0") == "This table: cut"
    assert page.inner_text("#doubts .reason") == "two lines"
    assert page.inner_text("#doubtful") == "Doubtful: 4"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # The first cell with a text is chosen, numbers end at one edge, and a shadow says that there are more columns.
    assert page.inner_text("#cells .here") == "name 1"
    boxes = page.locator("#cells td, #cells th")
    aligned = [page.evaluate("e => getComputedStyle(e).textAlign", boxes.nth(i).element_handle()) for i in (20, 21, 1)]
    assert aligned == ["left", "right", "right"]
    assert page.inner_text("#wide") == "20 columns: scroll sideways to see them all"
    assert page.get_attribute("#cells", "class") == "after"
    page.evaluate("document.getElementById('cells').scrollLeft = 1e6")
    page.wait_for_selector("#cells.before")
    # A text that is confirmed as it is settles its doubt.
    page.click("#doubts button >> nth=0")
    for _ in range(2):
        page.keyboard.press("Enter")
    assert page.inner_text("#doubtful") == "Doubtful: 3"
    page.select_option("#choice", "0")
    assert page.locator("#doubts *").count() == 0
    assert page.locator("#wide").is_hidden()
    assert page.problems == []


def test_nothing_doubtful_only_if_nothing_is(tmp_path: Path, browser: Any) -> None:
    for table, said in ((grid(3, 2, {}), "Nothing doubtful"), (grid(3, 2, {}, ("cut",)), "Doubtful: 1")):
        out = ReviewWriter(tmp_path / "review.html", StubConfig(detection=None))
        out.add(PageTables("a.png", "0", 1, 1, (table,)), Page("a.png", 1, 1, np.full((90, 90, 3), 255, np.uint8)))
        assert opened(browser, out.close()[0]).inner_text("#doubtful") == said


def test_it_writes_csv_and_numbers_as_the_command_does(tmp_path: Path, browser: Any) -> None:
    """One rule for formulas, one for numbers: in the page's own script, too, which reads what was edited."""
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl (the extra tables) reads XLSX")
    rows = [["Item", "Sum", "Share"], ["=1+1", "900", "-3.2%"], ["\u2212a", "1,100", "+0.5%"], ["-", "x", "% of total"]]
    table = make(rows, header_rows=1)
    out = ReviewWriter(tmp_path / "review.html", StubConfig(detection=None), safe=True)
    out.add(PageTables("a.png", "0", 1, 1, (table,)), Page("a.png", 1, 1, np.full((90, 90, 3), 255, np.uint8)))
    page = opened(browser, out.close()[0])
    with page.expect_download() as download:
        page.click("#csv")
    assert Path(download.value.path()).read_bytes().decode() == table.to_csv(safe=True)
    page.locator("#cells td", has_text="x").click()
    page.keyboard.press("Control+A")
    page.keyboard.type("$ 1,250.50")
    page.keyboard.press("Enter")
    with page.expect_download() as download:
        page.click("#xlsx")
    download.value.save_as(tmp_path / "page.xlsx")
    table.to_xlsx(tmp_path / "python.xlsx")
    sheet, other = (openpyxl.load_workbook(tmp_path / f"{name}.xlsx").worksheets[0] for name in ("page", "python"))
    for row, same in zip(sheet.iter_rows(), other.iter_rows(), strict=True):
        for one, two in zip(row, same, strict=True):
            if one.coordinate == "B4":
                assert (one.value, one.number_format) == (1250.5, '"$"#,##0.00')
            else:
                assert (one.value, one.data_type, one.number_format) == (two.value, two.data_type, two.number_format)
            assert bool(one.font.bold) == bool(two.font.bold) == (one.row == 1)
    assert sheet.column_dimensions["C"].width == other.column_dimensions["C"].width
    texts = [*HARD, *("".join(some) for some in itertools.product("-1.,% ", repeat=4))]
    assert page.evaluate("texts => texts.map(harmless)", texts) == [escape_formulas(text) for text in texts]
    for mark in (".", ","):
        found = page.evaluate("([texts, mark]) => texts.map((text) => numberOf(text, mark))", [texts, mark])
        numbers = [parse_number(text, mark) for text in texts]
        assert found == [n and [n.value, number_format(n, text)] for n, text in zip(numbers, texts, strict=True)]
    # Where nothing says which mark is which.
    for one, value in {"1.204": None, "1,204": 1204, "1,5": 1.5, "1.50": 1.5, "900": 900, "0.716": 0.716}.items():
        assert (page.evaluate("text => numberOf(text, '')", one) or [None])[0] == value
        (number,) = column_values([one], "")
        assert value == (number.value if isinstance(number, Number) else None)
    assert page.problems == []


HARD = [
    "\u2212cmd|' /C calc'!A0",
    "%0A=1",
    "|x",
    "a;=b",
    "\u200b=1",
    "\uff1d1",
    "\u207aa",
    "\n=1",
    "-1e-5",
    "+49 40 1234",
]
HARD += [
    "1,204.5",
    "(3.1 %)",
    "$ 5",
    "-$5",
    "EUR 5.00",
    "5 \u20ac",
    "+7",
    "007",
    "1'234",
    "(-5)",
    "--5",
    "1234567890123456",
]
