"""Engines that read the words of a page: RapidOCR (a package) and Tesseract (a program), each behind the same call.

Boxes are (x0, y0, x1, y1) in pixels of the page, x to the right and y down.  Shapes: H, W of the page.
"""

from __future__ import annotations

import csv
import io
import logging
import math
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...checkpoint.installed import is_installed
from ...errors import InputError, UnsupportedError, nearest
from ...ops.on_numpy import threads
from ...optional import import_optional
from ...tasks.auto_reader import AUTO_READER, FIRST_NAME, SECOND_NAME
from ..documents import Word

# A call (page (H, W, 3) uint8) -> its words.
OcrEngine = Callable[[np.ndarray], Sequence[Word]]

SECONDS = 300  # for a page: Tesseract takes a few for an honest one
# Names that stand for a reader of cells, which does not read the other words of a page -> its checkpoint.
READERS = {
    AUTO_READER: AUTO_READER,
    **{name: name for name in (FIRST_NAME, SECOND_NAME)},
    "trocr": "microsoft/trocr-base-printed",
}
NO_OCR = "none"


def reader_and_engine(reader: Any, ocr: Any) -> tuple[Any, Any]:
    """The reader of cells and the engine for whole pages that these options stand for, None for one that is not used.

    reader, ocr: as for `TableExtractor`; InputError if both are given.
    """
    if reader is not None and ocr is not None:
        raise InputError("ocr reads the page, and reader the cells: give one of them")
    if reader is not None and reader != AUTO_READER:
        return reader, None
    name = AUTO_READER if ocr is None else ocr
    if name == AUTO_READER and not is_installed(SECOND_NAME):
        name = FIRST_NAME
    if not isinstance(name, str):
        return None, name
    return READERS.get(name), None if name in (*READERS, NO_OCR) else name


def load_ocr(name: str) -> OcrEngine:
    """The engine with a name of ENGINES; InputError if it is not installed."""
    if name not in ENGINES:
        known = [*READERS, *ENGINES, NO_OCR]
        raise UnsupportedError(f"ocr {name!r} is not known, expected {' or '.join(known)}{nearest(name, known)}")
    return ENGINES[name]()


class RapidOcr:
    """https://github.com/RapidAI/RapidOCR: PaddleOCR's models, which come with its wheel, on ONNX Runtime."""

    def __init__(self) -> None:
        rapidocr = import_optional("rapidocr", "this OCR engine", "ocr")
        logging.getLogger("RapidOCR").setLevel(logging.WARNING)  # it reports every file that it opens
        options = {"EngineConfig.onnxruntime.intra_op_num_threads": threads.count(), "Global.log_level": "warning"}
        self._engine: Any = rapidocr.RapidOCR(params=options)

    def __call__(self, image: np.ndarray) -> list[Word]:
        found = self._engine(np.ascontiguousarray(image[:, :, ::-1]), return_word_box=True)  # it takes OpenCV's order
        words: list[Word] = []
        for line in found.word_results or ():
            angle = _angle([corners for _, _, corners in line])
            for text, score, corners in line:
                if text.strip():
                    x, y = np.array(corners, np.float64).T
                    box = float(x.min()), float(y.min()), float(x.max()), float(y.max())
                    words.append(Word(text, box, min(max(float(score), 0.0), 1.0), angle))
        return words


def _angle(line: Sequence[Any]) -> float | None:
    """The tilt of a line, from the corners of its words (the upper left one first, then clockwise).

    None for a line that is higher than wide: RapidOCR reads it upwards or downwards, without a hint which.
    """
    if not line:
        return None
    first, last = np.array(line[0], np.float64), np.array(line[-1], np.float64)
    x, y = (last[1] + last[2] - first[0] - first[3]) / 2
    return math.degrees(math.atan2(y, x)) if x > abs(y) else None


class Tesseract:
    """https://github.com/tesseract-ocr/tesseract: the program, with the languages installed with it.

    ZOO_TESSERACT_LANG chooses among them, such as deu+eng; the default is eng.
    """

    def __init__(self) -> None:
        program = shutil.which("tesseract")
        if program is None:
            raise InputError("the OCR engine tesseract is not installed: no program of that name is on the PATH")
        self._command = [program, "stdin", "stdout", "-l", os.environ.get("ZOO_TESSERACT_LANG", "eng"), "tsv"]

    def __call__(self, image: np.ndarray) -> list[Word]:
        from PIL import Image

        png = io.BytesIO()
        Image.fromarray(image).save(png, "PNG", compress_level=1)
        environment = os.environ | {"OMP_THREAD_LIMIT": str(threads.count())}
        try:
            done = subprocess.run(
                self._command, input=png.getvalue(), capture_output=True, timeout=SECONDS, env=environment, check=False
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"tesseract took more than {SECONDS} s for a page") from None
        if done.returncode:
            message = " ".join(done.stderr.decode(errors="replace").split())
            raise InputError(f"tesseract failed: {message[-300:]}")
        tsv = io.StringIO(done.stdout.decode(errors="replace"))
        rows = csv.DictReader(tsv, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [word for row in rows if (word := _word(row)) is not None]


def _word(row: dict[str, str]) -> Word | None:
    """The word in a row of Tesseract's output; None for a block, a line, or white space."""
    text = (row.get("text") or "").strip()
    if row.get("level") != "5" or not text:
        return None
    x, y, width, height, confidence = (float(row[name]) for name in ("left", "top", "width", "height", "conf"))
    return Word(
        text, (x, y, x + width, y + height), 0.0 if math.isnan(confidence) else min(max(confidence, 0), 100) / 100
    )


ENGINES: dict[str, Callable[[], OcrEngine]] = {"rapidocr": RapidOcr, "tesseract": Tesseract}
