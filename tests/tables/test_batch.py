"""Tables of many documents: one process or several, errors aside, stopped and resumed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.small_pdf import pdf, text
from tests.tables.stub_config import StubConfig
from zoo.apps.batch.inputs import find_inputs
from zoo.apps.cli import main
from zoo.apps.tables import Table
from zoo.apps.tables.batch import ExtractorConfig, PageTables, Worker, extract_pages
from zoo.apps.tables.writers import FileWriter, sheet_names
from zoo.checkpoint.files import EMBEDDED_IN
from zoo.errors import InputError, TableError
from zoo.files.atomic_write import one_writer

pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")


def page(name: str) -> str:
    return "".join(text(30 + 100 * x, 30 + 66 * y, f"{name}{x}{y}") for x in range(3) for y in range(3))


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoo.apps.cli.table_options.ExtractorConfig", StubConfig)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents of one page and of several, one that is damaged, and what is no document."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "a.pdf").write_bytes(pdf([page("a"), page("b"), page("c")]))
    (tmp_path / "in" / "broken.pdf").write_bytes(pdf([page("a")])[:100])
    (tmp_path / "in" / "deep" / "a.pdf").write_bytes(pdf([page("d")]))
    (tmp_path / "in" / "notes.txt").write_text("no document")
    scans = [Image.new("RGB", (60, 40), (i, 90, 90)) for i in (0, 200)]
    scans[0].save(tmp_path / "in" / "scan.tiff", save_all=True, append_images=scans[1:])
    return tmp_path


def run(folder: Path, *args: str, documents: str = "in") -> int:
    return main(["table", str(folder / documents), "--no-detection", *args])


def found_in(path: Path) -> dict[tuple[str, int], PageTables]:
    results = [json.loads(one) for one in path.read_text(encoding="utf-8").splitlines()]
    for result in results:
        del result["key"]
    return {("/".join(Path(r["source"]).parts[-2:]), r["page"]): PageTables.from_dict(r) for r in results}


def assert_same(a: PageTables, b: PageTables) -> None:
    """But for how long it took, and for how threads round."""
    assert (a.source, a.page, a.pages, a.error, a.warnings) == (b.source, b.page, b.pages, b.error, b.warnings)
    for one, other in zip(a.tables, b.tables, strict=True):
        assert one.rows() == other.rows()
        assert (one.source, one.page) == (other.source, other.page)
        np.testing.assert_allclose([cell.box for cell in one.cells], [cell.box for cell in other.cells], atol=1e-2)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_folder(folder: Path, jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "out"
    assert run(folder, "-o", str(out), "--jobs", jobs, "--format", "csv,json") == 1
    said = capsys.readouterr().err
    assert "skipped 1 file of other kinds than documents" in said
    assert "6 pages of 4 documents" in said
    assert said.count("broken.pdf") == 1
    assert said.endswith("zoo: 1 of these could not be read\n")
    found = found_in(out / "tables.jsonl")
    assert len(found) == 6
    assert {name for name, _ in found} == {"in/a.pdf", "in/scan.tiff", "deep/a.pdf"}
    (table,) = found["in/a.pdf", 2].tables
    assert (table.page, Path(table.source or "").name) == (2, "a.pdf")
    assert table.rows() == [[f"b{x}{y}" for x in range(3)] for y in (2, 1, 0)]
    assert (out / "a-page-2-table-1.csv").read_bytes().decode() == table.to_csv()
    assert [one["page"] for one in json.loads((out / "a.json").read_text())] == [1, 2, 3]
    assert (out / "deep" / "a.json").is_file()
    assert not (out / "broken.json").exists()
    config = StubConfig(detection=None)
    for one in extract_pages(Worker(config).plan(str(folder / "in" / "a.pdf")), Worker(config), 3 - int(jobs)):
        assert_same(found["in/a.pdf", one.page], one)


def test_progress_knows_the_pages_of_what_was_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    totals: list[int] = []
    monkeypatch.setattr("zoo.apps.cli.table.Progress.expect", lambda progress, total: totals.append(total))
    run(folder, "-o", str(folder / "out"))
    assert totals[0] == 3 + 3  # a.pdf has three pages, the others are not opened yet
    assert totals[-1] == 6  # broken.pdf has none


def test_a_job_is_resumed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "in" / "broken.pdf").unlink()
    out, lines = folder / "out", folder / "out" / "tables.jsonl"
    assert run(folder, "-o", str(out), "--resume") == 0  # with nothing yet
    whole = found_in(lines)
    kept = lines.read_text().splitlines(keepends=True)
    lines.write_text("".join(kept[:3]) + kept[3][:50])  # killed while it wrote the fourth
    (out / "a-page-2-table-1.csv").unlink()
    seen: list[int] = []
    monkeypatch.setattr("zoo.apps.tables.batch.Worker.tables", counting(seen))
    assert run(folder, "-o", str(out), "--resume") == 0
    assert len(seen) == 3
    assert (out / "a-page-2-table-1.csv").is_file()
    resumed = [one for one in lines.read_text().splitlines() if one.endswith("}")]
    assert len(resumed) == len(whole)
    (folder / "in" / "deep" / "a.pdf").write_bytes(pdf([page("e")]))  # another content, the same name
    assert run(folder, "-o", str(out), "--resume") == 0
    assert len(seen) == 4
    assert run(folder, "-o", str(out), "--resume", "--dpi", "72") == 0  # another option
    assert len(seen) == 10


@pytest.mark.parametrize("place", ["out", "out.jsonl"])
def test_pages_of_another_job_are_neither_mixed_nor_replaced(folder: Path, capsys, place: str) -> None:
    (folder / "in" / "broken.pdf").unlink()
    out = str(folder / place)
    assert run(folder, "-o", out) == 0
    lines = folder / place / "tables.jsonl" if place == "out" else folder / place
    before = lines.read_bytes()
    assert run(folder, "-o", out) == 1
    assert "has pages of an earlier job: --resume continues it, --overwrite replaces them" in capsys.readouterr().err
    assert lines.read_bytes() == before
    assert run(folder, "-o", out, "--overwrite") == 0
    with one_writer(lines, 0):  # as another job has it
        assert run(folder, "-o", out, "--resume") == 1
        assert run(folder, "-o", out, "--overwrite") == 1
    assert "is being written by another process" in capsys.readouterr().err
    assert len(found_in(lines)) == 6


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names that are not UTF-8")
@pytest.mark.parametrize("place", ["out", "out.jsonl", "out.parquet", "out.json", "out.xlsx", "out.html", None])
def test_a_name_that_is_not_utf8_ends_no_job(folder: Path, place: str | None, capfdbinary) -> None:
    if place == "out.parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow, for Parquet")
    name = os.fsencode(folder / "in" / "b") + b"\xff.pdf"
    os.rename(folder / "in" / "a.pdf", name)
    (folder / "in" / "broken.pdf").unlink()
    review = ["--review", str(folder / "review.html")] if place == "out" else []
    assert run(folder, *(["--json"] if place is None else ["-o", str(folder / place)]), *review) == 0
    if place in ("out", "out.jsonl", "out.json", None):
        lines = folder / "out" / "tables.jsonl" if place == "out" else folder / str(place)
        data = capfdbinary.readouterr().out if place is None else lines.read_bytes()
        assert rb"b\udcff.pdf" in data
        data.decode("utf-8")
    if review:
        assert b"b\\udcff.pdf" in (folder / "review.html").read_bytes()


def test_a_local_model_is_known_by_its_files(tmp_path: Path) -> None:
    shutil.copytree(EMBEDDED_IN / "zoo-table-structure", tmp_path / "model")
    config = ExtractorConfig(str(tmp_path / "model"))
    first = config.key()
    assert config.key() == first != ExtractorConfig().key()
    (tmp_path / "model" / "preprocessor_config.json").write_bytes(b"{}")
    assert config.key() != first


def test_a_document_of_another_name_is_known_by_its_content(folder: Path) -> None:
    out = folder / "out"
    assert run(folder, "-o", str(out), documents="in/a.pdf") == 0
    (folder / "in" / "a.pdf").rename(folder / "in" / "b.pdf")
    assert run(folder, "-o", str(out), "--format", "json", "--resume", documents="in/b.pdf") == 0
    assert {one["source"] for one in json.loads((out / "b.json").read_text())} == {str(folder / "in" / "b.pdf")}


def test_words_from_elsewhere_are_a_line_of_a_folder_too(folder: Path) -> None:
    (folder / "words.json").write_text('[{"text": "one", "box": [10, 10, 20, 20]}]')
    out = folder / "out"
    assert run(folder, "-o", str(out), "--words", str(folder / "words.json"), documents="in/deep/a.pdf") == 0
    (found,) = found_in(out / "tables.jsonl").values()
    assert found.tables[0].cells[0].text == "one"


def counting(seen: list[int]) -> Callable[..., PageTables]:
    tables = Worker.tables

    def counted(self: Any, job: Any) -> PageTables:
        seen.append(job.number)
        return tables(self, job)

    return counted


def test_a_page_that_ends_its_process(folder: Path) -> None:
    shutil.copy(folder / "in" / "a.pdf", folder / "deadly.pdf")
    config = StubConfig(detection=None)
    pages = Worker(config).plan(str(folder / "in" / "a.pdf"))
    bad = Worker(ExtractorConfig()).plan(str(folder / "deadly.pdf"))[:1]
    found = list(extract_pages([*pages[:2], *bad, *pages[2:]], Worker(config), 2))
    assert [one.error for one in found] == [None, None, f"{bad[0].path}, page 1: the process died", None]
    assert [one.page for one in found] == [1, 2, 1, 3]


def test_an_interrupt_leaves_whole_lines(folder: Path) -> None:
    (folder / "in" / "long.pdf").write_bytes(pdf([page("l")] * 400))
    out = folder / "out"
    script = "import sys, zoo.apps.cli, zoo.apps.cli.table as t; from tests.tables.stub_config import StubConfig; "
    script += "t.ExtractorConfig = StubConfig; sys.exit(zoo.apps.cli.main(sys.argv[1:]))"
    arguments = ["table", str(folder / "in" / "long.pdf"), "-o", str(out), "--jobs", "2", "--no-detection"]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stderr=subprocess.PIPE,
        preexec_fn=_takes_interrupts,
    )
    lines = out / "tables.jsonl"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not (lines.is_file() and lines.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    done = found_in(lines)
    assert 0 < len(done) < 400


def _takes_interrupts() -> None:
    """A shell's background ignores them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_line_for_each_page_and_a_row_for_each_table(folder: Path) -> None:
    assert run(folder, "-o", str(folder / "all.jsonl")) == 1
    found = found_in(folder / "all.jsonl")
    assert len(found) == 6
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow writes Parquet")
    assert run(folder, "-o", str(folder / "all.parquet")) == 1
    rows = parquet.read_table(folder / "all.parquet").to_pylist()
    assert len(rows) == sum(len(one.tables) for one in found.values())
    table = Table.from_json(rows[0]["json"])
    assert (table.source, table.page) == (rows[0]["source"], rows[0]["page"])
    assert rows[0]["csv"] == table.to_csv()


def test_a_document_is_a_workbook(folder: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl (the extra tables) writes XLSX")
    path = folder / "a.xlsx"
    assert run(folder, "-o", str(path), "--pages", "2-", documents="in/a.pdf") == 0
    assert openpyxl.load_workbook(path).sheetnames == ["Page 2 Table 1", "Page 3 Table 1"]


def test_one_document_that_cannot_be_read_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, documents="in/broken.pdf") == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert run(folder, "--pages", "4", documents="in/a.pdf") == 1
    assert "has 3 pages, and page 4 is asked for" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_checkpoint_that_is_not_there(
    folder: Path, jobs: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("zoo.apps.cli.table_options.ExtractorConfig", ExtractorConfig)
    assert run(folder, "--structure", str(folder / "none"), "--jobs", jobs, documents="in/a.pdf") == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_an_output_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "file").write_text("")
    assert run(folder, "-o", str(folder / "file" / "out")) == 1
    assert "cannot write to" in capsys.readouterr().err


def test_inputs(folder: Path) -> None:
    (folder / "in" / "a.png").write_bytes(b"")
    inputs, passed_over = find_inputs([str(folder / "in"), str(folder / "in" / "a.pdf")])
    assert passed_over == 1
    assert [one.name for one in inputs] == ["a.pdf", "a.png", "broken", "scan", os.path.join("deep", "a")]
    assert [one.name for one in find_inputs([str(folder / "in" / "*.p?f")])[0]] == ["a", "broken"]
    with pytest.raises(InputError, match="no file matches"):
        find_inputs([str(folder / "*.pdf")])
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match="a folder without files to read"):
        find_inputs([str(folder / "empty")])


def test_sheets_are_named_by_page() -> None:
    tables = [Table((), (), (), (0, 0, 0, 0), page=page) for page in (1, 1, 12, None)]
    assert sheet_names(tables) == ["Page 1 Table 1", "Page 1 Table 2", "Page 12 Table 1", "Table 1"]


def test_documents_of_one_name_get_files_of_their_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(folder / "in" / "a.pdf"), str(folder / "in" / "deep" / "a.pdf")]
    assert [one.name for one in find_inputs(given)[0]] == ["a", os.path.join("deep", "a")]
    assert main(["table", *given, "--no-detection", "-o", str(folder / "out")]) == 0
    assert (folder / "out" / "deep" / "a-page-1-table-1.csv").read_text().startswith("d02,")
    assert len(list((folder / "out").glob("a-page-*.csv"))) == 3
    for name in ("a.png", "A.PDF"):
        (folder / "in" / name).write_bytes(b"")
    names = [
        one.name.casefold() for one in find_inputs([*given, *(str(folder / "in" / n) for n in ("a.png", "A.PDF"))])[0]
    ]
    assert len(set(names)) == 4


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (("X.pdf", "x.pdf", "x-2.pdf"), ["X", "x-3", "x-2"]),
        (("\u00e9.pdf", "e\u0301.pdf", "\u00e9-2.pdf"), ["\u00e9", "e\u0301-3", "\u00e9-2"]),
        (("\u00df.pdf", "SS.pdf", "Ss-2.pdf"), ["\u00df", "SS-3", "Ss-2"]),
        (("x.pdf", "x.png", "x.pdf.png"), ["x", "x.png", "x.pdf"]),
    ],
)
def test_names_that_a_file_system_takes_for_one_are_numbered(given: tuple[str, ...], names: list[str]) -> None:
    """A number makes no other document's name, and a name of its own is kept."""
    found = [one.name for one in find_inputs(given)[0]]
    assert len({unicodedata.normalize("NFC", name).casefold() for name in found}) == len(given)
    assert found == names


def test_a_file_that_cannot_be_written_costs_no_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out" / "a-page-2-table-1.csv").mkdir(parents=True)
    (folder / "out" / "deep").write_text("in the way")
    assert run(folder, "-o", str(folder / "out"), "--format", "json,csv") == 1
    said = capsys.readouterr().err
    assert "a-page-2-table-1.csv: it is a folder" in said
    assert "deep: File exists" in said
    assert said.endswith("zoo: 1 of these could not be read and 2 files could not be written\n")
    assert (folder / "out" / "a.json").exists()
    assert (folder / "out" / "scan.json").exists()
    with pytest.raises(TableError, match="cannot write"):  # before anything is read
        FileWriter(folder / "none" / "out.xlsx", ".xlsx", {})
