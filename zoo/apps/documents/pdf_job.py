"""PDFium opens a PDF, draws its pages and reads their text layers; the job of a confined process (see `guards.child`).

Boxes are (x0, y0, x1, y1): in points of the page, y up, or in pixels of its image, y down, where they are so called.
"""

from __future__ import annotations

import ctypes
import json
import math
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw

Box = tuple[float, float, float, float]

# PDFium's codes of a hyphen at the end of a line, and the soft hyphen.
DASHES = {0x02: "-", 0xFFFE: "-", 0xAD: "-"}
MAX_UNREADABLE = 0.5  # the share of characters without Unicode above which a text layer is not used

# In font sizes.  Between two letters of one word there is less space along the line, and less of a step across it.
MAX_LETTER_GAP = 0.9
MAX_LETTER_STEP = 0.6
MAX_LETTER_HEIGHT = 2.0  # a higher box is a mistake of the font


class Character(NamedTuple):
    """A character of a text layer."""

    text: str
    box: Box  # in points
    size: float  # of the font, in points
    number: int  # in the text layer, from 0


_document: Any = None


def prepare() -> None:
    """Nothing: PDFium is ready once it is imported."""


def run(request: str, *arguments: Any) -> bytes | tuple[bytes, bytearray]:
    """Answer "open" (password, data), "count" (), "size" (page), or "read" (page, W, H, scale, most characters)."""
    global _document
    if request == "open":
        password, data = arguments
        _document = pypdfium2.PdfDocument((ctypes.c_ubyte * len(data)).from_buffer(data), password=password)
        return b""
    if request == "count":
        return b"%d" % len(_document)
    page = _document[arguments[0] - 1]
    try:
        return b"%r %r" % page.get_size() if request == "size" else read(page, *arguments[1:])
    finally:
        page.close()


def read(page: Any, width: int, height: int, scale: float, most: int) -> tuple[bytes, bytearray]:
    """The page's content as JSON, on a line of its own, and its image (height, width, 3)."""
    image = bytearray(width * height * 3)

    def bitmap(W: int, H: int, format: int, rev_byteorder: bool) -> Any:
        if (width, height) != (W, H):
            raise ValueError(f"an image of {(W, H)}, expected {(width, height)}")
        buffer = (ctypes.c_ubyte * len(image)).from_buffer(image)
        return pypdfium2.PdfBitmap.new_native(W, H, format, rev_byteorder=rev_byteorder, buffer=buffer)

    page.render(scale=scale, rev_byteorder=True, bitmap_maker=bitmap).close()
    text = page.get_textpage()
    try:
        count = text.count_chars()
        found = {"characters": count} if count > most else words(page, text, count, (height, width))
    finally:
        text.close()
    return json.dumps(found).encode() + b"\n", image


def words(page: Any, text: Any, count: int, size: tuple[int, int]) -> dict[str, Any]:
    """The words [text, box in pixels, angle], None without a text layer; how many are off the page, or unreadable."""
    letters = list(_letters(text, count))
    seen = sum(letter is not None for letter in letters)
    unreadable = sum(letter is not None and letter.text == "\ufffd" for letter in letters)
    if not seen or unreadable > MAX_UNREADABLE * seen:
        return {"words": None, "unreadable": unreadable}
    found, off = [], 0
    to_pixels, along = _to_pixels(page, size)
    for word, box, first in _joined(letters):
        x0, y0, x1, y1 = to_pixels(box)
        if 0 <= (x0 + x1) / 2 <= size[1] and 0 <= (y0 + y1) / 2 <= size[0]:
            found.append([unicodedata.normalize("NFC", word), [x0, y0, x1, y1], _angle(text, first, along)])
        else:
            off += 1
    return {"words": found, "off": off}


Axes = tuple[tuple[float, float], tuple[float, float]]


def _angle(text: Any, i: int, along: Axes) -> float | None:
    """The direction of the text at a character, in degrees clockwise on the page as seen."""
    angle = raw.FPDFText_GetCharAngle(text, i)  # clockwise, on the page before its rotation
    if not 0 <= angle < math.inf:
        return None
    cos, sin, ((ax, ay), (bx, by)) = math.cos(angle), -math.sin(angle), along
    return round(math.degrees(math.atan2(cos * ay + sin * by, cos * ax + sin * bx)), 2)


def _letters(text: Any, count: int) -> Iterator[Character | None]:
    """Each visible character; None between words."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    loose, matrix, high = raw.FS_RECTF(), raw.FS_MATRIX(), 0
    for i in range(count):
        code = raw.FPDFText_GetUnicode(text, i)
        if 0xD800 <= code < 0xDC00:  # the first half of a pair
            high = code
            continue
        if 0xDC00 <= code < 0xE000:
            code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00) if high else 0xFFFD
        high = 0
        letter = DASHES.get(code) or chr(code)
        if letter.isspace() or (raw.FPDFText_IsGenerated(text, i) == 1 and code not in DASHES):
            yield None
            continue
        if code == 0 or raw.FPDFText_HasUnicodeMapError(text, i) == 1:
            letter = "\ufffd"
        elif unicodedata.category(letter) in ("Cc", "Cf", "Cs"):
            continue
        if not raw.FPDFText_GetCharBox(text, i, left, right, bottom, top):
            continue
        x0, y0, x1, y1 = left.value, bottom.value, right.value, top.value
        size = raw.FPDFText_GetFontSize(text, i)
        if raw.FPDFText_GetMatrix(text, i, matrix):  # many programs set size 1 and scale the text
            size *= math.sqrt(abs(matrix.a * matrix.d - matrix.b * matrix.c))
        if raw.FPDFText_GetLooseCharBox(text, i, loose):
            # The loose box has the height of the line; that of a dash alone is too flat to belong to a row.
            a0, b0, a1, b1 = loose.left, loose.bottom, loose.right, loose.top
            if (
                a0 <= x0 <= x1 <= a1
                and b0 <= y0 <= y1 <= b1
                and min(a1 - a0, b1 - b0) < MAX_LETTER_HEIGHT * max(size, 1)
            ):
                x0, y0, x1, y1 = a0, b0, a1, b1
        if all(map(math.isfinite, (x0, y0, x1, y1, size))):
            yield Character(letter, (x0, y0, max(x0, x1), max(y0, y1)), max(size, y1 - y0 if size <= 1 else 0), i)


def _to_pixels(page: Any, size: tuple[int, int]) -> tuple[Callable[[Box], Box], Axes]:
    """A function from a box in points to one in pixels, and the directions of the page's axes on the image.

    It applies the page's crop box and rotation.
    """
    H, W = size
    fine = 1 << 10  # steps a pixel, since PDFium returns whole numbers

    def at(x: float, y: float) -> tuple[float, float]:
        px, py = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(page, 0, 0, W * fine, H * fine, 0, x, y, px, py)
        return px.value / fine, py.value / fine

    x, y = at(0, 0)
    (ax, ay), (bx, by) = (((px - x) / 1000, (py - y) / 1000) for px, py in (at(1000, 0), at(0, 1000)))  # it is affine

    def to_pixels(box: Box) -> Box:
        (x0, y0), (x1, y1) = ((px * ax + py * bx + x, px * ay + py * by + y) for px, py in (box[:2], box[2:]))
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)

    return to_pixels, ((ax, ay), (bx, by))


def _joined(letters: list[Character | None]) -> Iterator[tuple[str, Box, int]]:
    """Words of adjacent letters: (text, box in points, number of the first character)."""
    word: list[Character] = []
    for letter in [*letters, None]:
        if word and (letter is None or _is_apart(word[-1], letter)):
            x0, y0, x1, y1 = zip(*(one.box for one in word), strict=True)
            yield "".join(one.text for one in word), (min(x0), min(y0), max(x1), max(y1)), word[0].number
            word = []
        if letter is not None:
            word.append(letter)


def _is_apart(a: Character, b: Character) -> bool:
    """True if two successive letters belong to two words, whatever the direction of the line."""
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1), size = a.box, b.box, a.size
    gaps = max(bx0 - ax1, ax0 - bx1), max(by0 - ay1, ay0 - by1)  # negative: they overlap
    centres = abs((ax0 + ax1 - bx0 - bx1) / 2), abs((ay0 + ay1 - by0 - by1) / 2)
    return max(gaps) > MAX_LETTER_GAP * size or (min(centres) > MAX_LETTER_STEP * size and max(gaps) > 0)
