"""Words with boxes: reading them from JSON, placing them into cells, and joining them to text."""

from __future__ import annotations

import math
import os
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import InputError, TableError, nearest
from ...files.json_file import parse_json_list, read_bounded
from ...images.boxes import Box, check_fraction
from .boxes import HALF_SHARE, check_box, inside, share, shared_height
from .direction import quarters, tilt_of, turn_box, untilt_box
from .table import Table, Word

MAX_BYTES = 64 << 20  # size of a file of words: a newspaper page has some ten thousand words of a hundred bytes each
MAX_WORDS = 200_000  # words of a page
WORD_FIELDS = ("text", "box", "confidence", "angle")
# Words share a line if this share of the lower one's height is beside the other: raised and lowered characters have
# about 0.4, neighbouring lines whose boxes include the leading about 0.15, of some fonts more: then one word is above
# another.
SAME_LINE, STACKED_SHARE = 0.3, 0.38
FIRST_RIGHT_TO_LEFT = "\u0590"  # Hebrew, the first script of Unicode that runs from right to left
WORDS_AT_ONCE = 2048  # compared with all intervals in one array, which bounds its memory


class Interval(NamedTuple):
    """The interval of a row in y, or of a column in x."""

    start: float
    end: float
    score: float | None  # the detector's; None for a row or column that was added

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2


def read_words(path: str | os.PathLike[str]) -> list[Word]:
    """The words of a JSON file: a list of {"text": str, "box": [x0, y0, x1, y1], "confidence": 0 ... 1, "angle": 0}.

    Boxes are in pixels of the image that the words were read from; confidence (1) and angle (not known; see `Word`) may
    be left out.  Anything else is an InputError that names the file, the entry and the key.
    """
    found = []
    path = Path(path)
    entries = parse_json_list(read_bounded(path, MAX_BYTES, InputError), path, InputError)
    if len(entries) > MAX_WORDS:
        raise InputError(f"{path} has {len(entries):,} words, at most {MAX_WORDS:,} of a page are read")
    for i, entry in enumerate(entries):
        name = f"{path}: words[{i}]"
        if not isinstance(entry, dict):
            raise InputError(f"{name} is {entry!r:.100}, expected an object with text and box")
        for key in entry:
            if key not in WORD_FIELDS:
                raise InputError(
                    f"{name} has a key {key!r:.100}, known are {', '.join(WORD_FIELDS)}{nearest(key, WORD_FIELDS)}"
                )
        for key in ("text", "box"):
            if key not in entry:
                raise InputError(f"{name} has no {key!r}")
        box = check_box(f"{name}: box", entry["box"])
        confidence = check_fraction(entry.get("confidence", 1.0), f"{name}: confidence")
        try:
            found.append(Word(entry["text"], box, confidence, entry.get("angle")))
        except TableError as e:
            raise InputError(f"{name}: {e}") from None
    return found


def check_words(words: Sequence[Word]) -> None:
    """InputError names the first that is no Word, or has a confidence outside 0 ... 1 (in per cent, say)."""
    if len(words) > MAX_WORDS:
        raise InputError(f"{len(words):,} words of a page, at most {MAX_WORDS:,} are taken")
    for i, word in enumerate(words):
        if not isinstance(word, Word):
            raise InputError(f"words[{i}] is of type {type(word).__name__}, expected zoo.apps.tables.Word")
        check_fraction(word.confidence, f"words[{i}].confidence")


def words_outside(table: Table, words: Sequence[Word]) -> list[Word]:
    """The words that `build_table` put into no cell: less than half of their area is in the table's box."""
    return [word for word in words if not table.cells or inside(word.box, table.box) < HALF_SHARE]


def overlapping(words: Sequence[Word], intervals: Sequence[Interval], axis: int) -> list[list[tuple[int, float]]]:
    """The (index, overlap) of each interval that a word overlaps, for each word; the nearest one and 1.0 if none does.

    axis: 0 for columns, 1 for rows.
    """
    starts, ends = np.array([(interval.start, interval.end) for interval in intervals]).T
    found: list[list[tuple[int, float]]] = []
    for first in range(0, len(words), WORDS_AT_ONCE):
        boxes = np.array([word.box for word in words[first : first + WORDS_AT_ONCE]])
        low, high = boxes[:, axis, None], boxes[:, axis + 2, None]
        lengths = np.minimum(high, ends) - np.maximum(low, starts)  # negative: the distance
        near: list[list[tuple[int, float]]] = [[] for _ in boxes]
        which, interval = np.nonzero(lengths > 0)
        for w, i, length in zip(which.tolist(), interval.tolist(), lengths[which, interval].tolist(), strict=True):
            near[w].append((i, length))
        found += [of or [(i, 1.0)] for of, i in zip(near, lengths.argmax(1).tolist(), strict=True)]
    return found


def words_at(
    words: Sequence[Word], rows: Sequence[Interval], columns: Sequence[Interval]
) -> dict[tuple[int, int], list[Word]]:
    """The words of each row and column that has some, as (row, column): those with most of the word."""
    at: dict[tuple[int, int], list[Word]] = {}
    for word, *near in zip(words, overlapping(words, rows, 1), overlapping(words, columns, 0), strict=True):
        row, column = (max(of, key=lambda one: one[1])[0] for of in near)
        at.setdefault((row, column), []).append(word)
    return at


def first_choices(
    words: Sequence[Word], near: Sequence[Sequence[tuple[int, float]]], intervals: Sequence[Interval], axis: int
) -> set[int]:
    """The intervals that hold most of some word; of several that hold as much, the nearest to its centre."""
    chosen = set()
    for word, of in zip(words, near, strict=True):
        middle = (word.box[axis] + word.box[axis + 2]) / 2
        chosen.add(max(of, key=lambda n: (n[1], -abs(intervals[n[0]].middle - middle)))[0] if len(of) > 1 else of[0][0])
    return chosen


def place(
    words: Sequence[Word],
    rows: Sequence[Interval],
    columns: Sequence[Interval],
    ys: Sequence[Sequence[tuple[int, float]]],
    xs: Sequence[Sequence[tuple[int, float]]],
    owner: Sequence[Sequence[int]],
    cells: int,
) -> list[list[Word]]:
    """The words of each of `cells` cells; owner[row][column] is the cell at a position of the grid.

    ys, xs: the rows and columns of each word, from `overlapping`.  A word goes to the cell with the largest overlap; of
    several, to the one with the nearest row and column.
    """
    found: list[list[Word]] = [[] for _ in range(cells)]
    for word, of_y, of_x in zip(words, ys, xs, strict=True):
        if len(of_y) == len(of_x) == 1:  # as nearly all words do
            found[owner[of_y[0][0]][of_x[0][0]]].append(word)
            continue
        x, y = (word.box[0] + word.box[2]) / 2, (word.box[1] + word.box[3]) / 2
        held: dict[int, tuple[float, float]] = {}
        for row, height in of_y:
            for column, width in of_x:
                cell = owner[row][column]
                area, distance = held.get(cell, (0.0, np.inf))
                away = abs(rows[row].middle - y) + abs(columns[column].middle - x)
                held[cell] = area + height * width, min(distance, away)
        found[max(held, key=lambda cell: (held[cell][0], -held[cell][1]))].append(word)
    return found


def join(words: Sequence[Word]) -> str:
    """The text of a cell: lines from top to bottom, each in the direction of its script, with a space between words.

    A line runs from right to left if more of its words are Hebrew, Arabic and the like than of other scripts; numbers
    and other scripts' words beside each other keep their order in it.
    Words with angles are ordered as they are upright.  If words run in several directions, each direction is joined by
    itself, the one that begins further up, or further left, first.  Hyphens at line ends are kept: geometry does not
    tell whether they belong to the word.
    """
    if len(words) == 1:
        return words[0].text.strip()
    ways: dict[int, list[Word]] = {}
    for word in words:
        ways.setdefault(quarters(word.angle or 0.0), []).append(word)
    begins = {way: min((w.box[1], w.box[0]) for w in of) for way, of in ways.items()}
    return " ".join(_join_texts(ways[way], way) for way in sorted(ways, key=lambda way: begins[way]))


def _join_texts(words: Sequence[Word], way: int) -> str:
    """The text of words that all run in one direction, `way` quarter turns."""
    if way or any(word.angle and tilt_of(word.angle) for word in words):
        words = _set_upright(words, way)
    lines: list[list[Word]] = []  # each begins with its tallest word, which is not raised or lowered
    for word in sorted(words, key=lambda w: (w.box[1] + w.box[3], w.box[0])):
        line = lines[-1] if lines else []
        least = STACKED_SHARE if any(_are_stacked(word.box, one.box) for one in line) else SAME_LINE
        if not line or shared_height(word.box, line[0].box) < least:
            lines.append([word])
            continue
        line.append(word)
        if word.box[3] - word.box[1] > line[0].box[3] - line[0].box[1]:
            line[0], line[-1] = word, line[0]
    return " ".join(word.text.strip() for line in lines for word in _in_reading_order(line))


def _in_reading_order(line: Sequence[Word]) -> list[Word]:
    """The words of one line in the direction of most of them."""
    line = sorted(line, key=lambda w: (w.box[0], w.box[2]))
    if all(word.text.isascii() or max(word.text) < FIRST_RIGHT_TO_LEFT for word in line):
        return line
    ways = [_is_right_to_left(word.text) for word in line]
    if ways.count(True) <= ways.count(False):
        return line
    ordered: list[Word] = []
    for is_turned, of in groupby(reversed(line), key=lambda word: _is_right_to_left(word.text) is True):
        part = list(of)
        ordered += part if is_turned else reversed(part)
    return ordered


def _is_right_to_left(text: str) -> bool | None:
    """The direction of the first letter of a text, None without letters."""
    kinds = (unicodedata.bidirectional(character) for character in text)
    return next((kind != "L" for kind in kinds if kind in ("L", "R", "AL")), None)


def _are_stacked(a: Box, b: Box) -> bool:
    return max(share(a[0], a[2], b[0], b[2]), share(b[0], b[2], a[0], a[2])) > HALF_SHARE


def _set_upright(words: Sequence[Word], way: int) -> list[Word]:
    """Words turned to run from left to right: by the quarter turns, then by their median tilt."""
    tilts = sorted(0.0 if word.angle is None else tilt_of(word.angle) for word in words)
    tilt = tilts[len(tilts) // 2]
    cos, sin = math.cos(math.radians(tilt)), math.sin(math.radians(tilt))
    found = []
    for word in words:
        x0, y0, x1, y1 = untilt_box(turn_box(word.box, -way), tilt)
        x, y, wide, high = (x0 + x1) / 2, (y0 + y1) / 2, (x1 - x0) / 2, (y1 - y0) / 2
        x, y = x * cos + y * sin, y * cos - x * sin
        found.append(replace(word, box=(x - wide, y - high, x + wide, y + high)))
    return found
