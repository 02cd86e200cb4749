"""Pages that were read, as text, JSON, Markdown, or in the columns of tesseract's TSV."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...images.boxes import Box
from ...tasks.ocr import UNREADABLE, Ocr, OcrLine, OcrPage, OcrWord

PAGE_END = "\f"  # ends each page, as in tesseract's text
TSV_COLUMNS = "level page_num block_num par_num line_num word_num left top width height conf text".split()  # noqa: SIM905
MIN_OVERLAP = 0.5  # share of the shorter line: with less two lines are not below each other
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
    """tesseract's rows and columns: one for each page, block, paragraph, line and word, of levels 1 to 5.

    Lines closely below each other are a block, of one paragraph.  conf: 0 ... 100, -1 in rows without a text.  Boxes
    are level, around the corners of what they hold.
    """
    rows = ["\t".join(TSV_COLUMNS)]
    for page, one in enumerate(pages, 1):
        rows.append(_row([page], (0, 0, one.page.width, one.page.height)))
        for block, lines in enumerate(_blocks(one.page.lines), 1):
            x0, y0, x1, y1 = zip(*map(_box, lines), strict=True)
            box = min(x0), min(y0), max(x1), max(y1)
            rows += [_row([page, block], box), _row([page, block, 1], box)]
            for i, line in enumerate(lines, 1):
                rows.append(_row([page, block, 1, i], _box(line)))
                # A text that has no words, of ink that is no character, is one.
                for j, word in enumerate(line.words or [line], 1):
                    rows.append(_row([page, block, 1, i, j], _box(word), 100 * word.confidence, word.text))
    return "\n".join(rows) + "\n"


def _blocks(lines: Sequence[OcrLine]) -> list[list[OcrLine]]:
    """Lines in reading order, grouped where each is below the last one, and no further away than its height."""
    blocks: list[list[OcrLine]] = []
    for line in lines:
        x0, y0, x1, y1 = _box(line)
        if blocks:
            left, top, right, bottom = _box(blocks[-1][-1])
            overlap = min(right, x1) - max(left, x0)
            is_below = (top + bottom) / 2 < (y0 + y1) / 2 and abs(y0 - bottom) <= min(bottom - top, y1 - y0)
            if is_below and overlap >= MIN_OVERLAP * min(right - left, x1 - x0):
                blocks[-1].append(line)
                continue
        blocks.append([line])
    return blocks


def _box(one: OcrLine | OcrWord) -> Box:
    x, y = zip(*one.quad, strict=True)
    return min(x), min(y), max(x), max(y)


def _row(numbers: Sequence[int], box: Box, conf: float = -1, text: str = "") -> str:
    """numbers: of the page and what lies in it, from 1; those of lower levels are 0."""
    x0, y0, x1, y1 = (round(n) for n in box)
    place = [len(numbers), *numbers, *[0] * (len(TSV_COLUMNS) - 7 - len(numbers)), x0, y0, x1 - x0, y1 - y0]
    return "\t".join([*map(str, place), f"{conf:.6g}", re.sub(r"\s+", " ", text)])


def _escape(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", text)


# Suffix of a file -> what writes it.
OCR_FORMATS: dict[str, Callable[[Sequence[ReadPage]], str]] = {
    ".txt": to_text,
    ".json": to_json,
    ".tsv": to_tsv,
    ".md": to_markdown,
}
