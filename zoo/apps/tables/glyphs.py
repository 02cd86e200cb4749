"""Characters that a reader of single lines confuses, told apart by their place and size in the line's ink.

A reader sees a line brought to its own height: "x" and "X", "-" and "–" may then be the same picture, and a comma whose
tail is a pixel long a point.  Shapes: y, x of a line's image.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...images.lines import is_blank, spans
from .context import agreed

SMALL = dict(zip("cosuvwxz", "COSUVWXZ", strict=True))  # letters that are alike but for their height
CAPITAL = {capital: small for small, capital in SMALL.items()}
# Of any form, capitals among small letters that are no higher than these: "yEs".
AMONG_SMALL = CAPITAL | dict(zip("AEMNR", "aemnr", strict=True))
TALL = re.compile(r"[0-9ABD-IK-NPRTYbdfhkl]")  # but Q and J, which may go below the line, and those of SMALL
BELOW = re.compile(r"[^\w\s.%:*+<>=~-]|[gjpqyQJ_]|[^\x00-\x7f]")  # what goes below the line, or may

# Shares of the height of figures and capitals, which is 0.7 of a font's size.
HYPHEN, DASH = 0.55, 0.68  # a hyphen is 0.35 to 0.45 wide, an en dash or a minus 0.7 to 1
LONG_DASH = 1.1  # an em dash is 1.4
WIDE_DASHES = ("–", "−", "—")
FLAT = 0.4  # the most that a dash is high
STROKE, THIN = 2, 0.25  # pixels, and a share: the most that one stroke is high
LYING, NARROWEST, WIDEST = 1.5, 0.25, 1.6  # so many times wider than high is a dash, and as wide as these
TAIL, NO_TAIL = 0.14, 0.06  # a comma goes so much below the figures' foot, and a point no more than this
USUAL_CASE = re.compile(r"^([^A-Z]*|[^a-z]*|[^A-Za-z]*[A-Z][^A-Z]*)$")  # word, WORD and Word
LOW, HIGH = 0.82, 0.9  # a small letter is 0.65 to 0.8 high, blurred edges included
LOWER = 0.17  # small letters begin so much below capitals
LEVEL = re.compile("[acegm-suvw-z]+$")  # letters that begin at one height
NARROW, WIDE = re.compile(r"[fijlrtI1.,:;'|()\[\]-]"), re.compile(r"[mwMW%@]")  # 0.6 and 1.5 of other letters' width
ASCENDER = 0.94  # of the height of "d" or "l", in the middle of fonts
SPREAD = 0.75  # of a letter's width: what is so near its middle may be its ink
CLEAR = 1.3  # times the widest gap between letters: the least between words
ALIKE = 0.85  # of the usual height of figures: what is lower may be a raised one
LEAST = 6  # pixels of a figure's height, below which nothing is told apart


Ink = tuple[int, int, int, int]  # x0, y0, x1, y1 of what stands apart


class Line(NamedTuple):
    """A line's text, the boxes of what stands apart in its ink, and the row where the ink of each column begins."""

    text: str
    boxes: list[Ink]
    tops: np.ndarray

    def words(self) -> list[tuple[str, list[Ink]]]:
        """The line's words, each with its boxes, parted at the line's widest gaps; empty if these are not clear."""
        texts = self.text.split()
        gaps = [b[0] - a[2] for a, b in pairwise(self.boxes)]
        widest = sorted(range(len(gaps)), key=lambda i: -gaps[i])
        inner, between = widest[len(texts) - 1 :], widest[: len(texts) - 1]
        if not texts or len(gaps) < len(texts) - 1 or not self.boxes:
            return []
        if inner and between and gaps[between[-1]] < CLEAR * gaps[inner[0]]:
            return []
        ends = [0, *sorted(i + 1 for i in between), len(self.boxes)]
        return [(text, self.boxes[a:b]) for text, (a, b) in zip(texts, pairwise(ends), strict=True)]

    def tall(self) -> tuple[list[Ink], float]:
        """The boxes of figures and capitals in words of which each character stands apart, or of "d", "l", ...

        The number is the share of figures' height in that of these boxes.
        """
        apart = [(text, boxes) for text, boxes in self.words() if len(text) == len(boxes)]
        found = [(c, box) for text, boxes in apart for c, box in zip(text, boxes, strict=True) if TALL.match(c)]
        capitals = [box for c, box in found if not c.islower()]
        return (capitals, 1.0) if capitals else ([box for _, box in found], ASCENDER)

    def height(self) -> float:
        """The height of figures and capitals in pixels; 0 if it cannot be told."""
        boxes, share = self.tall()
        if boxes:
            return share * statistics.median(box[3] - box[1] for box in boxes)
        if self.boxes and TALL.search(self.text) and not BELOW.search(self.text):
            return max(box[3] for box in self.boxes) - min(box[1] for box in self.boxes)
        return 0.0


def corrected(images: Sequence[np.ndarray], texts: Sequence[str]) -> list[str]:
    """The texts that a reader found in the images (y, x, 3) uint8 of a table's lines, corrected by their ink.

    Told apart are, where each character of a word stands apart, small letters from capitals of the same form and commas
    from points between figures; hyphens from dashes there and at a line's beginning; capitals among small letters where
    the word's ink is low; and what `context.agreed` tells apart by the text.
    A line of one stroke that lies is a dash, whatever the reader saw in so little ink, and its width says which.
    """
    lines = [Line(text, *_ink(image)) for image, text in zip(images, texts, strict=True)]
    usual = statistics.median([high for line in lines if (high := line.height())] or [0.0])
    return agreed([_corrected(line, usual) for line in lines])


def _ink(image: np.ndarray) -> tuple[list[Ink], np.ndarray]:
    """What stands apart in the ink of an image (y, x, 3), and the row (x,) where each column's ink begins, or y."""
    if not image.size or is_blank(image):
        return [], np.full(image.shape[1], len(image))
    grey = image.mean(-1)
    contrast = np.abs(grey - np.median(grey))
    ink = contrast > contrast.max() / 2.5
    found = []
    for x0, x1 in spans(ink.any(0)):
        ys = np.flatnonzero(ink[:, x0:x1].any(1))
        found.append((x0, int(ys[0]), x1, int(ys[-1]) + 1))
    return found, np.where(ink.any(0), ink.argmax(0), len(ink))


def _corrected(line: Line, usual: float) -> str:
    if len(line.boxes) == 1 and _is_dash(line.boxes[0], usual):
        return _lone_dash(line.text, line.boxes[0], usual)
    (tall, _), own = line.tall(), line.height()
    high = own or usual
    if high < LEAST:
        return line.text
    # If figures are low, a raised one alone may stand apart.
    apart = len(line.boxes) == len("".join(line.text.split())) or own > ALIKE * usual
    foot = statistics.median(box[3] for box in tall) if tall else None
    found = [
        _by_its_characters(word, boxes, high, foot)
        if apart and len(word) == len(boxes)
        else _by_its_places(word, boxes, line.tops, high)
        for word, boxes in line.words()
    ]
    if found and not apart and line.text[0] in "-–":
        found[0] = _dash(line.text[0], line.boxes[0], high) + found[0][1:]
    rest = iter(found or line.text.split())
    return re.sub(r"\S+", lambda _: next(rest), line.text)


def _by_its_characters(word: str, boxes: Sequence[Ink], high: float, foot: float | None) -> str:
    """A word corrected by the box of each character."""
    letters = list(word)
    for i, (letter, box) in enumerate(zip(word, boxes, strict=True)):
        share = (box[3] - box[1]) / high
        if letter in "-–":
            letters[i] = _dash(letter, box, high)
        elif share <= LOW and (letter in CAPITAL or (letter in AMONG_SMALL and _is_among_small(word, i))):
            letters[i] = AMONG_SMALL[letter]
        elif letter in SMALL and share > HIGH:
            letters[i] = SMALL[letter]
        elif letter in ".," and foot is not None and _is_between_figures(letters, i):
            below = (box[3] - foot) / high
            letters[i] = "," if below >= TAIL else "." if below <= NO_TAIL else letter
    corrected = "".join(letters)
    return word if USUAL_CASE.search(word) and not USUAL_CASE.search(corrected) else corrected


def _by_its_places(word: str, boxes: Sequence[Ink], tops: np.ndarray, high: float) -> str:
    """A word whose characters touch, corrected by the ink around the places where they may be.

    A capital among small letters is small if all ink within a letter's width begins lower than the word's tall letters,
    or, if there are none, no higher than the others.
    """
    places = [i for i, c in enumerate(word) if c in AMONG_SMALL and _is_among_small(word, i)]
    letters, left, right = list(word), boxes[0][0], boxes[-1][2]
    for i in places:
        widths = [0.6 if NARROW.match(c) else 1.5 if WIDE.match(c) else 1.0 for c in word]
        scale = (right - left) / sum(widths)
        middle = left + scale * (sum(widths[:i]) + widths[i] / 2)
        a, b = max(left, round(middle - SPREAD * scale)), min(right, round(middle + SPREAD * scale) + 1)
        highest, others = tops[a:b].min(), np.concatenate([tops[left:a], tops[b:right]])
        if TALL.search(word[:i] + word[i + 1 :]):
            low = highest - tops[left:right].min() >= LOWER * high
        else:
            low = bool(LEVEL.match(word.lower())) and others.size > 0 and np.median(others) - highest <= LOWER * high
        letters[i] = AMONG_SMALL[word[i]] if low else word[i]
    return "".join(letters)


def _is_among_small(word: str, i: int) -> bool:
    return i > 0 and word[i - 1].islower() and (i + 1 == len(word) or word[i + 1].islower())


def _is_dash(box: Ink, high: float) -> bool:
    """Return True for one stroke that lies, as wide as a dash; the two of "=" are higher."""
    x0, y0, x1, y1 = box
    is_flat = y1 - y0 <= max(STROKE, THIN * high) and LYING * (y1 - y0) <= x1 - x0
    return is_flat and NARROWEST * high <= x1 - x0 <= WIDEST * high


def _dash(letter: str, box: tuple[int, int, int, int], high: float) -> str:
    x0, y0, x1, y1 = box
    if y1 - y0 > FLAT * high:
        return letter
    wide = (x1 - x0) / high
    return "-" if wide <= HYPHEN else "–" if wide >= DASH else letter


def _lone_dash(text: str, box: Ink, high: float) -> str:
    """A line of one dash; a minus is as wide as an en dash, and stays what it was read as."""
    wide = (box[2] - box[0]) / high
    if wide <= HYPHEN or (wide < DASH and text not in WIDE_DASHES):
        return "-"
    return "—" if wide >= LONG_DASH else "−" if text == "−" else "–"


def _is_between_figures(letters: Sequence[str], i: int) -> bool:
    return 0 < i < len(letters) - 1 and letters[i - 1].isdigit() and letters[i + 1].isdigit()
