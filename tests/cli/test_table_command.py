"""`zoo table`: what it writes where, what it refuses before it loads anything, and its exit status."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image, ImageDraw

from zoo.apps.cli import main
from zoo.apps.tables import Table, TableExtractor
from zoo.images.boxes import Detection
from zoo.options import Options

# Two tables of 2 rows and 2 columns on a page of 300 x 400, the first row of each a header.
PLACES = [(20.0, 30.0, 220.0, 90.0), (20.0, 150.0, 220.0, 210.0)]
INKED = [(30.0, 35.0, 171.0, 81.0), (30.0, 155.0, 171.0, 201.0)]  # where their words are, to which edges go
TEXTS = [["a", "b", "=1+1", "2,5"], ["c", "d", "", "<4>"]]


class Reading(NamedTuple):
    text: str
    confidence: float


class Stub:
    """In place of the checkpoints: what `zoo.load` gives for their names."""

    def __init__(self) -> None:
        self.found = [Detection("table", 0.9, box) for box in PLACES]
        self.loaded: list[tuple[str, str, Any]] = []
        self.locks: set[str | None] = set()
        self.thresholds: set[float] = set()

    def load(
        self,
        name: str,
        *,
        task: str,
        device: str | None = None,
        dtype: str | None = None,
        local_files_only: bool = False,
        lock: str | None = None,
    ) -> Callable:
        self.loaded.append((name, task, device))
        self.locks.add(lock)
        if task == "read":
            return lambda lines: [Reading("read", 0.8)] * len(lines)
        return self.structure if "structure" in name else self.detection

    def load_reader(self, name: str, options: Options) -> Callable:
        return self.load(name, task="read", device=options.device, lock=options.lock)

    def detection(self, image: np.ndarray, threshold: float) -> list[Detection]:
        self.thresholds.add(threshold)
        return [d for d in self.found if d.score > threshold]

    def structure(self, image: np.ndarray, threshold: float) -> list[Detection]:
        self.thresholds.add(threshold)
        x, y = (image.shape[1] - 200) / 2, (image.shape[0] - 60) / 2
        parts = [
            ("table row", 0, 0, 200, 30),
            ("table row", 0, 30, 200, 60),
            ("table column", 0, 0, 100, 60),
            ("table column", 100, 0, 200, 60),
            ("table column header", 0, 0, 200, 30),
        ]
        return [Detection(label, 0.9, (a + x, b + y, c + x, d + y)) for label, a, b, c, d in parts]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stub:
    stub = Stub()
    monkeypatch.setattr("zoo.tasks.load_task", stub.load)
    monkeypatch.setattr("zoo.apps.tables.extract.load_reader", stub.load_reader)
    monkeypatch.chdir(tmp_path)
    words: list[dict[str, Any]] = [
        {
            "text": text,
            "box": [x0 + 10 + 100 * (i % 2), y0 + 5 + 30 * (i // 2), x0 + 50 + 100 * (i % 2), y0 + 20 + 30 * (i // 2)],
        }
        for (x0, y0, _, _), texts in zip(PLACES, TEXTS, strict=True)
        for i, text in enumerate(texts)
        if text
    ]
    Path("words.json").write_text(json.dumps(words), encoding="utf-8")
    image = Image.new("RGB", (300, 400), "white")
    for word in words:  # what is found without text is no table
        ImageDraw.Draw(image).rectangle(word["box"], "black")
    image.save("page.png")
    return stub


def rows_of(path: str) -> list[list[str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def run(*args: str) -> int:
    return main(["table", *args])


def test_json_goes_to_stdout(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("page.png", "--words", "words.json", "--json") == 0
    out = capsys.readouterr()
    tables = [Table.from_dict(data) for data in json.loads(out.out)]
    assert [[cell.text for cell in table.cells] for table in tables] == TEXTS
    assert [table.header_rows for table in tables] == [1, 1]
    np.testing.assert_allclose([table.box for table in tables], INKED, atol=1)
    assert out.err == ""
    assert [(name.split("-")[2], task) for name, task, _ in stub.loaded] == [
        ("structure", "detect"),
        ("detect", "detect"),
    ]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_and_a_pipe_get_text(
    stub: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    assert run("page.png", "--words", "words.json") == 0
    out = capsys.readouterr().out
    assert "table 2 of 2\n" in out
    assert re.search(r"^  rows +2, of the header 1$", out, re.MULTILINE)
    assert re.search(r"^  a +b$", out, re.MULTILINE)
    assert re.search(r"^  =1\+1 +2,5$", out, re.MULTILINE)
    assert "(30, 155, 171, 201)" in out
    assert run("page.png", "--ocr", "none") == 0
    assert capsys.readouterr().out.count("  no text\n") == 2
    assert run("page.png", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_stdout_takes_the_formats_of_texts(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("page.png", "--words", "words.json")
    for text in ((*given, "-o", "-"), (*given, "--text"), (*given, "-o", "-", "--text")):
        assert run(*text) == 0
        assert "\ntable 2 of 2\n" in capsys.readouterr().out
    assert run(*given, "--format", "csv") == 0
    first, second = capsys.readouterr().out.replace("\r\n", "\n").split("\n\n")
    assert [list(csv.reader(text.splitlines())) for text in (first, second)] == [
        [["a", "b"], ["'=1+1", "2,5"]],
        [["c", "d"], ["", "<4>"]],
    ]
    assert run(*given, "--format", "csv", "--raw", "-o", "-") == 0
    assert "\n=1+1," in capsys.readouterr().out.replace('"', "")
    for name in ("html", "md", "json"):
        assert run(*given, "-o", f"all.{name}") == 0
        assert run(*given, "--format", name) == 0
        assert capsys.readouterr().out == Path(f"all.{name}").read_text(encoding="utf-8")
    assert run("page.png", "page.png", "--format", "json") == 0  # as many documents as are given
    assert not Path("-").exists()
    capsys.readouterr()
    stub.found.clear()
    assert run(*given, "--format", "csv") == 1
    assert capsys.readouterr().out == ""


def test_a_pipe_gets_whole_texts(
    stub: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    long = "a long text " * 20
    words = json.loads(Path("words.json").read_text(encoding="utf-8"))
    words[0]["text"] = long
    Path("words.json").write_text(json.dumps(words), encoding="utf-8")
    assert run("page.png", "--words", "words.json") == 0
    assert long.strip() in capsys.readouterr().out


def test_one_table_is_one_csv_and_several_are_numbered(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("page.png", "--words", "words.json", "-o", "out.csv") == 0
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err == "zoo: wrote out-1.csv, out-2.csv\n"
    assert not Path("out.csv").exists()
    assert rows_of("out-1.csv") == [["a", "b"], ["'=1+1", "2,5"]]
    assert rows_of("out-2.csv") == [["c", "d"], ["", "<4>"]]
    stub.found.pop()
    assert run("page.png", "--words", "words.json", "--output", "only.csv", "--raw") == 0
    assert rows_of("only.csv") == [["a", "b"], ["=1+1", "2,5"]]
    assert run("page.png", "--words", "words.json", "--output", "only.csv") == 0
    assert rows_of("only.csv") == [["a", "b"], ["'=1+1", "2,5"]]


def test_other_formats_hold_all_tables_in_one_file(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("out.html", "out.md", "out.json", "OUT.JSON"):
        assert run("page.png", "--words", "words.json", "-o", name) == 0
        assert capsys.readouterr().err == f"zoo: wrote {name}\n"
    html = Path("out.html").read_text(encoding="utf-8")
    assert html.lower().count("<!doctype html>") == 1
    assert html.count("<table>") == html.count("</table>") == 2
    assert "&lt;4&gt;" in html
    lines = Path("out.md").read_text(encoding="utf-8").split("\n\n")
    assert [block.splitlines()[0] for block in lines if block.strip()] == ["| a | b |", "| c | d |"]
    assert len(json.loads(Path("out.json").read_text(encoding="utf-8"))) == 2
    stub.found.pop()
    assert run("page.png", "-o", "one.json") == 0  # boxes, without words
    (one,) = json.loads(Path("one.json").read_text(encoding="utf-8"))
    assert Table.from_dict(one).shape == (2, 2)


def test_a_workbook_has_a_sheet_for_each(stub: Stub) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl, which writes workbooks")
    for options, number in (([], 2.5), (["--as-text"], "2,5")):
        assert run("page.png", "--words", "words.json", "-o", "out.xlsx", *options) == 0
        book = openpyxl.load_workbook("out.xlsx")
        assert [[cell.value for cell in row] for row in book.worksheets[0].rows] == [["a", "b"], ["=1+1", number]]
        assert len(book.worksheets) == 2


def test_a_workbook_without_its_package(
    stub: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        run("page.png", "--words", "words.json", "-o", "out.xlsx")
    assert "pip install 'transformers-zoo[tables]'" in capsys.readouterr().err
    assert stub.loaded == []


def test_overlay(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("page.png", "--overlay", "cells.png", "--words", "words.json", "-o", "out.json") == 0
    assert capsys.readouterr().err == "zoo: wrote cells.png, out.json\n"
    image = Image.open("cells.png")
    assert (image.format, image.size) == ("PNG", (300, 400))
    assert (np.asarray(image) != 255).any(-1).mean() > 0.005
    assert run("page.png", "--overlay", "cells.png", "--words", "words.json", "--review", "review.html") == 0
    out = capsys.readouterr()
    assert (out.out, out.err) == ("", "zoo: wrote cells.png, review.html\n")
    assert "<4>" not in (page := Path("review.html").read_text(encoding="utf-8"))
    assert "\\u003c4>" in page  # the words of the file
    assert run("page.png", "--overlay", "none/cells.png") == 1
    assert re.search(r"^zoo: cannot write to none/cells\.png: No such file", capsys.readouterr().err)


def test_a_reader_reads_the_lines(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    image = np.full((400, 300, 3), 255, np.uint8)
    for y in (40, 70):  # two lines of two columns: without a gap between columns it is no table
        image[y : y + 10, 40:60] = image[y : y + 10, 160:190] = 0
    Image.fromarray(image).save("page.png")
    assert run("page.png", "--reader", "some/trocr", "-o", "out.csv", "--device", "torch:cpu") == 0
    assert stub.locks == {None}
    assert rows_of("out.csv") == [["read", "read"]] * 2  # the other place has no text, and is no table
    assert ("some/trocr", "read", "torch:cpu") in stub.loaded


def test_engines_that_read_cells_are_readers(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    for engine, reader in (("zoo-read", ["zoo-read"]), ("trocr", ["microsoft/trocr-base-printed"]), ("none", [])):
        stub.loaded.clear()
        assert run("page.png", "--ocr", engine) == 0
        assert [name for name, task, _ in stub.loaded if task == "read"] == reader
        found = None if engine == "none" else TableExtractor(stub.structure, stub.detection, ocr=engine).reader
        assert (found is None) == (engine == "none")


def test_a_lock_is_for_all_that_is_loaded(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("page.png", "--reader", "some/trocr", "--lock", "zoo.lock") == 0
    assert len(stub.loaded) == 3
    assert stub.locks == {"zoo.lock"}


def test_options_reach_the_extractor(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--structure", "my/structure", "--detection", "my/detection", "--threshold", "0.25", "--padding", "3"]
    assert run("page.png", *args) == 0
    assert [name for name, _, _ in stub.loaded] == ["my/structure", "my/detection", "zoo-read"]
    # Of the structure, whose low scores are reasons for doubt, and of detection, whose low scores rules may confirm.
    assert stub.thresholds == {0.15, 0.2 * 0.25}
    stub.loaded.clear()
    assert run("page.png", "--no-detection", "--json") == 0
    assert [name for name, _, _ in stub.loaded] == ["zoo-table-structure", "zoo-read"]
    capsys.readouterr()


def test_no_table_is_an_error(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    stub.found.clear()
    assert run("page.png", "-o", "out.json", "--threshold", "0.75") == 1
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err == (
        "zoo: page.png: no table found; try a --threshold below 0.75"
        ", or --no-detection if the whole image is one table\n"
    )
    assert not Path("out.json").exists()


def test_words_that_lie_nowhere_are_warned_of(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    Path("words.json").write_text('[{"text": "far", "box": [3000, 4000, 3100, 4020]}]', encoding="utf-8")
    assert run("page.png", "--words", "words.json", "--no-detection") == 0
    said = capsys.readouterr().err
    assert "warning: 1 of the 1 words of words.json are off the page: are their boxes in pixels of page.png" in said
    assert "warning: none of the 1 words of words.json is in a table: are their boxes in pixels of page.png?\n" in said
    stub.found.clear()
    assert run("page.png", "--words", "words.json") == 1
    said = capsys.readouterr().err
    assert "warning: 1 of the 1 words of words.json are off the page: are their boxes in pixels of page.png" in said
    assert "no table found" in said


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "DOCUMENT"),
        (["page.png", "-o", "out.csv", "--ocr", "none"], "out.csv would have no text with --ocr none"),
        (["page.png", "-o", "out.xlsx", "--ocr", "none"], "would have no text"),
        (["page.png", "-o", "out.cvs", "--words", "words.json"], "did you mean '.csv'"),
        (["page.png", "-o", "out", "--format", "csv,exe"], ".exe is not one of .csv"),
        (["page.png", "-o", "out.json", "--format", "csv"], "--format is for -o FOLDER and for stdout"),
        (["page.png", "-o", "out.json", "--resume"], "--resume needs -o FOLDER or -o FILE.jsonl"),
        (
            ["page.png", "page.png", "words.json", "-o", "out.csv", "--reader", "r"],
            "for one document, but 2 were given",
        ),
        (["page.png", "words.json", "--words", "words.json"], "--words is for one page, but 2 documents were given"),
        (["page.png", "--words", "w", "--reader", "r"], "give one of them"),
        (["page.png", "--no-detection", "--detection", "d"], "leave out --detection"),
        (["page.png", "--threshold", "70"], "--threshold 70 is not in 0 ... 1"),
        (["page.png", "--threshold", "nan"], "--threshold nan is not in"),
        (["page.png", "--padding", "-3"], "-3 is below 0"),
        (["page.png", "--padding", "3.5"], "whole number"),
        (["page.png", "-o", "out.json", "--json"], "--json is for stdout"),
        (["page.png", "-o", "out.json", "--text"], "--text is for stdout"),
        (["page.png", "--json", "--format", "csv"], "--json and --format exclude each other"),
        (["page.png", "--format", "csv,md"], "stdout gets one format"),
        (["page.png", "--format", "xlsx"], "name one with -o, such as -o tables.xlsx"),
        (["page.png", "--format", "csv", "--ocr", "none"], "--format csv would have no text"),
        (["page.png", "--format", "md", "--raw"], "--raw is for CSV"),
        (["page.png", "-o", "-", "--resume"], "--resume needs -o FOLDER"),
        (["page.png", "--overlay", "page.png"], "page.png is both an input and an output"),
        (["page.png", "--words", "words.json", "-o", "./words.json"], "words.json is both an input and an output"),
        (["page.png", "-o", "out.md", "--words", "words.json", "--raw"], "--raw is for CSV"),
    ],
)
def test_usage_errors_come_before_anything_is_loaded(
    stub: Stub, capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(*args)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("zoo table: ")
    assert message in error.splitlines()[0]
    assert stub.loaded == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none.png"], "none.png"),
        (["words.json"], "words.json: not an image"),
        (["page.png", "--words", "none.json"], "none.json"),
        (["page.png", "--words", "page.png"], "page.png"),
        (["page.png", "-o", "none/out.json"], "cannot write to none/out.json"),
    ],
)
def test_errors_are_one_line(stub: Stub, capsys: pytest.CaptureFixture[str], args: list[str], message: str) -> None:
    assert run(*args) == 1
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.startswith("zoo: ")
    assert out.err.count("\n") == 1
    assert message in out.err
