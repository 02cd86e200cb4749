"""PP-OCRv6's reader on lines of printed pages, beside RapidOCR: errors of characters."""

from __future__ import annotations

import importlib.util
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import zoo
from zoo.errors import NotFoundError

from .material import PublicFile, read_public
from .measures import count_edits
from .outcome import RATE_LIMIT, Outcome


def measure_ocr(folder: Path) -> Iterator[Outcome]:
    """Scanned lines of English articles of the 1980s (UW3), which lines.json lists; each side gets the same pixels."""
    for package in ("rapidocr", "cv2"):
        if importlib.util.find_spec(package) is None:
            raise NotFoundError(
                f"needs the package {'rapidocr' if package == 'rapidocr' else 'opencv-python-headless'}"
            )
    given = json.loads(Path(__file__).with_name("lines.json").read_text(encoding="utf-8"))
    lines = [_line(folder, given, one) for one in given["lines"]]
    wanted = ["".join(one["text"].split()) for one in given["lines"]]
    read = zoo.load("pp-ocrv6-small").reader
    texts = {"zoo": [read([line])[0].text for line in lines], "RapidOCR": _by_rapidocr(lines)}
    count = sum(map(len, wanted))
    errors = {
        name: sum(count_edits("".join(a.split()), b) for a, b in zip(found, wanted, strict=True)) / count
        for name, found in texts.items()
    }
    yield Outcome(
        f"character errors, {len(lines)} lines, {count} characters",
        errors.pop("zoo"),
        errors,
        ("RapidOCR",),
        RATE_LIMIT,
    )


def _line(folder: Path, given: dict[str, Any], one: dict[str, str]) -> np.ndarray:
    path = one["path"]
    data = read_public(folder, PublicFile(f"lines/{path}", given["repository"], given["commit"], path, one["sha256"]))
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def _by_rapidocr(lines: list[np.ndarray]) -> list[str]:
    from rapidocr import RapidOCR  # pyright: ignore[reportMissingImports]

    read = RapidOCR(params={"Global.log_level": "error"})
    # It expects OpenCV's order of colours; these lines are grey.
    return ["".join(read(line, use_det=False, use_cls=False, use_rec=True).txts) for line in lines]
