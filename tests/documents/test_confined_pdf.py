"""PDFs that make PDFium work without end, take memory, or crash it: one error for the page; its process is killed."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
pytest.importorskip("resource", reason="needs limits, which Windows has not")

from tests.platforms import LINUX
from tests.small_pdf import pdf, text
from zoo.apps.documents import open_document
from zoo.apps.documents import pdf as module
from zoo.errors import InputError
from zoo.guards import confined

GOOD = text(20, 150, "good")


def endless() -> bytes:
    """A page that draws a tile of a thousandth of a point 10^9 times."""
    pattern = "/Pattern << /P 8 0 R >>"
    data = pdf(["/Pattern cs /P scn 0 0 300 200 re f", GOOD])
    tile = b"0 0 .1 .1 re f"
    body = (
        b"8 0 obj << /Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 1 1] /XStep 0.001 "
        b"/YStep 0.001 /Resources << >> /Length %d >>\nstream\n%s\nendstream endobj\n" % (len(tile), tile)
    )
    # PDFium finds objects by itself where the table of places is wrong.
    return data.replace(b"/Resources <<", b"/Resources << " + pattern.encode()).replace(b"xref\n", body + b"xrex\n")


def bomb() -> bytes:
    """A page of 900 MB, compressed twice."""
    content = zlib.compress(zlib.compress(b" " * (900 << 20), 9), 9)
    data = pdf(["here", GOOD]).replace(b"xref\n", b"xrex\n")
    return data.replace(
        b"<< /Length 4 >>\nstream\nhere\n",
        b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n%s\n" % (len(content), content),
    )


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(module, "JOB", module.JOB._replace(seconds=1, wall_seconds=20.0))


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (endless, "too long, more than"),
        pytest.param(
            bomb, "memory|takes more than", marks=pytest.mark.skipif(not LINUX, reason="needs Linux's limit on memory")
        ),
    ],
)
def test_a_hostile_page_is_one_error_and_the_others_are_read(make, why):
    with open_document(make(), name="x.pdf") as document:
        with pytest.raises(InputError, match=rf"x\.pdf, page 1: damaged or hostile: PDFium is stopped, .*({why})"):
            document.page(1)
        words: Any = document.page(2).words
        assert [word.text for word in words] == ["good"]


def test_a_file_of_hostile_pages_ends(monkeypatch, hurried):
    monkeypatch.setattr(module, "MAX_STOPPED", 1)
    with open_document(endless(), name="x.pdf") as document:
        with pytest.raises(InputError, match="too long"):
            document.page(1)
        with pytest.raises(InputError, match="page 2: not read, since 1 other"):
            document.page(2)


def test_interrupts():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with open_document(endless()) as document:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                document.page(1)
            assert len(document.page(2).words or ()) == 1
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_process_for_each_file_and_a_spare_one():
    for _ in range(2):
        with open_document(pdf([GOOD])) as first, open_document(pdf([GOOD])) as second:
            processes = {file._pages._process._process.pid for file in (first, second)}  # type: ignore[union-attr]
            assert len(processes) == 2
            (spare,) = (one for command, one in confined._SPARE_PROCESSES.items() if one and "pdf_job" in str(command))
            assert spare.pid not in processes
    with open_document(pdf([GOOD])) as document:
        assert document._pages._process._process is spare  # type: ignore[union-attr]
        document.close()
        assert len(document.page(1).words or ()) == 1  # it is opened again


@pytest.mark.parametrize(
    "answer", [b"", b"[]\n", b'{"words": 3, "off": 0}\n', b'{"words": [["a", [9, 0, 0, 0], 0]], "off": 0}\n', b"\xff\n"]
)
def test_wrong_answers(answer, monkeypatch):
    """A file that has taken over the process can answer what it likes."""
    with open_document(pdf([GOOD]), name="x.pdf", dpi=72) as document:
        ask = document._pages._process.ask  # type: ignore[union-attr]

        def forged(request: str, *arguments: Any, **options: Any) -> bytes | bytearray:
            sized = answer + bytes(300 * 200 * 3) if answer else answer
            return sized if request == "read" else ask(request, *arguments, **options)

        monkeypatch.setattr(document._pages._process, "ask", forged)  # type: ignore[union-attr]
        with pytest.raises(InputError, match=r"x\.pdf, page 1: damaged"):
            document.page(1)


def test_what_a_page_gives_can_be_sent_on():
    with open_document(pdf([GOOD])) as document:
        found: Any = document._pages.read(1)  # type: ignore[union-attr]
    copy = pickle.loads(pickle.dumps(found))
    assert np.array_equal(copy.image, found.image)
    assert copy.words == found.words


def test_the_job_imports_nothing_of_zoo():
    files = sorted((Path(module.__file__).parent / "pdf_job").glob("*.py"))
    assert len(files) > 1
    for source in (file.read_text("utf-8") for file in files):
        assert "import zoo" not in source
        assert "from zoo" not in source
        assert "from .." not in source
