"""Every entry to tables reads their texts, called as its page in the docs calls it."""

from __future__ import annotations

import io
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zoo
from tests.small_pdf import pdf, text
from zoo.apps.cli import main
from zoo.apps.documents import EXAMPLE, open_document
from zoo.apps.tables import Table, Word, extract_document
from zoo.apps.tables.batch import ExtractorConfig, TablesJob, Worker
from zoo.errors import InputError

# README shows what `zoo table page.png` prints of it.
FIRST = ["Fruit", "Variety", "Harvest", "Price", "Revenue", "Change"]
LAST = ["Quinces", "Vranja", "6.4", "1.90", "12.2", "n/a"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a page, a scan of it twice, and a PDF with a text layer on two of its three pages."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE, "page.png")
    page = Image.open(EXAMPLE).convert("RGB")
    page.save("scan.tiff", save_all=True, append_images=[page])
    Path("report.pdf").write_bytes(pdf([rows("a"), "", rows("b")]))
    return tmp_path


def rows(name: str) -> str:
    """A ruled table of 3 x 3 cells."""
    lines = "".join(f"20 {y} m 230 {y} l S " for y in (20, 80, 140, 190))
    lines += "".join(f"{x} 20 m {x} 190 l S " for x in (20, 90, 160, 230))
    return lines + "".join(text(30 + 70 * x, 40 + 60 * y, f"{name}{x}{y}") for x in range(3) for y in range(3))


def is_read(tables: list[Table]) -> bool:
    return [(one.rows()[0], one.rows()[-1]) for one in tables] == [(FIRST, LAST)] * max(1, len(tables))


def test_python(place: Path) -> None:
    """README: zoo.TableExtractor(); docs/tables.md: zoo.extract_tables("report.pdf")."""
    extract = zoo.TableExtractor()
    (table,) = extract("page.png")
    assert is_read([table])
    assert (table.source, table.page) == ("page.png", 1)
    assert is_read(zoo.extract_tables("page.png"))
    for image in (EXAMPLE.read_bytes(), io.BytesIO(EXAMPLE.read_bytes()), Image.open(EXAMPLE)):
        assert is_read(extract(image))
    (table,) = extract(np.asarray(Image.open(EXAMPLE).convert("RGB")))
    assert is_read([table])
    assert (table.source, table.page) == (None, None)
    with open_document("page.png") as document:
        assert is_read(list(extract_document(document)))


def test_documents_of_several_pages(place: Path) -> None:
    extract = zoo.TableExtractor()
    scanned = extract(place / "scan.tiff")
    assert is_read(scanned)
    assert [(Path(table.source or "").name, table.page) for table in scanned] == [("scan.tiff", 1), ("scan.tiff", 2)]
    assert [table.page for table in extract("scan.tiff", pages="2")] == [2]
    pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
    found = zoo.extract_tables("report.pdf")
    assert [(table.source, table.page) for table in found] == [("report.pdf", 1), ("report.pdf", 3)]
    assert [table.rows()[0] for table in found] == [["a02", "a12", "a22"], ["b02", "b12", "b22"]]
    assert [table.page for table in zoo.extract_tables("report.pdf", pages="2-")] == [3]
    own = [Word("own", (60.0, 60.0, 100.0, 80.0))]
    with pytest.raises(InputError, match=r"words are of one page, but report\.pdf has 3: choose one with pages="):
        extract("report.pdf", own)
    with pytest.raises(InputError, match=r"report\.pdf has 3 pages, and page 4 is asked for"):
        extract("report.pdf", pages="4")
    with pytest.raises(InputError, match="pages is '1', but an image in memory is one page"):
        extract(np.zeros((9, 9, 3), np.uint8), pages="1")


def test_a_scanned_pdf_is_read(place: Path) -> None:
    pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
    Image.open(EXAMPLE).convert("RGB").save("scanned.pdf", resolution=144)
    assert is_read(zoo.TableExtractor()("scanned.pdf"))


def test_engines_of_python() -> None:
    """docs/tables.md: ocr="none" leaves the texts out; one of reader and ocr may be given."""
    (table,) = zoo.TableExtractor(ocr="none")(EXAMPLE)
    assert table.shape == (10, 6)
    assert {cell.text for cell in table.cells} == {""}
    extract = zoo.TableExtractor(detection=None, reader=lambda lines: [("x", 0.9)] * len(lines))
    assert {cell.text for cell in extract(EXAMPLE)[0].cells} == {"x"}
    with pytest.raises(InputError, match="give one of them"):
        zoo.TableExtractor(reader="zoo-read", ocr="none")
    with pytest.raises(zoo.ZooError, match=r"ocr 'rapidoc' is not known, expected .*did you mean 'rapidocr'"):
        zoo.TableExtractor(ocr="rapidoc")
    # The table of one page with other options is that of a new extractor.
    assert extract.replace(threshold=0.3).reader is extract.reader
    assert zoo.TableExtractor(ocr="none").replace(threshold=0.3, whole=True).reader is None


def test_the_jobs_of_a_folder_and_of_ray(place: Path) -> None:
    """docs/batch.md: `zoo table ... --engine ray` computes these rows."""
    worker = Worker(ExtractorConfig())
    (page,) = worker.plan("page.png")
    assert is_read(list(worker.tables(page).tables))
    row: dict[str, Any]
    (row,) = TablesJob(Worker(ExtractorConfig()), None).compute(_part("page.png"), [0])
    assert row["csv"].splitlines()[-1] == ",".join(LAST)


def _part(path: str) -> Any:
    from zoo.apps.tables.batch import DocumentsPart

    return DocumentsPart(0, 1, (path,))


def test_the_command(place: Path) -> None:
    """README: zoo table page.png; and one key for what is the same."""
    assert main(["table", "page.png", "-o", "tables.json"]) == 0
    assert is_read([Table.from_dict(one) for one in json.loads(Path("tables.json").read_text("utf-8"))])
    keys = {
        ExtractorConfig(reader=reader, ocr=ocr).key()
        for reader, ocr in ((None, None), ("zoo-read", None), (None, "zoo-read"))
    }
    assert len(keys) == 1
    assert ExtractorConfig(ocr="none").key() not in keys


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """What answers for a command, `zoo serve ...`, in this process."""
    for package in ("uvicorn", "msgspec", "prometheus_client", "python_multipart"):
        pytest.importorskip(package, reason=f"needs {package}, of the extra serve")
    testclient = pytest.importorskip("starlette.testclient", reason="needs httpx, for Starlette's test client")

    def served(*command: str) -> Any:
        started: list[Any] = []
        monkeypatch.setattr(
            "zoo.apps.serve.server.serve", lambda models, *_, **options: started.append((models, options))
        )
        assert main(list(command)) == 0
        ((models, options),) = started
        from zoo.apps.serve.app import application

        models.load()
        return testclient.TestClient(application(models, keys=options["keys"]))

    return served


def test_the_server(place: Path, client: Callable[..., Any]) -> None:
    """docs/serving.md: zoo serve zoo-read --tables, and curl -F file=@page.png."""
    asked = client("serve", "zoo-read", "--tables", "--port", "8080", "--api-key", "secret")
    for fields in ({}, {"threshold": "0.4"}, {"whole": "true"}):
        answer = asked.post(
            "/v1/tables",
            headers={"Authorization": "Bearer secret"},
            files={"file": ("page.png", Path("page.png").read_bytes())},
            data=fields,
        )
        (page,) = answer.json()["data"]
        assert is_read([Table.from_dict({k: v for k, v in one.items() if k != "html"}) for one in page["tables"]])
        assert "<td>Boskoop</td>" in page["tables"][0]["html"]


def test_the_server_says_what_it_cannot_read(place: Path, client: Callable[..., Any]) -> None:
    """docs/serving.md: the warnings of an answer."""
    asked = client("serve", "zoo-read", "--tables")
    picture = Path(__file__).parent.parent / "data" / "scripts" / "cyrillic.png"
    for path in ("/v1/tables", "/v1/read"):
        answer = asked.post(path, files={"file": ("page.png", picture.read_bytes())}).json()
        assert len(answer["warnings"]) == 1, path
        assert "a script or a hand that zoo-read cannot read" in answer["warnings"][0]
    assert asked.post("/v1/tables", files={"file": ("page.png", EXAMPLE.read_bytes())}).json()["warnings"] == []


def test_the_server_has_the_options_of_the_command(place: Path, client: Callable[..., Any], capsys: Any) -> None:
    asked = client("serve", "--tables", "--ocr", "none")
    answer = asked.post("/v1/tables", files={"file": ("page.png", Path("page.png").read_bytes())})
    assert {cell["text"] for cell in answer.json()["data"][0]["tables"][0]["cells"]} == {""}
    for command, problem in (
        (["serve", "zoo-read", "--ocr", "tesseract"], "--ocr is for /v1/tables: add --tables"),
        (["serve", "zoo-read", "--no-detection"], "--no-detection is for /v1/tables: add --tables"),
        (["serve", "--tables", "--ocr", "none", "--reader", "x"], "give one of them"),
    ):
        with pytest.raises(SystemExit):
            main(command)
        assert problem in capsys.readouterr().err


def test_the_demo(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/demo.md: zoo demo, whose first tab shows the tables of an upload."""
    from zoo.apps.demo import answers

    started: list[Any] = []
    monkeypatch.setattr("zoo.apps.cli.demo.serve", lambda models, *_: started.append(models))
    assert main(["demo"]) == 0
    page = answers.find_tables(started[0], "page.png")
    assert '"text": "Boskoop"' in page
    assert '"text": "346.5"' in answers.find_tables(started[0], "page.png", threshold=0.4, whole=True)


def test_warnings_name_what_was_left_out(place: Path) -> None:
    """A page in a file is warned of as one in memory is."""
    pixels = np.full((400, 300, 3), 255, np.uint8)
    Image.fromarray(pixels).save("blank.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert zoo.extract_tables("blank.png") == zoo.extract_tables(pixels) == []
