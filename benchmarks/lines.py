"""Readers alone, on lines of real documents: zoo-read, RapidOCR and Tesseract get the same pixels.

    pip install . --group bench                             # RapidOCR; Tesseract is a program
    python -m benchmarks.lines --pdfs FOLDER --pictures PubTabNet/examples
    python -m benchmarks.lines --pdfs FOLDER --half look --show 20

Lines are cut as `zoo table` cuts them: from the cells of the tables in tests/data/tables; with --pictures from those of
PubTabNet's examples; with --pdfs from short lines of PDFs with a text layer (gmft's data/pdfs were used), drawn as grey
pictures of 150 dpi, and as screenshots of 96 dpi with coloured edges.  The texts are those of the annotations and of
the text layers.  A file whose SHA-256 begins with an even digit is in the half to look at, any other in the final one.

Dashes, quotes and signs that look alike count as equal (`training.text.folded`), for every reader.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import random
import re
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

import zoo
from training.text import by_kind, distance, folded
from zoo.apps.documents import Word, open_document
from zoo.apps.tables.boxes import bounding_box
from zoo.apps.tables.reading import cell_lines, read_cells
from zoo.images.boxes import Box

from . import harness
from .table_samples import samples

READERS = ("zoo-read", "rapidocr", "tesseract")
LONGEST, PER_PAGE = 40, 12  # characters of a line, and lines of a page, that are taken from a PDF
# Formulas, a logo's characters "1 3" and "Vol.:", and brackets whose font says that they are other letters.
FORMULA = re.compile(
    r"\b[A-Za-z]{1,2}[0-9]?\b.?=|^[^0-9]{1,2}$|^[a-z][0-9a-z]?\b"
    r"|^1 3$|Vol\.:|[ðÞþ¼\u03b1-\u03c9\u2200-\u2211\u2213-\u22ff]"
)
DPI = {"page": 150.0, "screen": 96.0}


class Cell(NamedTuple):
    """Lines (y, x, 3) uint8 of one text, which joins them by spaces.  final: not to be looked at."""

    source: str
    lines: list[np.ndarray]
    text: str
    final: bool


class _Cut:
    """A reader that keeps the lines it is given, and answers with their numbers."""

    def __init__(self) -> None:
        self.lines: list[np.ndarray] = []

    def __call__(self, lines: list[np.ndarray]) -> list[tuple[str, float]]:
        self.lines += lines
        return [(str(len(self.lines) - len(lines) + i), 1.0) for i in range(len(lines))]


def is_final(path: Path) -> bool:
    return int(hashlib.sha256(path.read_bytes()).hexdigest()[0], 16) % 2 == 1


def of_tables(pictures: Path | None) -> Iterator[Cell]:
    """The cells of tables that have been annotated."""
    for sample in samples(pictures):
        if not sample.picture:
            continue
        image = np.asarray(Image.open(sample.picture).convert("RGB"))
        source, final = "tables" if sample.detected else "pubtabnet", is_final(sample.picture)
        cut = _Cut()
        words = read_cells(image, sample.true, cut)
        for cell in sample.true.cells:
            x0, y0, x1, y1 = cell.box
            lines = [
                cut.lines[int(w.text)]
                for w in words
                if x0 <= (w.box[0] + w.box[2]) / 2 < x1 and y0 <= (w.box[1] + w.box[3]) / 2 < y1
            ]
            if lines and cell.text:
                yield Cell(source, lines, cell.text, final)


def of_pdf(path: Path) -> Iterator[Cell]:
    """Short lines of a PDF's pages, each page drawn in both ways."""
    pdfium, final, seen = import_module("pypdfium2"), is_final(path), set[str]()
    for source, dpi in DPI.items():
        with open_document(path, dpi=dpi) as document, pdfium.PdfDocument(path) as screen:
            for i, page in enumerate(document.pages()):
                image = page.image
                if source == "screen":
                    image = screen[i].render(scale=dpi / 72, optimize_mode="lcd", rev_byteorder=True).to_numpy()
                rng = random.Random(f"{path.name}/{i}")
                short = [words for words in _in_lines(page.words or []) if _is_plain(words)]
                chosen = {_text(words): words for words in rng.sample(short, min(PER_PAGE, len(short)))}
                boxes = {text: _around(words) for text, words in chosen.items() if f"{source}/{text}" not in seen}
                seen.update(f"{source}/{text}" for text in boxes)  # some stand at the top of each page
                found = cell_lines(np.ascontiguousarray(image[..., :3]), list(boxes.values()))
                for text, (x0, y0, x1, y1) in boxes.items():
                    own = [line for (a, b, c, d), line in found if x0 <= a and y0 <= b and c <= x1 and d <= y1]
                    if len(own) == 1:
                        yield Cell(source, own, text, final)


def _text(words: list[Word]) -> str:
    return " ".join(w.text for w in words)


def _around(words: list[Word]) -> Box:
    """The words' box with some space, as a cell has."""
    boxes = [w.box for w in words]
    space = 0.15 * (max(box[3] for box in boxes) - min(box[1] for box in boxes))
    x0, y0, x1, y1 = bounding_box(boxes)
    return x0 - space, y0 - space, x1 + space, y1 + space


def _in_lines(words: list[Word]) -> Iterator[list[Word]]:
    """Words that stand in a row with small gaps."""
    line: list[Word] = []
    for word in words:
        if line:
            (_, a0, end, a1), (x0, b0, _, b1) = line[-1].box, word.box
            high = max(a1 - a0, b1 - b0)
            if min(a1, b1) - max(a0, b0) < 0.5 * high or not -0.2 * high <= x0 - end < 0.8 * high:
                yield line
                line = []
        line.append(word)
    if line:
        yield line


def _is_plain(words: list[Word]) -> bool:
    """True for upright lines of a usual size, no formulas, and of letters whose codes a text layer tells truly."""
    text = _text(words)
    upright = all(not w.angle for w in words) and all(5 < w.box[3] - w.box[1] < 60 for w in words)
    formula = FORMULA.search(text)
    return (
        upright and not formula and len(text) <= LONGEST and all(0x20 < ord(c) < 0x2300 for c in text.replace(" ", ""))
    )


def enlarged(line: np.ndarray, factor: int) -> np.ndarray:
    """The line with a margin of paper, which Tesseract needs."""
    paper = tuple(int(v) for v in np.median(line, (0, 1)))
    size = factor * line.shape[1], factor * line.shape[0]
    image = Image.new("RGB", (size[0] + 20, size[1] + 20), paper)
    image.paste(Image.fromarray(line).resize(size, Image.Resampling.LANCZOS), (10, 10))
    return np.asarray(image)


def tesseract(line: np.ndarray) -> str:
    file = io.BytesIO()
    Image.fromarray(enlarged(line, 2)).save(file, "PNG")
    command = ["tesseract", "stdin", "stdout", "--psm", "7"]
    done = subprocess.run(command, input=file.getvalue(), capture_output=True, check=True)
    return " ".join(done.stdout.decode().split())


def rapidocr(lines: list[np.ndarray]) -> list[str]:
    """Its recogniser alone, which does better on the line as it is than with a margin."""
    found, _ = import_module("rapidocr_onnxruntime").RapidOCR().text_rec([line[..., ::-1] for line in lines])
    return [one[0] for one in found]


def texts(name: str, cells: list[Cell], folder: str) -> list[str]:
    """The text that a reader gives for each cell."""
    lines = [line for cell in cells for line in cell.lines]
    if name == "zoo-read":
        found = [one.text for one in zoo.load(folder, task="read")(lines)]
    else:
        found = rapidocr(lines) if name == "rapidocr" else list(map(tesseract, lines))
    rest = iter(found)
    return [" ".join(filter(None, (next(rest) for _ in cell.lines))) for cell in cells]


def scores(cells: list[Cell], found: list[str]) -> dict[str, Any]:
    """Errors a character: of all, the middle of the sources', of each source, of each kind of character."""
    pairs = [(cell.source, folded(text), folded(cell.text)) for cell, text in zip(cells, found, strict=True)]
    by_source: dict[str, float] = {}
    for source in sorted({cell.source for cell in cells}):
        of = [(a, b) for s, a, b in pairs if s == source]
        by_source[source] = round(sum(distance(a, b) for a, b in of) / sum(len(b) for _, b in of), 4)
    return {
        "character_error": round(sum(distance(a, b) for _, a, b in pairs) / sum(len(b) for *_, b in pairs), 4),
        "mean_of_sources": round(statistics.mean(by_source.values()), 4),
        "exact": round(sum(a == b for _, a, b in pairs) / len(pairs), 4),
        "cells": len(pairs),
        "sources": by_source,
        "kinds": by_kind([a for _, a, _ in pairs], [b for *_, b in pairs]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.lines", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pdfs", type=Path, metavar="FOLDER", help="PDFs with text layers")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="PubTabNet's examples, as PNG")
    parser.add_argument("--half", choices=("look", "final"), help="default: both")
    parser.add_argument("--only", nargs="+", choices=READERS, default=READERS, help="some of the readers")
    parser.add_argument("--reader", default="zoo-read", help="a checkpoint's name or folder")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="lines with errors to print")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    cells = list(of_tables(args.pictures))
    for path in sorted(args.pdfs.glob("*.pdf")) if args.pdfs else []:
        cells += of_pdf(path)
    cells = [cell for cell in cells if args.half is None or cell.final is (args.half == "final")]
    results: dict[str, Any] = {}
    for name in args.only:
        if name == "tesseract" and not shutil.which(name):
            print("tesseract is not installed")
            continue
        found = texts(name, cells, args.reader)
        results[name] = scores(cells, found)
        print(name, json.dumps(results[name], ensure_ascii=False), flush=True)
        wrong = [(c, f) for c, f in zip(cells, found, strict=True) if not c.final and folded(c.text) != folded(f)]
        for cell, text in wrong[: args.show]:
            print(f"  {cell.source}: {cell.text!r} read as {text!r}")
    if args.json:
        harness.write(args.json, results)


if __name__ == "__main__":
    main()
