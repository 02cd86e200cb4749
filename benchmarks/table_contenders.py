"""Table libraries alone in a process: `python -m benchmarks.table_contenders NAME FILE... > lines`.

Nobody is given anything but the picture or the PDF.  For each file a line of JSON: for each page its tables, a table
as cells (row, column, row span, column span, text) or HTML; seconds of the wall and of the CPU; peak memory so far.
The contenders' packages need not be beside zoo's: nothing of zoo is imported here.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

Cells = list[list[Any]]
Pages = dict[int, list[Cells | str]]  # from 1; cells, or HTML
LIMIT = 300  # seconds for a file


def main(name: str, files: Sequence[str]) -> None:
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries and their programs print is no answer
    begin = time.perf_counter()
    extract = CONTENDERS[name]()
    start = time.perf_counter() - begin
    signal.signal(signal.SIGALRM, _too_long)
    for file in files:
        wall, cpu = time.perf_counter(), _cpu()
        pages: Pages = {}
        error = None
        signal.alarm(LIMIT)
        try:
            pages = extract(Path(file))
        except Exception as e:  # whatever a library raises: the file counts as one where nothing was found
            error = f"{type(e).__name__}: {e}"[:300]
        signal.alarm(0)
        found = {
            "pages": pages,
            "error": error,
            "start": start,
            "wall": time.perf_counter() - wall,
            "cpu": _cpu() - cpu,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        print(json.dumps(found), file=lines, flush=True)


def _cpu() -> float:
    """Seconds, of programs that were called too."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"more than {LIMIT} seconds")


def img2table(ocr: str) -> Callable[[], Callable[[Path], Pages]]:
    """Ruled tables and others; the words of a PDF are its text layer's, if it has one."""

    def load() -> Callable[[Path], Pages]:
        document = import_module("img2table.document")
        engine = getattr(import_module("img2table.ocr"), ocr)()

        def extract(path: Path) -> Pages:
            kind = document.PDF if path.suffix == ".pdf" else document.Image
            found = kind(str(path)).extract_tables(ocr=engine, borderless_tables=True)
            pages = found if isinstance(found, dict) else {0: found}
            return {page + 1: [_merged(list(t.content.values())) for t in tables] for page, tables in pages.items()}

        return extract

    return load


def _merged(grid: Sequence[Sequence[Any]]) -> Cells:
    """img2table's grid, in which a spanning cell stands at each of its positions."""
    cells: Cells = []
    places = [[(c.value or "", c.bbox.x1, c.bbox.y1, c.bbox.x2, c.bbox.y2) for c in row] for row in grid]
    done: set[tuple[int, int]] = set()
    for r, row in enumerate(places):
        for c, one in enumerate(row):
            if (r, c) in done:
                continue
            wide = next((w for w in range(1, len(row) - c) if row[c + w] != one), len(row) - c)
            rest = range(1, len(places) - r)
            high = next((h for h in rest if places[r + h][c : c + wide] != [one] * wide), len(places) - r)
            done |= {(r + i, c + j) for i in range(high) for j in range(wide)}
            cells.append([r, c, high, wide, one[0]])
    return cells


def rapid_table() -> Callable[[Path], Pages]:
    """SLANet, with RapidOCR's words.  It takes every picture as one table: it has no detector."""
    table = import_module("rapid_table").RapidTable()
    ocr = import_module("rapidocr").RapidOCR()
    image = import_module("PIL.Image")
    numpy = import_module("numpy")

    def extract(path: Path) -> Pages:
        pixels = numpy.asarray(image.open(path).convert("RGB"))[..., ::-1].copy()
        read = ocr(pixels)
        if read.boxes is None:
            return {1: []}
        words = [
            [box.tolist(), text, score] for box, text, score in zip(read.boxes, read.txts, read.scores, strict=True)
        ]
        return {1: [table(pixels, words)[0]]}

    return extract


def camelot(flavor: str) -> Callable[[], Callable[[Path], Pages]]:
    def load() -> Callable[[Path], Pages]:
        read_pdf = import_module("camelot").read_pdf

        def extract(path: Path) -> Pages:
            pages: Pages = {}
            for table in read_pdf(str(path), pages="all", flavor=flavor, suppress_stdout=True):
                pages.setdefault(int(table.page), []).append(_plain(table.df.values.tolist()))
            return pages

        return extract

    return load


def pdfplumber() -> Callable[[Path], Pages]:
    """By its default: ruled tables."""
    open_pdf = import_module("pdfplumber").open

    def extract(path: Path) -> Pages:
        with open_pdf(path) as document:
            return {page.page_number: [_plain(t) for t in page.extract_tables()] for page in document.pages}

    return extract


def _plain(rows: Sequence[Sequence[str | None]]) -> Cells:
    return [[r, c, 1, 1, text or ""] for r, row in enumerate(rows) for c, text in enumerate(row)]


CONTENDERS: dict[str, Callable[[], Callable[[Path], Pages]]] = {
    "img2table + RapidOCR": img2table("RapidOCR"),
    "img2table + tesseract": img2table("TesseractOCR"),
    "rapid_table": rapid_table,
    "camelot": camelot("auto"),
    "pdfplumber": pdfplumber,
}

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
