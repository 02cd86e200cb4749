"""OCR engines, on a page that we print: every word, where it is."""

from __future__ import annotations

import importlib.util
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

from tests.small_pdf import pdf, text
from tests.tables.stub_config import thirds
from zoo.apps.documents import open_document
from zoo.apps.tables import TableExtractor, Word, ocr
from zoo.apps.tables.ocr import ENGINES, Tesseract, load_ocr
from zoo.errors import InputError, UnsupportedError

pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) prints the page")
WORDS = ["Item", "Price", "Share", "Bolts", "1,204.50", "12.5", "Nuts", "88.00", "3.1"]


@pytest.fixture(scope="module")
def page():
    content = "".join(text(20 + 100 * (i % 3), 160 - 66 * (i // 3), word, 14) for i, word in enumerate(WORDS))
    return open_document(pdf([content])).page(1)


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_reads_a_page(name: str, page, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "rapidocr" and importlib.util.find_spec("rapidocr") is None:
        pytest.skip("needs the package rapidocr (the extra ocr)")
    if name == "tesseract" and shutil.which("tesseract") is None:
        pytest.skip("needs the program tesseract (Debian: tesseract-ocr)")
    found = {word.text: word for word in load_ocr(name)(page.image)}
    assert set(found) == set(WORDS)
    for wanted in page.words:
        word = found[wanted.text]
        centre = [(word.box[i] + word.box[i + 2]) / 2 for i in (0, 1)]
        assert wanted.box[0] < centre[0] < wanted.box[2]
        assert wanted.box[1] < centre[1] < wanted.box[3]
        assert 0.5 < word.confidence <= 1
    (table,) = TableExtractor(thirds, None, ocr=name)(page.image)
    assert table.rows() == [WORDS[:3], WORDS[3:6], WORDS[6:]]


def test_an_engine_may_be_a_function_and_is_asked_only_where_words_are_wanted() -> None:
    pages: list[tuple[int, ...]] = []

    def engine(image: np.ndarray) -> list[Word]:
        pages.append(image.shape)
        return [Word("one", (10, 10, 20, 20))]

    extract = TableExtractor(thirds, None, ocr=engine)
    image = np.full((90, 60, 3), 255, np.uint8)
    assert extract(image)[0].cells[0].text == "one"
    assert extract(image, [Word("two", (10, 10, 20, 20))])[0].cells[0].text == "two"
    assert pages == [(90, 60, 3)]
    with pytest.raises(InputError, match="give one of them"):
        TableExtractor(thirds, None, ocr=engine, reader=lambda lines: [])


def test_what_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedError, match="did you mean 'tesseract'"):
        load_ocr("teseract")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="no program of that name"):
        load_ocr("tesseract")
    monkeypatch.setitem(__import__("sys").modules, "rapidocr", None)
    with pytest.raises(InputError, match=r"pip install 'transformers-zoo\[ocr\]'"):
        load_ocr("rapidocr")


@pytest.mark.parametrize(
    ("script", "message"),
    [("cat >/dev/null; echo 'no data' >&2; exit 1", "tesseract failed: no data"), ("sleep 60", "more than 0.2 s")],
)
def test_a_program_that_fails(script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tesseract"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("zoo.apps.tables.ocr.SECONDS", 0.2 if "0.2" in message else 10)
    with pytest.raises(InputError, match=message):
        Tesseract()(np.zeros((8, 8, 3), np.uint8))


def test_the_default_reader_is_what_is_installed(monkeypatch):

    for installed, wanted in ((False, "zoo-read"), (True, "auto")):
        monkeypatch.setattr(ocr, "is_installed", lambda name, installed=installed: installed)
        assert ocr.reader_and_engine(None, None) == (wanted, None)
        assert ocr.reader_and_engine("auto", None) == (wanted, None)
        assert ocr.reader_and_engine(None, "zoo-read") == ("zoo-read", None)
        assert ocr.reader_and_engine(None, "pp-ocrv6-small") == ("pp-ocrv6-small", None)
