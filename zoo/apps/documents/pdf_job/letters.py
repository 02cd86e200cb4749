"""The words of a PDF's text layer, put together from its letters as they are seen."""

from __future__ import annotations

import ctypes
import itertools
import math
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from pypdfium2 import raw

from .places import WHOLE_PLANE, Axes, Box, clip_of, inverse, matrix_of, times, to_pixels

# PDFium's codes of a hyphen at the end of a line, and the soft hyphen.
DASHES = {0x02: "-", 0xFFFE: "-", 0xAD: "-"}
NO_LETTERS = ("Cc", "Cn")  # control characters and codes without a meaning, which a font's map should not have
MAX_UNREADABLE = 0.5  # the share of characters without Unicode above which a text layer is not used

# In font sizes.  Between two letters of one word there is less space along the line, and less of a step across it.
MAX_LETTER_GAP = 0.9
MAX_LETTER_STEP = 0.6
MAX_LETTER_HEIGHT = 2.0  # a higher box is a mistake of the font
# The same word, this near to itself, is a shadow or a bold face, and so is the same letter, no more than half of its
# width or height away: of two letters in a row the second begins where the first ends.
MAX_SHADOW = 0.2
SQUARE = 32.0  # points: the side of the squares that letters are sorted into, to find those near each other
MAX_DOUBLES = 8  # doubles of a letter in a square that are looked at


class Character(NamedTuple):
    """A character of a text layer."""

    text: str
    box: Box  # in points
    size: float  # the font's, in points
    number: int  # in the text layer, from 0


def words(page: Any, text: Any, count: int, size: tuple[int, int]) -> dict[str, Any]:
    """The words [text, box in pixels, angle, colour, font's number], None without a text layer.

    Beside them how many are off the page, and how many letters are unreadable or clipped away.
    """
    letters = list(_letters(text, count))
    seen = sum(letter is not None for letter in letters)
    unreadable = sum(letter is not None and is_unreadable(letter.text) for letter in letters)
    if not seen or unreadable > MAX_UNREADABLE * seen:
        return {"words": None, "unreadable": unreadable}
    found, off, clips = [], 0, _Clips(text)
    fonts: dict[int | None, int] = {}
    in_pixels, along = to_pixels(page, size)
    for word in filter(None, map(clips.visible_letters, without_doubles(words_of(letters)))):
        (a0, b0, a1, b1), first = zip(*(letter.box for letter in word), strict=True), word[0].number
        x0, y0, x1, y1 = in_pixels((min(a0), min(b0), max(a1), max(b1)))
        if 0 <= (x0 + x1) / 2 <= size[1] and 0 <= (y0 + y1) / 2 <= size[0]:
            one = raw.FPDFText_GetTextObject(text, first)
            mode, angle = raw.FPDFTextObj_GetTextRenderMode(one), _angle(text, first, along)
            if mode == raw.FPDF_TEXTRENDERMODE_INVISIBLE and not angle:
                angle = None  # words that OCR laid over a scan, upright however the scan is tilted
            font = raw.FPDFTextObj_GetFont(one)
            number = fonts.setdefault(ctypes.addressof(font.contents) if font else None, len(fonts))
            colour = _colour(text, first) if mode == raw.FPDF_TEXTRENDERMODE_FILL else None
            found.append([spell(word), [x0, y0, x1, y1], angle, colour, number])
        else:
            off += 1
    return {"words": found, "off": off, "clipped": clips.count}


def _angle(text: Any, i: int, along: Axes) -> float | None:
    """The direction of the text at a character, in degrees clockwise on the page as seen."""
    angle = raw.FPDFText_GetCharAngle(text, i)  # clockwise, on the page before its rotation
    if not 0 <= angle < math.inf:
        return None
    cos, sin, ((ax, ay), (bx, by)) = math.cos(angle), -math.sin(angle), along
    return round(math.degrees(math.atan2(cos * ay + sin * by, cos * ax + sin * bx)), 2)


def _colour(text: Any, i: int) -> list[int] | None:
    """Red, green and blue of a character that is filled and has no outline."""
    parts = [ctypes.c_uint() for _ in range(4)]
    return [part.value for part in parts[:3]] if raw.FPDFText_GetFillColor(text, i, *parts) else None


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
        kind = "" if " " < letter < "\x7f" else unicodedata.category(letter)
        if kind in NO_LETTERS or raw.FPDFText_HasUnicodeMapError(text, i) == 1:
            letter = "\ufffd"
        elif kind in ("Cf", "Cs"):
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


def without_doubles(words: list[list[Character]]) -> Iterator[list[Character]]:
    """The words without letters that are drawn once more at the same place, or nearly so; the last ones stay."""
    if not _overlap(words):
        yield from words
        return
    squares: dict[tuple[str, float, float], list[tuple[int, Character]]] = {}
    doubles: set[int] = set()
    shared: Counter[tuple[int, int]] = Counter()  # of two words: how many letters of one are near those of the other
    for w, word in enumerate(words):
        near = MAX_SHADOW * word[0].size
        for letter in word:
            x0, y0, x1, y1 = letter.box
            x, y = x0 // SQUARE, y0 // SQUARE
            places = home = [(letter.text, x, y)]
            if not (near <= x0 - SQUARE * x <= SQUARE - near and near <= y0 - SQUARE * y <= SQUARE - near):
                places = [(letter.text, a, b) for a in _squares(x0, near) for b in _squares(y0, near)]
            for v, other in (one for place in places if place in squares for one in squares[place][-MAX_DOUBLES:]):
                across, up = abs(other.box[0] - x0), abs(other.box[1] - y0)
                if max(across, up) > near or (v == w and other.box == letter.box):  # two letters of one glyph
                    continue
                shared[v, w] += v != w
                if across <= (x1 - x0) / 2 and up <= (y1 - y0) / 2:
                    doubles.add(other.number)
            squares.setdefault(home[0], []).append((w, letter))
    whole = {v for (v, _), count in shared.items() if count >= len(words[v])}
    for w, word in enumerate(words):
        if w not in whole and (left := [letter for letter in word if letter.number not in doubles]):
            yield left


def _overlap(words: list[list[Character]]) -> bool:
    """Return True if two words, or two like letters of one, begin at nearly the same place: text may be drawn twice."""
    for word in words:
        for a, b in itertools.pairwise(word):
            if a.text == b.text and abs(a.box[0] - b.box[0]) <= (a.box[2] - a.box[0]) / 2 and a.box != b.box:
                return True  # in a line across or up the page, where a look at each letter then tells
    for shift in (0.0, 0.5):  # what a border between two lanes parts is in one lane of the others
        lanes = []
        for (_, (x, y, *_), size, _), *_ in words:
            near = MAX_SHADOW * size
            lanes.append((round(y / max(2 * near, 0.1) + shift), x, y, near))
        lanes.sort()
        for (lane, x, y, near), (other, x1, y1, _) in itertools.pairwise(lanes):
            if lane == other and x1 - x <= near and abs(y1 - y) <= near:
                return True
    return False


def _squares(at: float, near: float) -> list[float]:
    """The numbers of the squares in which there may be something near a place."""
    return list(dict.fromkeys(((at - near) // SQUARE, at // SQUARE, (at + near) // SQUARE)))


class _Clips:
    """Takes the letters away from words that clips hide; `count` is how many."""

    def __init__(self, text: Any):
        self.text, self.count, self.of, self.box = text, 0, None, WHOLE_PLANE

    def visible_letters(self, word: list[Character]) -> list[Character]:
        """The letters of a word that are seen."""
        if all(_holds(self._box(end.number), end.box) for end in (word[0], word[-1])):
            return word
        seen = [one for one in word if _holds(self._box(one.number), one.box)]
        self.count += len(word) - len(seen)
        return seen

    def _box(self, i: int) -> tuple[float, ...]:
        """The box in points around what clips leave of a character's text; remembered for the next one."""
        one = raw.FPDFText_GetTextObject(self.text, i)
        address = ctypes.addressof(one.contents) if one else None
        if address != self.of:
            self.of, self.box = address, WHOLE_PLANE
            if one and raw.FPDFClipPath_CountPaths(raw.FPDFPageObj_GetClipPath(one)) > 0:
                matrix = raw.FS_MATRIX()
                raw.FPDFText_GetMatrix(self.text, i, matrix)
                # The text's own matrix, and the one it has on the page, differ by that of the form it is in.
                inner, outer = inverse(matrix_of(one)), (matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f)
                if inner is not None:
                    self.box = clip_of(one, times(inner, outer))
        return self.box


def _holds(box: tuple[float, ...], letter: Box) -> bool:
    """Return True if the middle of a letter is within a box."""
    x, y = (letter[0] + letter[2]) / 2, (letter[1] + letter[3]) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def is_unreadable(letter: str) -> bool:
    """Return True for a replacement character and for private codes."""
    return letter == "\ufffd" or "\ue000" <= letter <= "\uf8ff" or letter >= "\U000f0000"


def words_of(letters: list[Character | None]) -> list[list[Character]]:
    """Words of adjacent letters."""
    words: list[list[Character]] = []
    before = None
    for letter in letters:
        if letter is not None:
            if before is None or _is_apart(before, letter):
                words.append([])
            words[-1].append(letter)
        before = letter
    return words


def spell(word: list[Character]) -> str:
    """The text of a word; Arabic letters of one glyph are turned around, which PDFium gives last letter first."""
    text = "".join(letter.text for letter in word)
    if text.isascii():
        return text
    glyphs = (list(glyph) for _, glyph in itertools.groupby(word, key=lambda letter: letter.box))
    text = "".join(
        letter.text
        for glyph in glyphs
        for letter in (reversed(glyph) if all(unicodedata.bidirectional(one.text) == "AL" for one in glyph) else glyph)
    )
    return unicodedata.normalize("NFC", text)


def _is_apart(a: Character, b: Character) -> bool:
    """True if two successive letters belong to two words, whatever the direction of the line."""
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1), size = a.box, b.box, a.size
    gaps = max(bx0 - ax1, ax0 - bx1), max(by0 - ay1, ay0 - by1)  # negative: they overlap
    centres = abs((ax0 + ax1 - bx0 - bx1) / 2), abs((ay0 + ay1 - by0 - by1) / 2)
    return max(gaps) > MAX_LETTER_GAP * size or (min(centres) > MAX_LETTER_STEP * size and max(gaps) > 0)
