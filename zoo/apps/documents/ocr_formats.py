"""Pages that were read, as text, JSON, Markdown, or in the columns of tesseract's TSV."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...tasks.ocr import UNREADABLE, Ocr, OcrPage

PAGE_END = "\f"  # ends each page, as in tesseract's text
TSV_COLUMNS = "level page_num block_num par_num line_num word_num left top width height conf text".split()  # noqa: SIM905
PAGE_LEVEL, LINE_LEVEL, TEXT_LEVEL = 1, 4, 5
_MARKUP = re.compile(r"[\\`*_\[\]~|#<>&]|^(?=[-+]\s)|(?<=^\d)(?=[.)]\s)")


class ReadPage(NamedTuple):
    source: str  # the document's name
    number: int  # counted from 1
    page: OcrPage
    name: str  # for messages: the document's, with the page's number if it has several


def to_text(pages: Sequence[ReadPage]) -> str:
    """A line for each line; several pages have a form feed between them."""
    return f"\n{PAGE_END}".join(one.page.text for one in pages) + "\n"


def to_json(pages: Sequence[ReadPage]) -> str:
    """An array with an object for each page."""
    found = [{"source": one.source, "page": one.number, **Ocr.results.json(one.page)} for one in pages]
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def to_markdown(pages: Sequence[ReadPage]) -> str:
    """A heading for each page where there are several, and its lines as they stand."""
    blocks: list[str] = []
    for one in pages:
        if len(pages) > 1:
            blocks.append(f"## {_escape(one.name)}")
        texts = (UNREADABLE if line.doubt else line.text for line in one.page.lines)
        blocks.append("  \n".join(map(_escape, texts)))
    return "\n\n".join(filter(None, blocks)) + "\n"


def to_tsv(pages: Sequence[ReadPage]) -> str:
    """tesseract's columns: a row for each page (level 1), and for each line one of level 4 and one with its text.

    The text of a line is not cut into words.  conf: 0 ... 100, -1 in rows without a text.
    """
    rows = ["\t".join(TSV_COLUMNS)]
    for number, one in enumerate(pages, 1):
        rows.append(_row(PAGE_LEVEL, number, 0, 0, (0, 0, one.page.width, one.page.height), -1, ""))
        for i, line in enumerate(one.page.lines, 1):
            x, y = zip(*line.quad, strict=True)
            box = min(x), min(y), max(x) - min(x), max(y) - min(y)
            rows.append(_row(LINE_LEVEL, number, i, 0, box, -1, ""))
            rows.append(_row(TEXT_LEVEL, number, i, 1, box, 100 * line.confidence, line.text))
    return "\n".join(rows) + "\n"


def _row(level: int, page: int, line: int, word: int, box: Sequence[float], conf: float, text: str) -> str:
    block = int(level > PAGE_LEVEL)
    left, top, width, height = (str(round(n)) for n in box)
    place = map(str, (level, page, block, block, line, word))
    return "\t".join([*place, left, top, width, height, f"{conf:.6g}", re.sub(r"\s+", " ", text)])


def _escape(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", text)


# Suffix of a file -> what writes it.
OCR_FORMATS: dict[str, Callable[[Sequence[ReadPage]], str]] = {
    ".txt": to_text,
    ".json": to_json,
    ".tsv": to_tsv,
    ".md": to_markdown,
}
