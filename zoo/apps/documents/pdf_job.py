"""PDFium opens a PDF, draws its pages, reads their texts and lists their lines; the job of a confined process.

How the process is kept in: `guards.child`.
Boxes are (x0, y0, x1, y1): in points of the page, y up, or in pixels of its image, y down, where they are so called.
"""

from __future__ import annotations

import ctypes
import itertools
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

MAX_OBJECTS = 100_000  # of a page that are looked at for lines, those inside of forms too
MAX_POINTS = 300_000  # of paths
MAX_EDGES = 60_000  # of its lines and boxes: a full table of 100 x 30 cells with a box for each has 12,000
MAX_DEPTH = 8  # of forms in forms, and of clips
MAX_CLIP = 24  # points of a clip that is a box
THIN = 3.0  # points: a box that is no wider is a line
DASHED = 0.3  # the share of a dashed line that is drawn, at least

Matrix = tuple[float, float, float, float, float, float]  # as in PDF: x' = a x + c y + e, y' = b x + d y + f
Edge = tuple[float, float, float, float, float, float]  # x0, y0, x1, y1, width, the share that is drawn


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
    found["edges"] = edges(page, (height, width))
    return json.dumps(found).encode() + b"\n", image


def words(page: Any, text: Any, count: int, size: tuple[int, int]) -> dict[str, Any]:
    """The words [text, box in pixels, angle, colour], None without a text layer; how many are off it, or unreadable."""
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
            word = unicodedata.normalize("NFC", word)
            found.append([word, [x0, y0, x1, y1], _angle(text, first, along), _colour(text, first)])
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


def _colour(text: Any, i: int) -> list[int] | None:
    """Red, green and blue of a character that is filled and has no outline."""
    if raw.FPDFTextObj_GetTextRenderMode(raw.FPDFText_GetTextObject(text, i)) != raw.FPDF_TEXTRENDERMODE_FILL:
        return None
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
            yield _spelled(word), (min(x0), min(y0), max(x1), max(y1)), word[0].number
            word = []
        if letter is not None:
            word.append(letter)


def _spelled(word: list[Character]) -> str:
    """The text of a word; Arabic letters of one glyph are turned around, which PDFium gives last letter first."""
    text = "".join(letter.text for letter in word)
    if text.isascii():
        return text
    glyphs = (list(glyph) for _, glyph in itertools.groupby(word, key=lambda letter: letter.box))
    return "".join(
        letter.text
        for glyph in glyphs
        for letter in (reversed(glyph) if all(unicodedata.bidirectional(one.text) == "AL" for one in glyph) else glyph)
    )


def _is_apart(a: Character, b: Character) -> bool:
    """True if two successive letters belong to two words, whatever the direction of the line."""
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1), size = a.box, b.box, a.size
    gaps = max(bx0 - ax1, ax0 - bx1), max(by0 - ay1, ay0 - by1)  # negative: they overlap
    centres = abs((ax0 + ax1 - bx0 - bx1) / 2), abs((ay0 + ay1 - by0 - by1) / 2)
    return max(gaps) > MAX_LETTER_GAP * size or (min(centres) > MAX_LETTER_STEP * size and max(gaps) > 0)


def edges(page: Any, size: tuple[int, int]) -> list[Edge]:
    """The upright lines and sides of boxes of a page, in pixels, whether they are seen or not."""
    to_pixels, along = _to_pixels(page, size)
    scale = max(map(abs, along[0] + along[1]))
    listed = dict.fromkeys(itertools.islice(_edges(page), MAX_EDGES))
    boxes = (
        (to_pixels((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))), width * scale, share)
        for x0, y0, x1, y1, width, share in listed
    )
    return [
        (round(x0, 2), round(y0, 2), round(x1, 2), round(y1, 2), round(width, 2), share)
        for (x0, y0, x1, y1), width, share in boxes
        if all(map(math.isfinite, (x0, y0, x1, y1)))
    ]


def _edges(page: Any) -> Iterator[Edge]:
    """Lines (x0, y0, x1, y1, width, share that is drawn) in points."""
    width, x, y = ctypes.c_float(), ctypes.c_float(), ctypes.c_float()
    mode, stroked = ctypes.c_int(), ctypes.c_int()
    left = MAX_POINTS
    objects = _objects(raw.FPDFPage_CountObjects(page), lambda i: raw.FPDFPage_GetObject(page, i))
    for one, matrix in itertools.islice(objects, MAX_OBJECTS):
        if one is None or not raw.FPDFPath_GetDrawMode(one, mode, stroked) or not (mode.value or stroked.value):
            continue
        own = _times(_matrix(one), matrix)
        wide, share = 0.0, 1.0
        if stroked.value:
            if raw.FPDFPageObj_GetStrokeWidth(one, width):
                wide = width.value * max(abs(own[0]), abs(own[1]))
            share = DASHED if raw.FPDFPageObj_GetDashCount(one) > 0 else 1.0
        clip = None if stroked.value else _clip(one, matrix)
        points: list[tuple[float, float]] = []
        count = min(raw.FPDFPath_CountSegments(one), left)
        left -= count
        for i in range(count + 1):
            segment = raw.FPDFPath_GetPathSegment(one, i) if i < count else None
            begins = segment is None or raw.FPDFPathSegment_GetType(segment) == raw.FPDF_SEGMENT_MOVETO
            if begins:
                yield from _sides(points, wide, share, bool(mode.value), clip)
                points = []
            if segment is not None:
                raw.FPDFPathSegment_GetPoint(segment, x, y)
                points.append(_at(own, x.value, y.value))
                if raw.FPDFPathSegment_GetClose(segment):
                    points.append(points[0])


def _sides(
    points: list[tuple[float, float]], wide: float, share: float, filled: bool, clip: tuple[float, ...] | None
) -> Iterator[Edge]:
    """The upright sides of a polygon in points; of a thin one its middle line."""
    if len(points) < 2:
        return
    if clip is not None:
        points = [(min(max(x, clip[0]), clip[2]), min(max(y, clip[1]), clip[3])) for x, y in points]
    x0, y0 = map(min, zip(*points, strict=True))
    x1, y1 = map(max, zip(*points, strict=True))
    flat = min(x1 - x0, y1 - y0)
    if flat <= THIN and wide <= THIN:
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        yield (x0, y, x1, y, flat + wide, share) if x1 - x0 >= y1 - y0 else (x, y0, x, y1, flat + wide, share)
        return
    for (a, b), (c, d) in itertools.pairwise([*points, points[0]] if filled else points):
        if not min(abs(a - c), abs(b - d)) <= 0.5 < max(abs(a - c), abs(b - d)):
            continue
        if wide <= THIN:
            yield a, b, c, d, wide, share
        else:  # a line as wide as a box
            x, y = (0.0, wide / 2) if abs(b - d) <= 0.5 else (wide / 2, 0.0)
            yield a - x, b - y, c - x, d - y, 0.0, share
            yield a + x, b + y, c + x, d + y, 0.0, share


def _objects(
    count: int, get: Callable[[int], Any], matrix: Matrix = (1, 0, 0, 1, 0, 0), depth: int = 0
) -> Iterator[tuple[Any, Matrix]]:
    """The paths of a page or form with the form's matrix, those of forms inside too; None for other objects."""
    for i in range(count):
        one = get(i)
        kind = raw.FPDFPageObj_GetType(one)
        yield (one if kind == raw.FPDF_PAGEOBJ_PATH else None), matrix
        if kind == raw.FPDF_PAGEOBJ_FORM and depth < MAX_DEPTH:
            inner = _times(_matrix(one), matrix)
            parts = raw.FPDFFormObj_CountObjects(one)
            yield from _objects(parts, lambda k, form=one: raw.FPDFFormObj_GetObject(form, k), inner, depth + 1)


def _clip(one: Any, matrix: Matrix) -> tuple[float, ...]:
    """The box around what an object's clip paths leave of it."""
    clip, x, y = raw.FPDFPageObj_GetClipPath(one), ctypes.c_float(), ctypes.c_float()
    box = (-math.inf, -math.inf, math.inf, math.inf)
    for i in range(min(raw.FPDFClipPath_CountPaths(clip), MAX_DEPTH)):
        points = []
        for k in range(count := raw.FPDFClipPath_CountPathSegments(clip, i)):
            if count > MAX_CLIP:
                break
            raw.FPDFPathSegment_GetPoint(raw.FPDFClipPath_GetPathSegment(clip, i, k), x, y)
            points.append(_at(matrix, x.value, y.value))
        if points:
            (x0, y0), (x1, y1) = map(min, zip(*points, strict=True)), map(max, zip(*points, strict=True))
            box = max(x0, box[0]), max(y0, box[1]), min(x1, box[2]), min(y1, box[3])
    return box


def _matrix(one: Any) -> Matrix:
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(one, matrix)
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _times(first: Matrix, then: Matrix) -> Matrix:
    turn = (*then[:4], 0.0, 0.0)
    return *_at(turn, *first[:2]), *_at(turn, *first[2:4]), *_at(then, *first[4:])


def _at(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f
