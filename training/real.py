"""Scores of zoo-read and zoo-table-structure on real pictures, beside Tesseract on the same cells.

`python -m training.real [--pictures FOLDER] [--json FILE]`: the tables of tests/data/tables (Nature Communications,
BMC, Applied Water Science, arXiv), and with --pictures those of PubTabNet's examples, whose PNGs the folder has. The
reader is given the cells of the true table, cut into lines as `zoo table` does; Tesseract the same lines, twice as
large (as a line each, --psm 7), and the whole picture. The structure model is given the picture and the true words.
"""

import argparse
import io
import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image

import zoo
from benchmarks.table_samples import Sample, samples
from training.text import score
from zoo.apps.tables import Table, TableExtractor, Word, build_table
from zoo.apps.tables.grits import grits
from zoo.apps.tables.ocr import Tesseract
from zoo.apps.tables.reading import read_cells


def opened(sample: Sample) -> np.ndarray:
    """(H, W, 3) uint8."""
    assert sample.picture
    with Image.open(sample.picture) as image:
        return np.asarray(image.convert("RGB"))


def texts(true: Table, words: Iterable[Word]) -> list[str]:
    """The texts that words with boxes give for the cells of the true table that have text."""
    words, found = list(words), []
    for cell in true.cells:
        x0, y0, x1, y1 = cell.box
        inside = [w for w in words if x0 <= (w.box[0] + w.box[2]) / 2 < x1 and y0 <= (w.box[1] + w.box[3]) / 2 < y1]
        if cell.text:
            found.append(" ".join(w.text for w in inside))
    return found


def tesseract_line(line: np.ndarray) -> tuple[str, float]:
    """One line (h, w, 3) by the program, with a margin of paper, which it needs."""
    paper = tuple(int(v) for v in np.median(line, (0, 1)))
    image = Image.new("RGB", (2 * line.shape[1] + 20, 2 * line.shape[0] + 20), paper)
    image.paste(
        Image.fromarray(line).resize((2 * line.shape[1], 2 * line.shape[0]), Image.Resampling.LANCZOS), (10, 10)
    )
    file = io.BytesIO()
    image.save(file, "PNG")
    command = ["tesseract", "stdin", "stdout", "--psm", "7"]
    done = subprocess.run(command, input=file.getvalue(), capture_output=True, check=True)
    return " ".join(done.stdout.decode().split()), 1.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.real", description=__doc__)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="PubTabNet's examples, as PNG")
    parser.add_argument("--reader", default="zoo-read")
    parser.add_argument("--structure", default="zoo-table-structure")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    of = [s for s in samples(args.pictures) if s.picture]
    pictures = [opened(s) for s in of]
    wanted = [cell.text for s in of for cell in s.true.cells if cell.text]
    results: dict[str, dict[str, float]] = {}

    def scored(name: str, words: Iterable[Iterable[Word]]) -> None:
        found = [text for s, of_one in zip(of, words, strict=True) for text in texts(s.true, of_one)]
        results[name] = score(found, wanted)
        print(name, json.dumps({k: round(v, 4) for k, v in results[name].items()}), flush=True)

    read = zoo.load(args.reader, task="read")
    scored("zoo-read, lines of cells", (read_cells(p, s.true, read) for p, s in zip(pictures, of, strict=True)))
    if shutil.which("tesseract"):

        def by_tesseract(lines: list[np.ndarray]) -> list[tuple[str, float]]:
            return [tesseract_line(line) for line in lines]

        scored(
            "tesseract, lines of cells",
            (read_cells(p, s.true, by_tesseract) for p, s in zip(pictures, of, strict=True)),
        )
        whole = Tesseract()
        scored("tesseract, whole picture", (whole(p) for p in pictures))

    extract = TableExtractor(args.structure, None)
    right, similar = np.zeros(3), 0.0
    for sample, picture in zip(of, pictures, strict=True):
        (found,) = extract(picture, sample.words) or [build_table([])]
        counts = found.shape[0] == sample.true.shape[0], found.shape[1] == sample.true.shape[1]
        right += [*counts, found.header_rows == sample.true.header_rows]
        similar += grits(sample.true, found, "con").f
        print(sample.name, "rows and columns", sample.true.shape, "found", found.shape, flush=True)
    names = "rows_exact", "columns_exact", "header_rows_right"
    results["zoo-table-structure"] = {
        **dict(zip(names, (right / len(of)).tolist(), strict=True)),
        "grits_con": similar / len(of),
        "tables": len(of),
    }
    print("zoo-table-structure", json.dumps({k: round(v, 4) for k, v in results["zoo-table-structure"].items()}))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
