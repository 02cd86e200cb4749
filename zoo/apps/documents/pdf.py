"""PDF: pages rendered by PDFium, words from the text layer.

PDFium is not thread-safe: all calls are made under one lock.  Boxes are (x0, y0, x1, y1) in pixels of the rendered
page, x to the right and y down.  Shapes: H, W of the page.
"""

from __future__ import annotations

import ctypes
import math
import threading
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...images import MAX_PIXELS
from ...images.boxes import Box
from ...optional import optional
from ...warning import warn
from .word import Word

MAX_CHARACTERS = 200_000  # of a page: a full page of print has 5,000
# PDFium's codes of a hyphen at the end of a line, and the soft hyphen.
DASHES = {0x02: "-", 0xFFFE: "-", 0xAD: "-"}
SUCCESS = "Success"  # PDFium's error message if there is no error
MAX_UNREADABLE = 0.5  # the share of characters without Unicode above which a text layer is not used

# In font sizes.  Between two letters of one word there is less space along the line, and less of a step across it.
MAX_LETTER_GAP = 0.9
MAX_LETTER_STEP = 0.6
MAX_LETTER_HEIGHT = 2.0  # a higher box is a mistake of the font

_lock = threading.RLock()


class Character(NamedTuple):
    """A character of a text layer."""

    text: str
    box: Box  # in the page's points
    size: float  # of the font, in points
    number: int  # in the text layer, from 0


class PdfFile:
    """An open PDF file; InputError if it cannot be read."""

    def __init__(
        self, data: bytes, name: str, *, dpi: float, password: str | None = None, max_pixels: int = MAX_PIXELS
    ):
        self.name, self.dpi, self.max_pixels, self._pdfium = (
            name,
            dpi,
            max_pixels,
            optional("pypdfium2", "PDF", "zoo[pdf]"),
        )
        with _lock:
            try:
                self._pdf = self._pdfium.PdfDocument(data, password=password)
            except self._pdfium.PdfiumError as e:
                raise InputError(f"{name}: {_reason(e, data, password)}") from None
            self._count = len(self._pdf)
            if self._count < 1:
                self._pdf.close()
                raise InputError(f"{name}: a PDF without pages")

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        with _lock:
            self._pdf.close()

    def read(self, number: int) -> tuple[np.ndarray, list[Word] | None]:
        """The image (H, W, 3) uint8 of page `number`, from 1, and its words; None without a text layer."""
        name = f"{self.name}, page {number}"
        with _lock:
            page = text = None
            try:
                page = self._pdf[number - 1]
                image = self._image(page, name)
                text = page.get_textpage()
                words = self._words(page, text, image.shape[:2], name)
            except self._pdfium.PdfiumError as e:
                raise InputError(f"{name}: damaged: {e}") from None
            finally:
                for one in (text, page):
                    if one is not None:
                        one.close()
        return image, words

    def _image(self, page: Any, name: str) -> np.ndarray:
        width, height = page.get_size()  # in points, of the visible part: the crop box, rotated
        if not (0 < width < math.inf and 0 < height < math.inf):
            raise InputError(f"{name}: the page has no area ({width:g} x {height:g} points)")
        scale = self.dpi / 72
        pixels = math.ceil(width * scale) * math.ceil(height * scale)
        if pixels > self.max_pixels:
            most = math.floor(self.dpi * math.sqrt(self.max_pixels / pixels))
            raise InputError(
                f"{name}: {width:g} x {height:g} points at {self.dpi:g} dpi are {pixels} pixels, at most "
                f"{self.max_pixels} are drawn: a dpi of {most} would do"
            )
        bitmap = page.render(scale=scale, rev_byteorder=True)
        try:
            image = bitmap.to_numpy()
            image = np.repeat(image[..., None], 3, 2) if image.ndim == 2 else image[..., :3]
            return np.array(image, np.uint8, order="C")  # the bitmap's memory is PDFium's
        finally:
            bitmap.close()

    def _words(self, page: Any, text: Any, size: tuple[int, int], name: str) -> list[Word] | None:
        count = text.count_chars()
        if count > MAX_CHARACTERS:
            raise InputError(f"{name}: the text layer has {count} characters, at most {MAX_CHARACTERS} are read")
        letters = list(self._letters(text, count))
        if not any(letter is not None for letter in letters):
            return None
        unreadable = sum(letter is not None and letter.text == "\ufffd" for letter in letters)
        if unreadable > MAX_UNREADABLE * sum(letter is not None for letter in letters):
            warn(f"{name}: the text layer has no Unicode for its letters, and is not used")
            return None
        found, off = [], 0
        to_pixels, along = self._to_pixels(page, size)
        for word, box, first in _joined(letters):
            x0, y0, x1, y1 = to_pixels(box)
            if 0 <= (x0 + x1) / 2 <= size[1] and 0 <= (y0 + y1) / 2 <= size[0]:
                angle = self._angle(text, first, along)
                found.append(Word(unicodedata.normalize("NFC", word), (x0, y0, x1, y1), 1.0, angle))
            else:
                off += 1
        if off:
            warn(f"{name}: {off} of {off + len(found)} words are off the page, and are left out")
        return found

    def _angle(self, text: Any, i: int, along: np.ndarray) -> float | None:
        """The direction of the text at a character, in degrees clockwise on the page as seen."""
        angle = self._pdfium.raw.FPDFText_GetCharAngle(text, i)  # clockwise, on the page before its rotation
        if not 0 <= angle < math.inf:
            return None
        x, y = (math.cos(angle), -math.sin(angle)) @ along
        return round(math.degrees(math.atan2(y, x)), 2)

    def _letters(self, text: Any, count: int) -> Iterator[Character | None]:
        """Each visible character; None between words."""
        raw = self._pdfium.raw
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

    def _to_pixels(self, page: Any, size: tuple[int, int]) -> tuple[Callable[[Box], Box], np.ndarray]:
        """A function from a box in points to one in pixels, and the directions (2, 2) of the page's axes on the image.

        It applies the page's crop box and rotation.
        """
        H, W = size
        fine = 1 << 10  # steps a pixel, since PDFium returns whole numbers

        def at(x: float, y: float) -> np.ndarray:
            px, py = ctypes.c_int(), ctypes.c_int()
            self._pdfium.raw.FPDF_PageToDevice(page, 0, 0, W * fine, H * fine, 0, x, y, px, py)
            return np.array([px.value, py.value], np.float64) / fine

        origin = at(0, 0)
        along = np.stack([at(1000, 0) - origin, at(0, 1000) - origin]) / 1000  # the map is affine

        def to_pixels(box: Box) -> Box:
            corners = np.array([box[:2], box[2:]]) @ along + origin
            (x0, y0), (x1, y1) = corners.min(0).tolist(), corners.max(0).tolist()
            return x0, y0, x1, y1

        return to_pixels, along


def _joined(letters: list[Character | None]) -> Iterator[tuple[str, Box, int]]:
    """Words of adjacent letters: (text, box in points, number of the first character)."""
    word: list[Character] = []
    for letter in [*letters, None]:
        if word and (letter is None or _is_apart(word[-1], letter)):
            boxes = np.array([one.box for one in word])
            x0, y0, x1, y1 = (*boxes[:, :2].min(0).tolist(), *boxes[:, 2:].max(0).tolist())
            yield "".join(one.text for one in word), (x0, y0, x1, y1), word[0].number
            word = []
        if letter is not None:
            word.append(letter)


def _is_apart(a: Character, b: Character) -> bool:
    """True if two successive letters belong to two words, whatever the direction of the line."""
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1), size = a.box, b.box, a.size
    gaps = max(bx0 - ax1, ax0 - bx1), max(by0 - ay1, ay0 - by1)  # negative: they overlap
    centres = abs((ax0 + ax1 - bx0 - bx1) / 2), abs((ay0 + ay1 - by0 - by1) / 2)
    return max(gaps) > MAX_LETTER_GAP * size or (min(centres) > MAX_LETTER_STEP * size and max(gaps) > 0)


def _reason(error: Exception, data: bytes, password: str | None) -> str:
    text = str(error)
    # Without an error of its own, as for no pages, PDFium repeats the error of an earlier file.
    if b"/Encrypt" not in data and ("assword" in text or "ecurity" in text):
        text = SUCCESS
    if SUCCESS in text:
        return "a PDF without pages, or one that is damaged or cut off"
    if "assword" in text:
        return "the PDF is encrypted, and " + ("it needs a password" if password is None else "the password is wrong")
    if "ecurity" in text:
        return "the PDF is encrypted in a way that PDFium does not know"
    return f"no PDF, or one that is damaged or cut off ({text})"
