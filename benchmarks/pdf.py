"""What a page of a PDF costs, in CPU milliseconds: PDFium, what zoo looks for on the page, and the confined process.

    python -m benchmarks.pdf

The page has 500 words in a ruled table and is drawn at 144 dpi.  Rows are sums: each has what those before it have.
The least of --rounds turns counts, since other work only adds.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pypdfium2

from tests.small_pdf import line, pdf, text
from zoo.apps.documents import pdf as zoo_pdf
from zoo.apps.documents import pdf_job

from . import harness

PAGES, SCALE = 20, 2
SIZE = (595, 842)


def page_of_words() -> str:
    """Text and rules: 50 rows of 10 words with a line between all of them."""
    words = [text(40 + 52 * x, 800 - 15 * y, f"word{x}{y}", 9) for y in range(50) for x in range(10)]
    rules = [line(36, 796 - 15 * y, 560, 796 - 15 * y) for y in range(50)]
    return "".join([*words, *rules, *(line(36 + 52 * x, 50, 36 + 52 * x, 810) for x in range(11))])


def main(argv: list[str] | None = None) -> int:
    args = harness.parser("pdf", __doc__, 5, cache=False).parse_args(argv)
    environment = harness.environment(harness.take_threads(args.threads))
    data = pdf([page_of_words()] * PAGES, size=SIZE)
    W, H = SIZE[0] * SCALE, SIZE[1] * SCALE

    def pdfium(look: Callable[..., object]) -> float:
        buffer = bytearray(data)
        document = pypdfium2.PdfDocument((ctypes.c_ubyte * len(buffer)).from_buffer(buffer))
        began = time.process_time()
        for number in range(PAGES):
            look(document[number])
        return time.process_time() - began

    def drawn(page: pypdfium2.PdfPage) -> None:
        page.render(scale=SCALE, rev_byteorder=True).close()
        page.get_textpage().get_text_range()

    def words(page: pypdfium2.PdfPage) -> None:
        page.render(scale=SCALE, rev_byteorder=True).close()
        layer = page.get_textpage()
        json.dumps(pdf_job.words(page, layer, layer.count_chars(), (H, W)))

    def confined() -> tuple[float, float]:
        """Seconds of the process that asks and of the confined one."""
        with_child = zoo_pdf.PdfFile(data, "x.pdf", dpi=72 * SCALE)
        process = with_child._process._process
        assert process is not None
        with_child.read(1)
        before, began = _cpu(process.pid), time.process_time()
        for number in range(1, PAGES + 1):
            with_child.read(number)
        found = time.process_time() - began, _cpu(process.pid) - before
        with_child.close()
        return found

    turns: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        turns.setdefault("PDFium draws, and extracts the text", []).append(pdfium(drawn))
        turns.setdefault("+ words with boxes and angles", []).append(pdfium(words))
        turns.setdefault("+ lines", []).append(pdfium(lambda page: pdf_job.read(page, W, H, SCALE, 200_000)))
        own, child = confined()
        turns.setdefault("of which in the confined process", []).append(child)
        turns.setdefault("+ rules, words that are seen, in a confined process", []).append(own + child)
    result = {
        "environment": environment,
        "CPU ms a page": {name: 1000 * min(some) / PAGES for name, some in turns.items()},
    }
    print(json.dumps(result["CPU ms a page"], indent=1))
    harness.finish("pdf", args, result)
    return 0


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
