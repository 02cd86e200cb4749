"""This module turns rendered pages into training examples: pages and crops, tables, and lines of text."""

import random
from typing import Any

import numpy as np
from PIL import Image

from training import text
from training.lines import HEIGHT, WIDTH
from training.lines import Line as ReaderLine
from training.tables import COLUMN, HEADER, PROJECTED, ROW, SPAN, TABLE
from training.typeset.cache import Sheet
from training.typeset.marks import Line, boxes
from training.typeset.scans import paper_of, scan, turned

COLUMNS, ROWS = 12, 25  # what the structure model has queries for
KNOWN = set(text.CHARACTERS)
_SAID = str.maketrans({"μ": "µ", "‑": "-", "‘": "’", "\xa0": " ", "\u202f": " "})


def cut(image: Image.Image, box: tuple[float, ...]) -> Image.Image:
    """Return a part of a picture, filled up with paper where it goes beyond the picture."""
    x0, y0, x1, y1 = (round(v) for v in box)
    out = Image.new("L", (max(1, x1 - x0), max(1, y1 - y0)), paper_of(image))
    out.paste(
        image.crop((max(0, x0), max(0, y0), min(image.width, x1), min(image.height, y1))), (max(0, -x0), max(0, -y0))
    )
    return out


def table_boxes(sheet: Sheet) -> np.ndarray:
    """Return the tables' boxes, (n, 4): x0 y0 x1 y1 in pixels."""
    return np.array([(t["X"][0], t["Y"][0], t["X"][-1], t["Y"][-1]) for t in sheet.tables], np.float32).reshape(-1, 4)


def seen(sheet: Sheet, rng: random.Random, how: str | None = None) -> tuple[Image.Image, np.ndarray]:
    """Return a picture and the boxes of its tables.

    It shows a page (how="page"), a table that fills it ("crop"), or by chance one of these or a part of a page.
    """
    truth = table_boxes(sheet)
    if how == "crop" or (how is None and len(truth) and rng.random() < 0.45):
        box = _around(truth, rng.randrange(len(truth)), rng)
    else:
        box = (0.0, 0.0, float(sheet.image.width), float(sheet.image.height))
        if how is None and rng.random() < 0.25:
            box = _part(box, truth, rng)
    image = cut(sheet.image, box)
    inside = truth - np.array([*box[:2]] * 2, np.float32)
    W, H = image.size
    middle = (inside[:, :2] + inside[:, 2:]) / 2
    inside = inside[((middle > 0) & (middle < [W, H])).all(1)]
    if max(image.size) > 1100:
        part = 1100 / max(image.size)
        image = image.resize((max(1, round(W * part)), max(1, round(H * part))), Image.Resampling.BILINEAR)
        inside = inside * (np.array([*image.size] * 2) / np.array([W, H] * 2)).astype(np.float32)
    if rng.random() < 0.2:
        image, inside = turned(image, inside, rng.uniform(-1.2, 1.2))
    return scan(image, rng), inside


def _around(truth: np.ndarray, i: int, rng: random.Random) -> tuple[float, ...]:
    """Return a box around a table, tight or with a margin, with nothing of another table in it."""
    x0, y0, x1, y1 = truth[i].tolist()
    side = max(x1 - x0, y1 - y0)
    most = rng.choice([0.0, 0.01, 0.01, 0.03, 0.03, 0.06, 0.15, 0.4])
    share = [most * rng.random() if rng.random() < 0.5 else most for _ in range(4)]
    box = np.array([x0 - share[0] * side, y0 - share[1] * side, x1 + share[2] * side, y1 + share[3] * side])
    box += np.array([-1, -1, 1, 1]) * rng.uniform(0, 4)
    for j, other in enumerate(truth):
        if j != i and (box[:2] < other[2:]).all() and (box[2:] > other[:2]).all():
            return x0 - 2, y0 - 2, x1 + 2, y1 + 2
    return tuple(box.tolist())


def _part(whole: tuple[float, ...], truth: np.ndarray, rng: random.Random) -> tuple[float, ...]:
    """Return the box of a part of the page that cuts no table, or of the page with a wide margin."""
    _, _, W, H = whole
    if rng.random() < 0.3:
        m = rng.uniform(0.05, 0.4) * max(W, H)
        return -m * rng.random(), -m * rng.random(), W + m * rng.random(), H + m * rng.random()
    for _ in range(8):
        w, h = W * rng.uniform(0.4, 1), H * rng.uniform(0.3, 0.9)
        x, y = rng.uniform(0, W - w), rng.uniform(0, H - h)
        out = (truth[:, 0] >= x + w) | (truth[:, 2] <= x) | (truth[:, 1] >= y + h) | (truth[:, 3] <= y)
        within = (truth[:, 0] >= x) & (truth[:, 2] <= x + w) & (truth[:, 1] >= y) & (truth[:, 3] <= y + h)
        if (out | within).all():
            return x, y, x + w, y + h
    return whole


def square(image: Image.Image, found: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (side, side) uint8 pixels and the boxes (n, 4) as fractions of the picture."""
    parts = found / np.array([image.width, image.height] * 2, np.float32)
    return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR)), parts.clip(0, 1).astype(np.float32)


def window(table: dict[str, Any], rng: random.Random | None) -> tuple[int, int, int, int]:
    """Choose first and end rows and columns of a table, no more than the structure model has queries for."""
    R, C, heads = len(table["Y"]) - 1, len(table["X"]) - 1, table["heads"]
    if rng is None or (R <= ROWS and C <= COLUMNS and rng.random() < 0.9):
        return 0, min(R, ROWS), 0, min(C, COLUMNS)
    rows, columns = min(R, rng.randint(min(R, 4), ROWS)), min(C, rng.randint(min(C, 3), COLUMNS))
    r = 0 if rng.random() < 0.35 else rng.randint(0, R - rows)
    r = r if r == 0 or r >= heads else min(heads, R - rows)
    r = 0 if 0 < r < heads else r
    c = rng.choice([0, rng.randint(0, C - columns), C - columns])
    return r, r + rows, c, c + columns


def parts_of(table: dict[str, Any], at: tuple[int, int, int, int]) -> np.ndarray:
    """Return the labels and boxes of a window's parts, (n, 5), cut to the window."""
    r0, r1, c0, c1 = at
    X, Y = table["X"], table["Y"]
    x0, y0, x1, y1 = X[c0], Y[r0], X[c1], Y[r1]
    out = []
    for label, a, b, c, d in boxes(table).tolist():
        middle = (a + c) / 2, (b + d) / 2
        box = max(a, x0), max(b, y0), min(c, x1), min(d, y1)
        if label == TABLE:
            out.append((label, *box))
        elif label in (COLUMN, ROW):
            if (x0 < middle[0] < x1) if label == COLUMN else (y0 < middle[1] < y1):
                out.append((label, *box))
        elif label in (HEADER, PROJECTED):
            if r0 == 0 if label == HEADER else y0 < middle[1] < y1:
                out.append((label, *box))
        elif label == SPAN and box[0] < box[2] - 1 and box[1] < box[3] - 1:
            cols = sum(box[0] - 1 <= X[i] and X[i + 1] <= box[2] + 1 for i in range(c0, c1))
            rows = sum(box[1] - 1 <= Y[i] and Y[i + 1] <= box[3] + 1 for i in range(r0, r1))
            if cols * rows > 1:
                out.append((label, *box))
    return np.array(out, np.float32)


def structure(
    sheet: Sheet, table: dict[str, Any], at: tuple[int, int, int, int], rng: random.Random
) -> tuple[Image.Image, np.ndarray]:
    """Return the picture of a window of a table, with a margin as zoo cuts it, and its labels with boxes (n, 5)."""
    r0, r1, c0, c1 = at
    parts = parts_of(table, at)
    x0, y0, x1, y1 = parts[0, 1:].tolist()
    side = max(x1 - x0, y1 - y0) * rng.uniform(1, 2.2)
    tight = rng.random() < 0.15
    share = [rng.uniform(0, 0.01) if tight else rng.choice([0.025, 0.025, rng.uniform(0, 0.06)]) for _ in range(4)]
    # What lies beyond a border that a window is cut at is not shown.
    image = cut(
        sheet.image,
        (
            0 if c0 == 0 else x0,
            0 if r0 == 0 else y0,
            sheet.image.width if c1 == len(table["X"]) - 1 else x1,
            sheet.image.height if r1 == len(table["Y"]) - 1 else y1,
        ),
    )
    dx, dy = 0 if c0 == 0 else round(x0), 0 if r0 == 0 else round(y0)
    box = [x0 - dx - share[0] * side, y0 - dy - share[1] * side, x1 - dx + share[2] * side, y1 - dy + share[3] * side]
    image = cut(image, tuple(box))
    moved = parts[:, 1:] - np.array([dx + round(box[0]), dy + round(box[1])] * 2, np.float32)
    if max(image.size) > 1000:
        W, H = image.size
        part = 1000 / max(W, H)
        image = image.resize((max(8, round(W * part)), max(8, round(H * part))), Image.Resampling.BILINEAR)
        moved = moved * (np.array([*image.size] * 2) / np.array([W, H] * 2)).astype(np.float32)
    if rng.random() < 0.2:
        image, moved = turned(image, moved, rng.uniform(-1, 1))
    return scan(image, rng), np.concatenate([parts[:, :1], moved], 1)


def lines_of(sheet: Sheet) -> list[Line]:
    """Return the lines of a page whose characters the reader knows, those of cells first."""
    inside = [line for t in sheet.tables for *_, lines in t["cells"] for line in lines]
    lines = [line._replace(text=line.text.translate(_SAID)) for line in [*inside, *sheet.lines]]
    return [line for line in lines if set(line.text) <= KNOWN and len(line.text) == len(line.ends)]


def reader_line(sheet: Sheet, line: Line, rng: random.Random, most: int = 40, small: bool = True) -> ReaderLine | None:
    """Return a line as the reader is shown it: cut close, of at most `most` characters, now and then small print."""
    string, starts = line.text, [0.0, *line.ends[:-1]]
    first, last = _part_of(string, most, rng)
    x0, y0, _, y1 = line.box
    left, right = x0 + starts[first], x0 + line.ends[last - 1]
    string, ends = string[first:last], [line.ends[i] - starts[first] for i in range(first, last)]
    string, ends = _fewer_dots(string, ends)
    h = y1 - y0
    strip = np.asarray(cut(sheet.image, (left, y0 - 0.2 * h, right, y1 + 0.2 * h)))
    top = y0 - 0.2 * h
    y0 = _free(strip, y0 + (0.12 * h if rng.random() < 0.6 else 0), top, -1)
    y1 = _free(strip, y1 - (0.08 * h if rng.random() < 0.6 else 0), top, 1)
    m = max(1.0, 0.25 * h)
    # Beside a part of a line there is the next word, which is not shown.
    before = 0.4 * (starts[first] - starts[first - 1]) if first else m
    after = 0.4 * (line.ends[last] - line.ends[last - 1]) if last < len(line.text) else m
    box = left - min(m, before) * rng.random(), y0 - 0.4 * m * rng.random(), right, y1 + 0.4 * m * rng.random()
    box = box[0], box[1], right + min(m, after) * rng.random(), box[3]
    picture = cut(sheet.image, box)
    if min(picture.size) < 4:
        return None
    if small and rng.random() < 0.5:  # letters with an x-height of 5 to 9 pixels
        part = rng.uniform(11, 22) / picture.height
        if part < 1:
            picture = picture.resize(
                (max(4, round(picture.width * part)), round(picture.height * part)), Image.Resampling.LANCZOS
            )
    width = min(WIDTH, max(4, round((round(box[2]) - round(box[0])) * HEIGHT / (round(box[3]) - round(box[1])))))
    picture = scan(picture, rng, min(1.0, 0.035 * picture.height))
    at = np.array([0.0, *ends], np.float32) + left - round(box[0])
    at *= width / (round(box[2]) - round(box[0]))
    return ReaderLine(np.asarray(picture.resize((width, HEIGHT), Image.Resampling.BILINEAR)), string, at)


def _free(strip: np.ndarray, y: float, top: float, step: int) -> float:
    """Return the row nearest to y, in the direction of step, that cuts no letter of a strip which begins at `top`."""
    inked = np.abs(strip.astype(int) - int(np.median(strip))).max(1) > 60
    i = begin = min(max(0, round(y - top)), len(inked) - 1)
    while 0 < i < len(inked) - 1 and inked[i]:
        i += step
    return y if inked[i] else y + i - begin


def _part_of(string: str, most: int, rng: random.Random) -> tuple[int, int]:
    """Choose first and end of a part of at most `most` characters, at the borders of words where that can be."""
    if len(string) <= most:
        return 0, len(string)
    begins = [0] + [i + 1 for i, c in enumerate(string) if c == " " and i + 1 < len(string)]
    first = rng.choice([b for b in begins if len(string) - b >= min(4, most)] or [0])
    ends = [i for i in range(first + 1, min(len(string), first + most) + 1) if i == len(string) or string[i] == " "]
    last = ends[-1] if ends else min(len(string), first + most)
    while last > first + 1 and string[last - 1] == " ":
        last -= 1
    return first, last


def _fewer_dots(string: str, ends: list[float]) -> tuple[str, list[float]]:
    """Shorten leaders of dots to three dots, since nobody counts them."""
    out, at, i = "", [], 0
    while i < len(string):
        j = i
        while j < len(string) and string[j] in ". " and (string[i] == "."):
            j += 1
        dots = string[i:j].count(".")
        if string[i] == "." and dots > 3:
            begin, end = (ends[i - 1] if i else 0.0), ends[i + len(string[i:j].rstrip()) - 1]
            out += "..."
            at += [begin + (end - begin) * k / 3 for k in (1, 2, 3)]
            i += len(string[i:j].rstrip())
        else:
            out += string[i]
            at.append(ends[i])
            i += 1
    return out, at
