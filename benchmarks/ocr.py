"""`zoo ocr` beside RapidOCR, with the same weights, on pages and pictures of public repositories' tests.

    pip install . --group bench                                     # RapidOCR; or name a Python that has it
    python -m benchmarks.ocr --peers PYTHON                         # the pages from the web
    python -m benchmarks.ocr --peers PYTHON --mirrors FOLDER        # from git mirrors, FOLDER/owner+name

data/ocr/pages.tsv has a line for each: repository, commit, path, and the page of a PDF, which is drawn at 150 dpi.
Each program is alone in a process, with one thread.  RapidOCR's classifier of lines that are upside down is off, and
it keeps what it is unsure of, since zoo does.

Of two lines whose boxes, parallel to the axes, overlap most, the texts are compared: a character is equal if it is
none of those that must be put in, left out or changed.  All characters of a line that the other has not are wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "benchmarks" / "data" / "ocr" / "pages.tsv"
DRAWN_DPI = 150  # dpi
LEAST_SHARED = 0.3  # overlap of two boxes over their union, from which their lines are the same
CLOSE = 0.9
Box = tuple[float, float, float, float]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ocr", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="the one that has RapidOCR")
    parser.add_argument("--mirrors", type=Path, metavar="FOLDER", help="git mirrors, instead of the web")
    parser.add_argument("--json", type=Path, help="write every page's figures")
    parser.add_argument("--read", choices=READERS, help=argparse.SUPPRESS)  # in a process of its own
    parser.add_argument("files", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.read:
        return read(args.read, args.files)
    with tempfile.TemporaryDirectory() as folder:
        names = pictures(Path(folder), args.mirrors)
        ours, theirs = (
            run(python, name, list(names.values()))
            for python, name in ((sys.executable, "zoo"), (args.peers, "rapidocr"))
        )
    rows = {name: compare(a, b) for name, a, b in zip(names, ours, theirs, strict=False)}
    for name, row in rows.items():
        print(
            f"{row['equal']:5} of {row['characters']:5} characters, {row['close']:3} of {row['lines']:3} boxes  {name}"
        )
    total = {field: sum(row[field] for row in rows.values()) for field in ("equal", "characters", "close", "lines")}
    print(
        f"{len(rows)} pages: {total['equal']} of {total['characters']} characters equal "
        f"({total['equal'] / max(1, total['characters']):.2%}), {total['close']} of {total['lines']} boxes overlap by "
        f"{CLOSE} or more ({total['close'] / max(1, total['lines']):.2%})"
    )
    for name, pages in (("zoo", ours), ("rapidocr", theirs)):
        print(f"{name}: {sum(page['cpu'] for page in pages):.0f} s of CPU, peak {pages[-1]['peak'] / 1e6:.0f} MB")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


def pictures(folder: Path, mirrors: Path | None) -> dict[str, str]:
    """The pages as PNG files, by their names."""
    from PIL import Image

    from zoo.apps.documents import open_document

    from .table_material import read_file

    found = {}
    for line in PAGES.read_text(encoding="utf-8").splitlines():
        repo, commit, path, page = line.split("\t")
        file = folder / f"{len(found)}.png"
        with open_document(read_file(repo, commit, path, mirrors), name=path, dpi=DRAWN_DPI) as document:
            Image.fromarray(document.page(int(page)).image).save(file)
        found[f"{repo}/{path}" + (f" page {page}" if page != "1" else "")] = str(file)
    return found


def run(python: str, name: str, files: Sequence[str]) -> list[dict[str, Any]]:
    """What a program reads on each page, and its CPU seconds and peak memory."""
    command = [python, "-m", "benchmarks.ocr", "--read", name, *files]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT, env=environment, text=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def read(name: str, files: Sequence[str]) -> int:
    import numpy as np
    from PIL import Image

    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    reader = READERS[name]()
    for file in files:
        pixels, begin = np.asarray(Image.open(file).convert("RGB")), time.process_time()
        found = reader(pixels)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"lines": found, "cpu": time.process_time() - begin, "peak": peak}), file=lines, flush=True)
    return 0


def zoo() -> Any:
    from zoo.options import DEFAULTS
    from zoo.tasks.ocr import load_ocr

    ocr = load_ocr("pp-ocrv6-small", "pp-ocrv6-small-det", DEFAULTS.update({"device": "onnx"}))
    return lambda pixels: [[one.text, [list(corner) for corner in one.quad]] for one in ocr.read_page(pixels).lines]


def rapidocr() -> Any:
    more = {"EngineConfig.onnxruntime.intra_op_num_threads": 1, "EngineConfig.onnxruntime.inter_op_num_threads": 1}
    ocr = import_module("rapidocr").RapidOCR(params={"Global.use_cls": False, "Global.text_score": 0.0, **more})

    def read_lines(pixels: Any) -> list[Any]:
        out = ocr(pixels[..., ::-1].copy())
        return [] if out.boxes is None else [[t, box.tolist()] for t, box in zip(out.txts, out.boxes, strict=True) if t]

    return read_lines


READERS = {"zoo": zoo, "rapidocr": rapidocr}


def compare(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, int]:
    """The characters and boxes of the other program's lines that are those of ours."""
    from training.text import distance

    a, b = ([(text.strip(), box_of(quad)) for text, quad in side["lines"]] for side in (ours, theirs))
    pairs = sorted(((overlap(x[1], y[1]), i, j) for i, x in enumerate(a) for j, y in enumerate(b)), reverse=True)
    left, right, wrong, close = {*range(len(a))}, {*range(len(b))}, 0, 0
    for share, i, j in pairs:
        if share >= LEAST_SHARED and i in left and j in right:
            left.remove(i)
            right.remove(j)
            wrong += distance(a[i][0], b[j][0])
            close += share >= CLOSE
    wrong += sum(len(a[i][0]) for i in left) + sum(len(b[j][0]) for j in right)
    characters = sum(len(text) for text, _ in b)
    return {
        "equal": characters - wrong,
        "characters": characters,
        "close": close,
        "lines": len(b),
        "missed": len(right),
    }


def box_of(quad: Sequence[Sequence[float]]) -> Box:
    xs, ys = zip(*quad, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def overlap(a: Box, b: Box) -> float:
    """The area of both over that of either."""
    wide, high = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1))
    both = max(wide, 0) * max(high, 0)
    return both / (sum((c - x) * (d - y) for x, y, c, d in (a, b)) - both or 1)


if __name__ == "__main__":
    sys.exit(main())
