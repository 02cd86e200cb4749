"""Characters that a reader of single lines confuses, told apart by their place and size in the line's ink.

A reader sees a line brought to its own height: "x" and "X", "-" and "–" may then be the same picture, and a comma whose
tail is a pixel long a point.  Shapes: y, x of a line's image.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...images.lines import is_blank, spans

SMALL = dict(zip("cosuvwxz", "COSUVWXZ", strict=True))  # letters that are alike but for their height
CAPITAL = {capital: small for small, capital in SMALL.items()}
TALL = re.compile(r"[0-9ABD-IK-NPRTYbdfhkl]")  # but Q and J, which may go below the line, and those of SMALL
BELOW = re.compile(r"[^\w\s.%:*+<>=~-]|[gjpqyQJ_]|[^\x00-\x7f]")  # what goes below the line, or may

# Shares of the height of figures and capitals, which is 0.7 of a font's size.
HYPHEN, DASH = 0.55, 0.68  # a hyphen is 0.35 to 0.45 wide, an en dash or a minus 0.7 to 1
FLAT = 0.4  # the most that a dash is high
TAIL, NO_TAIL = 0.14, 0.06  # a comma goes so much below the figures' foot, and a point no more than this
LOW, HIGH = 0.82, 0.9  # a small letter is 0.65 to 0.8 high, blurred edges included
LEAST = 6  # pixels of a figure's height, below which nothing is told apart

NEARLY = 0.7  # of a table's negative numbers
NEGATIVE = re.compile(r"[-–−][0-9.,]+%?$")
# "O" within or at the end of a number, and "l" or "I" at its beginning.
NOUGHT = re.compile(r"(?<=[0-9])[Oo]+(?=[0-9.,%)]|\b)")
ONE = re.compile(r"(?<![^\s($€£–-])[lI](?=[0-9]+([.,][0-9]+)*%?\)?(\s|$))")


class Line(NamedTuple):
    """A line's text, and the boxes (x0, y0, x1, y1) of what stands apart in its ink from the left."""

    text: str
    boxes: list[tuple[int, int, int, int]]

    @property
    def apart(self) -> bool:
        """True if each character stands apart."""
        return len(self.boxes) == len(self.text.replace(" ", ""))

    def tall(self) -> list[tuple[int, int, int, int]]:
        """The boxes of figures and of capitals, if each character stands apart."""
        letters = self.text.replace(" ", "")
        return [box for box, c in zip(self.boxes, letters, strict=True) if TALL.match(c)] if self.apart else []

    def height(self) -> float:
        """The height of figures and capitals in pixels; 0 if it cannot be told."""
        if tall := self.tall():
            return statistics.median(box[3] - box[1] for box in tall)
        if self.boxes and TALL.search(self.text) and not BELOW.search(self.text):
            return max(box[3] for box in self.boxes) - min(box[1] for box in self.boxes)
        return 0.0


def corrected(images: Sequence[np.ndarray], texts: Sequence[str]) -> list[str]:
    """The texts that a reader found in the images (y, x, 3) uint8 of a table's lines, corrected by their ink.

    Told apart are, where each character of a line stands apart, small letters from capitals of the same form and commas
    from points between figures; hyphens from dashes there and at a line's beginning; in a number, letters from figures.
    """
    lines = [Line(text, _boxes(image)) for image, text in zip(images, texts, strict=True)]
    usual = statistics.median([high for line in lines if (high := line.height())] or [0.0])
    return _with_one_sign([_numbers(_corrected(line, usual)) for line in lines])


def _boxes(image: np.ndarray) -> list[tuple[int, int, int, int]]:
    if not image.size or is_blank(image):
        return []
    grey = image.mean(-1)
    contrast = np.abs(grey - np.median(grey))
    ink = contrast > contrast.max() / 2.5
    found = []
    for x0, x1 in spans(ink.any(0)):
        ys = np.flatnonzero(ink[:, x0:x1].any(1))
        found.append((x0, int(ys[0]), x1, int(ys[-1]) + 1))
    return found


def _corrected(line: Line, usual: float) -> str:
    tall, high = line.tall(), line.height() or usual
    if high < LEAST:
        return line.text
    if not line.apart:
        begins_low = bool(line.boxes) and line.text.startswith(("-", "–"))
        return _dash(line.text[0], line.boxes[0], high) + line.text[1:] if begins_low else line.text
    foot = statistics.median(b[3] for b in tall) if tall else None
    letters, boxes = list(line.text), iter(line.boxes)
    for i, letter in enumerate(letters):
        if letter == " ":
            continue
        box = next(boxes)
        share = (box[3] - box[1]) / high
        if letter in "-–":
            letters[i] = _dash(letter, box, high)
        elif letter in CAPITAL and share <= LOW:
            letters[i] = CAPITAL[letter]
        elif letter in SMALL and share > HIGH:
            letters[i] = SMALL[letter]
        elif letter in ".," and foot is not None and _is_between_figures(letters, i):
            below = (box[3] - foot) / high
            letters[i] = "," if below >= TAIL else "." if below <= NO_TAIL else letter
    return "".join(letters)


def _dash(letter: str, box: tuple[int, int, int, int], high: float) -> str:
    x0, y0, x1, y1 = box
    if y1 - y0 > FLAT * high:
        return letter
    wide = (x1 - x0) / high
    return "-" if wide <= HYPHEN else "–" if wide >= DASH else letter


def _is_between_figures(letters: Sequence[str], i: int) -> bool:
    return 0 < i < len(letters) - 1 and letters[i - 1].isdigit() and letters[i + 1].isdigit()


def _numbers(text: str) -> str:
    return ONE.sub("1", NOUGHT.sub(lambda found: "0" * len(found[0]), text))


def _with_one_sign(texts: Sequence[str]) -> list[str]:
    """The texts with the sign that nearly all negative numbers of a table begin with before all of them."""
    signs = Counter(text[0] for text in texts if NEGATIVE.match(text))
    sign, count = signs.most_common(1)[0] if signs else ("", 0)
    if count < NEARLY * signs.total():
        return list(texts)
    return [sign + text[1:] if NEGATIVE.match(text) else text for text in texts]
