"""PDF: pages drawn and words read by PDFium, in a confined process for each file (`pdf_job`).

Boxes are (x0, y0, x1, y1) in pixels of the drawn page, x to the right and y down.  Shapes: H, W of the page.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, ZooError
from ...guards.confined import Confined, FailedError, Job, StoppedError
from ...guards.images import MAX_SIDE
from ...images import MAX_PIXELS
from ...images.lines import LEVELS, is_blank
from ...optional import import_optional
from ...warning import warn
from .rules import Rules, page_rules
from .text_layer import add_word_doubts
from .word import Word

MAX_DRAWN_PIXELS = 36_000_000  # pixels of a page: A0 at 144 dpi and A4 at 600 have fewer, no model looks at as many
LEAST_DPI = 30  # the resolution of PDF's largest page, 200 x 200 inches, drawn with as many pixels
MAX_CHARACTERS = 200_000  # characters of a page: a full page of print has 5,000
MAX_CONTENT = 64 << 20  # bytes of a page's words
MAX_STOPPED = 3  # pages that take too much, after which the rest of a file is not read
MAX_UNSEEN = 0.5  # the share of words that are not to be seen, above which a blank image is in doubt, not they
LIKE_PAPER = 8  # grey levels by which letters differ from the colour of most pixels around them, at least, to be seen
SUCCESS = "Success"  # PDFium's error message if there is no error

JOB = Job(
    Path(__file__).parent / "pdf_job" / "__init__.py",
    "run",
    "reading PDFs",
    packages=("pypdfium2",),
    extra="pdf",
    seconds=6,
    wall_seconds=30.0,
    memory=384 << 20,
    prestart=True,
)


@dataclass(frozen=True, eq=False)
class PageContent:
    """A page of a PDF as it is read."""

    image: np.ndarray  # (H, W, 3) uint8
    words: list[Word] | None  # None without a text layer
    rules: Rules


class PdfFile:
    """An open PDF file; InputError if it cannot be read."""

    def __init__(
        self, data: bytes, name: str, *, dpi: float, password: str | None = None, max_pixels: int = MAX_PIXELS
    ):
        import_optional("pypdfium2", "PDF", "pdf")
        self.name, self.dpi, self.max_pixels, self._stopped = name, dpi, max_pixels, 0
        self._data, self._password = data, password
        self._process = Confined(JOB, "open", password, data=data)
        (count,) = self._numbers(name, 1, "count")
        self._count = int(count) if 1 <= count < 1 << 31 else 0
        if not self._count:
            self.close()
            raise InputError(f"{name}: a PDF without pages")

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        self._process.close()

    def read(self, number: int) -> PageContent:
        """The content of page `number`, from 1; InputError if it is damaged, or takes too much time or memory."""
        name = f"{self.name}, page {number}"
        if self._stopped >= MAX_STOPPED:
            raise InputError(f"{name}: not read, since {self._stopped} other pages of the file were hostile or damaged")
        width, height, scale = self._size(number, name)
        answer = self._ask(
            name,
            *("read", number, width, height, scale, MAX_CHARACTERS),
            most=MAX_CONTENT + width * height * 3,
            memory=width * height * 3,
        )
        try:
            end = len(answer) - width * height * 3
            found = json.loads(answer[:end])
            image = np.frombuffer(answer, np.uint8, offset=end).reshape(height, width, 3)
            characters, unreadable, off, clipped = (
                int(found.get(key, 0)) for key in ("characters", "unreadable", "off", "clipped")
            )
            listed = found.get("words")
            words = None if listed is None else [Word(text, box, 1.0, angle) for text, box, angle, *_ in listed]
            colours = [None if colour is None else np.array(colour).reshape(3) for *_, colour, _ in listed or ()]
            words = words and add_word_doubts(words, [int(font) for *_, font in listed or ()])
            rules = page_rules(found.get("edges", ()), image)
        except (AttributeError, TypeError, ValueError, RecursionError, ZooError) as e:
            raise InputError(f"{name}: damaged: the process that reads it gives a wrong answer ({e})") from None
        if characters > MAX_CHARACTERS:
            raise InputError(f"{name}: the text layer has {characters} characters, at most {MAX_CHARACTERS} are read")
        if words is None and unreadable:
            warn(f"{name}: the text layer has no Unicode for its letters, and is not used")
        if words is not None and off:
            warn(f"{name}: {off} of {off + len(words)} words are off the page, and are left out")
        if clipped:
            warn(f"{name}: {clipped} letters of the text layer are clipped away, and are left out")
        if words:
            seen = [word for word, colour in zip(words, colours, strict=True) if _is_seen(word, colour, image)]
            unseen = len(words) - len(seen)
            if unseen and (unseen <= MAX_UNSEEN * len(words) or not is_blank(image)):
                warn(f"{name}: {unseen} of {len(words)} words of the text layer are not to be seen, and are left out")
                words = seen or None  # a scan's layer that is another page's
        return PageContent(image, words, rules)

    def _size(self, number: int, name: str) -> tuple[int, int, float]:
        """Width and height of a page's image, and pixels a point: those of the dpi, or fewer for a large page."""
        width, height = self._numbers(name, 2, "size", number)  # in points, of the visible part
        if not (0 < width < math.inf and 0 < height < math.inf):
            raise InputError(f"{name}: the page has no area ({width:g} x {height:g} points)")
        dpi, most = self.dpi, min(self.max_pixels, MAX_DRAWN_PIXELS)
        if (pixels := width * height * (dpi / 72) ** 2) > most:
            dpi = math.floor(dpi * math.sqrt(most / pixels))
        scale = dpi / 72  # rounded first, as PDFium's binding does: 612 points at 150 dpi are 1,275 pixels or 1,276
        W, H = math.ceil(width * scale), math.ceil(height * scale)
        large = f"{name}: {width:g} x {height:g} points at {self.dpi:g} dpi are {pixels:.3g} pixels"
        if dpi < min(self.dpi, LEAST_DPI) or max(W, H) > MAX_SIDE:
            raise InputError(f"{large}: at most {most} are drawn, {MAX_SIDE} a side, and at {LEAST_DPI} dpi or more")
        if dpi < self.dpi:
            warn(f"{large}, more than {most}: it is drawn at {dpi} dpi")
        return W, H, scale

    def _numbers(self, name: str, count: int, *request: Any) -> list[float]:
        answer = self._ask(name, *request, most=100).split()
        try:
            return [float(number) for _, number in zip(range(count), answer, strict=True)]
        except ValueError:
            raise InputError(f"{name}: damaged: the process that reads it gives a wrong answer") from None

    def _ask(self, name: str, *request: Any, most: int, memory: int = 0) -> bytes | bytearray:
        try:
            return self._process.ask(*request, most=most, memory=len(self._data) + memory)
        except FailedError as e:
            if request[0] == "count":
                raise InputError(f"{name}: {_reason(str(e), self._data, self._password)}") from None
            raise InputError(f"{name}: damaged: {e}") from None
        except StoppedError as e:
            self._stopped += 1
            raise InputError(f"{name}: damaged or hostile: PDFium is stopped, since {e}") from None


def _is_seen(word: Word, colour: np.ndarray | None, image: np.ndarray) -> bool:
    """Return False for text on paper of its own colour (3,), or under something of one colour."""
    x0, y0, x1, y1 = word.box
    part = image[max(int(y0), 0) : math.ceil(y1) + 1, max(int(x0), 0) : math.ceil(x1) + 1]
    if not part.size:
        return True
    if colour is not None and all(_is_paper(pixels, colour) for pixels in (part[[0, -1]], part)):
        return False  # though something else is seen there, as dark letters below white ones
    few = part[::3, ::3, 1]  # most words are seen by a ninth of the pixels, in a colour that print rarely lacks
    return int(few.max()) - int(few.min()) >= LEVELS or not is_blank(part)


def _is_paper(pixels: np.ndarray, colour: np.ndarray) -> bool:
    """Return True if the median of pixels (h, w, 3) is a colour (3,), nearly."""
    green, like = pixels[..., 1], colour[1]
    # The median cannot be it unless half of the pixels are on either side: that takes a tenth of the time.
    half = min(np.count_nonzero(green < like + LIKE_PAPER), np.count_nonzero(green > like - LIKE_PAPER))
    return 2 * half >= green.size and bool((np.abs(np.median(pixels, (0, 1)) - colour) < LIKE_PAPER).all())


def _reason(text: str, data: bytes, password: str | None) -> str:
    # Without an error of its own, as for no pages, PDFium repeats the error of an earlier file.
    if b"/Encrypt" not in data and ("assword" in text or "ecurity" in text):
        text = SUCCESS
    if SUCCESS in text:
        return "a PDF without pages, or one that is damaged or cut off"
    if "assword" in text:
        needs = "it needs a password (--password, password=...)"
        return f"the PDF is encrypted, and {needs if password is None else 'the password is wrong'}"
    if "ecurity" in text:
        return "the PDF is encrypted in a way that PDFium does not know"
    return f"no PDF, or one that is damaged or cut off ({text})"
