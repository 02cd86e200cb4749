"""The lines of text of a table's crop, from its words or its ink, without leaders, and the gaps that run down them.

Boxes are (x0, y0, x1, y1) in pixels of the crop.  Shapes: Y, X of the crop.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...images.boxes import Box
from ...images.lines import grey_of, spans, split_ink
from .boxes import HALF_SHARE, bounding_box
from .cell_borders import INK
from .table import Word

RULE = 60  # pixels: a longer run of ink is a rule, or the edge of a filled cell, and no part of a letter
DOT, MIN_REGULAR = 20, 0.9  # pixels: the greatest pitch of dots; the share that is alike
LEADER, SMALL_DOT = 6, 3  # the fewest dots of a leader; pixels: the greatest size of a dot
LARGE_DOT, MIN_DOT_PITCH = 5, 2.4  # pixels: the greatest size of dots so many times their width apart
MIN_RULE_WIDTH = 0.8  # share of a crop's width: a longer row of dots is a rule
MAX_SIDE = 2000  # pixels of a place's side at which its lines are looked at, which bounds memory
# Heights of a line, between words, which are 0.3 apart, in typewriting 0.6.
LETTER_GAP = 0.15  # less is between two letters
WORD_GAP = 0.6  # words that are nearer are one text, whatever borders are between them
COLUMN_GAP, MIN_GUTTER = 0.7, 0.8  # the least gap between two columns in a line, and the least that parts a column
TEXT_GAP, MAX_WORD_GAP = 1.0, 1.5  # less is between words of a sentence, mostly, and between words of one cell
WELL_FILLED = 0.7  # share of the blocks that a well-filled line has: lines with fewer say nothing about columns
GUTTER = 0.1  # share of the well-filled lines: a gap between columns may be crossed by so many
LEADER_TEXT = re.compile(r"\s*([.…·_]\s?){4,}$")  # three dots are an ellipsis, or stand for a number that is missing
DASHES = re.compile(r"[-–—=_]{8,}")  # a typewritten rule
LONE_DOTS = re.compile(r"[.·…]{1,3}")  # dots of leaders that are set apart, ". . . .", four words or more in a row
MIN_DOTS = 4
DOT_WIDTH = 0.5  # share of a letter's width: a dot's, in print


def text_lines(pixels: np.ndarray, words: Sequence[Word] | None) -> list[list[Box]]:
    """The boxes of the words of each line, from the top and from the left; of the ink where there are no words."""
    lines = [[w.box for w in line] for line in word_lines(words)] if words else ink_lines(ink_without_rules(pixels))
    return [sorted(line) for line in lines]


def word_lines(words: Sequence[Word]) -> list[list[Word]]:
    """The words that are not blank by lines, from the top, by their lower edges."""
    high = statistics.median(w.box[3] - w.box[1] for w in words) if words else 0.0
    lines: list[list[Word]] = []
    for word in sorted((w for w in words if w.text.strip()), key=lambda w: w.box[3]):
        if lines and word.box[3] - lines[-1][0].box[3] < HALF_SHARE * (high or 1.0):
            lines[-1].append(word)
        else:
            lines.append([word])
    return lines


def ink_lines(ink: np.ndarray) -> list[list[Box]]:
    """The runs of ink (Y, X) of each line."""
    lines, count = list[list[Box]](), np.count_nonzero(ink)
    if not 0 < count < ink.size:
        return lines
    for x0, y0, x1, y1 in split_ink(ink if 2 * count <= ink.size else ~ink):
        boxes = [(float(x0 + a), float(y0), float(x0 + b), float(y1)) for a, b in spans(np.any(ink[y0:y1, x0:x1], 0))]
        if boxes:
            lines.append(blocks_of(boxes, LETTER_GAP))
    return lines


def text_ink(pixels: np.ndarray) -> np.ndarray:
    """The pixels (Y, X) that differ from most of their row and of their column, as rules and shaded rows do not."""
    grey = grey_of(pixels, np.float32)
    of_row, of_column = grey - np.median(grey, 1, keepdims=True), grey - np.median(grey, 0)
    np.minimum(np.abs(of_row, out=of_row), np.abs(of_column, out=of_column), out=of_row)
    return of_row > INK


def letter_height(ink: np.ndarray) -> float:
    """The usual height of letters in pixels, from the ink (h, w) of a place; 0 without ink.

    It is the median height of the runs of ink down each column of pixels, once gaps within words are closed, by ink.
    """
    ink = ink[:MAX_SIDE, : 2 * MAX_SIDE]
    if not ink.any():
        return 0.0
    begins, ends = runs_of(closed(ink, 6).T)
    heights = np.sort(ends - begins)
    return float(heights[np.searchsorted(np.cumsum(heights), heights.sum() / 2)])


def closed(ink: np.ndarray, gap: int) -> np.ndarray:
    """The ink (h, w) with gaps of up to `gap` pixels in a row of pixels filled."""
    begins, ends = runs_of(ink)
    wide = ink.shape[1] + 1
    near = (begins[1:] - ends[:-1] <= gap) & (begins[1:] // wide == ends[:-1] // wide)
    return fill_runs(ink.shape, np.delete(begins, np.flatnonzero(near) + 1), np.delete(ends, np.flatnonzero(near)))


def ink_without_rules(pixels: np.ndarray) -> np.ndarray:
    """The ink of text, (Y, X) bool, without rules, and without edges of filled cells."""
    ink = text_ink(pixels)
    return ink & ~(long_runs(ink) | long_runs(ink.T).T)


def long_runs(ink: np.ndarray, least: float = RULE) -> np.ndarray:
    """(Y, X) bool: the pixels of runs along X that are so long or longer."""
    begins, ends = runs_of(ink)
    long = ends - begins >= least
    return fill_runs(ink.shape, begins[long], ends[long])


def runs_of(ink: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the runs of ink (Y, X) along X begin and end, with a pixel of paper after each row of pixels."""
    flat = np.zeros((ink.shape[0], ink.shape[1] + 1), bool)
    flat[:, :-1] = ink
    flat = flat.reshape(-1)
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    if flat.size and flat[0]:
        edges = np.concatenate([[0], edges])
    return edges[::2], edges[1::2]


def fill_runs(shape: tuple[int, ...], begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Ink of a shape (Y, X), whose runs these are (`runs_of`)."""
    steps = np.zeros(shape[0] * (shape[1] + 1) + 1, np.int8)
    steps[begins] = 1
    steps[ends] = -1
    return steps[:-1].cumsum(dtype=np.int8).view(bool).reshape(shape[0], shape[1] + 1)[:, :-1]


def _dots(ink: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Lines of pixels (y, begin, end) of dots that are low, alike and evenly spaced, as letters are not."""
    (begins, ends), wide = runs_of(ink), ink.shape[1] + 1
    ys, begins, ends = begins // wide, begins % wide, ends % wide
    pitches, sizes = np.diff(begins), ends - begins
    least = letter_height(ink) / 2  # letters of small print are as low as dots of a larger one
    same = (np.abs(np.diff(pitches)) <= 1) & (pitches[1:] <= DOT) & (ys[2:] == ys[:-2])
    for first, last in spans(same):
        if last - first + 2 < LEADER:
            continue
        y, dots = int(ys[first]), slice(first, last + 2)
        widest = int(statistics.median(sizes[dots].tolist())) + 1
        large = widest > SMALL_DOT and pitches[first] >= MIN_DOT_PITCH * widest  # small letters are as high, and nearer
        low = min(least, LARGE_DOT if large else SMALL_DOT)
        for a, b in spans(_are_low(ink, y, begins[dots], ends[dots], low)):  # a letter may end the run
            own = sizes[first + a : first + b]
            x0, x1 = int(begins[first + a]), int(ends[first + b - 1])
            if (
                len(own) >= LEADER
                and own.max() <= low
                and np.mean(np.abs(own - np.median(own)) <= 1) >= MIN_REGULAR
                and _are_low(ink, y, np.array([x0]), np.array([x1]), low).all()
            ):
                yield y, x0, x1


def _are_low(ink: np.ndarray, y: int, begins: np.ndarray, ends: np.ndarray, low: float) -> np.ndarray:
    """(N,) bool: which of the dots (N,) on a line of pixels of ink (Y, X) are so low."""
    reach, left = math.floor(low), begins[0]
    band = ink[max(0, y - reach) : y + reach + 1, left : ends[-1]]
    sums = np.zeros((len(band), band.shape[1] + 1), np.int32)
    np.cumsum(band, 1, out=sums[:, 1:])
    return np.count_nonzero(sums[:, ends - left] > sums[:, begins - left], 0) <= low


def without_leader_dots(pixels: np.ndarray) -> np.ndarray:
    """The pixels (Y, X, 3) of a crop with paper in place of leaders, which are no text."""
    clean, ink = pixels, text_ink(pixels)
    for y, x0, x1 in _dots(ink):
        if x1 - x0 < MIN_RULE_WIDTH * pixels.shape[1]:
            clean = pixels.copy() if clean is pixels else clean
            top = max(0, y - LARGE_DOT)
            rows = spans(np.any(ink[top : y + LARGE_DOT + 1, x0:x1], 1))
            a, b = next((a, b) for a, b in rows if a <= y - top < b)  # what is near may be a letter
            band = slice(max(0, top + a - 1), top + b + 1), slice(max(0, x0 - 1), x1 + 1)
            clean[band] = np.median(pixels[band], (0, 1)).astype(np.uint8)
    return clean


def blocks_of(line: Sequence[Box], gap: float = COLUMN_GAP) -> list[Box]:
    """The words of a line from the left, joined where less than `gap` heights of the line are between them."""
    blocks: list[Box] = []
    gap *= max(box[3] for box in line) - min(box[1] for box in line)
    for box in sorted(line):
        if blocks and box[0] - blocks[-1][2] < gap:
            blocks[-1] = bounding_box([blocks[-1], box])
        else:
            blocks.append(box)
    return blocks


def columns_of(lines: Sequence[Sequence[Box]], width: int) -> list[tuple[float, float]]:
    """The parts between the gaps that run down all well-filled lines but a few."""
    if not lines:
        return []
    lines = [blocks_of(line) for line in lines]
    most = sorted(len(line) for line in lines)[(3 * len(lines)) // 4]
    full = [line for line in lines if len(line) >= max(2, WELL_FILLED * most)]
    change = np.zeros(width + 2)
    for x0, _, x1, _ in itertools.chain(*full):
        change[min(max(0, int(x0)), width)] += 1
        change[min(max(0, math.ceil(x1)), width + 1)] -= 1
    return [(float(a), float(b)) for a, b in spans(change.cumsum() > GUTTER * len(full))]


def without_leaders(words: Sequence[Word]) -> list[Word]:
    """The words without leaders, alone or at their ends, and without rules of dashes."""
    found = list(_words_without_leaders(words))
    apart = {id(word) for line in word_lines(found) for word in _leaders(line)}
    return [word for word in found if id(word) not in apart]


def _words_without_leaders(words: Sequence[Word]) -> Iterator[Word]:
    for word in words:
        text = LEADER_TEXT.sub("", word.text)
        if DASHES.fullmatch(text.strip()) or (not text and word.text):
            continue
        if text != word.text:
            x0, y0, x1, y1 = word.box
            rest = len(word.text) - len(text)
            word = replace(
                word, text=text, box=(x0, y0, x0 + (x1 - x0) * len(text) / (len(text) + DOT_WIDTH * rest), y1)
            )
        yield word


def _leaders(line: Sequence[Word]) -> Iterator[Word]:
    """The words of a line that are dots, of long runs."""
    run: list[Word] = []
    for word in [*sorted(line, key=lambda w: w.box), None]:
        if word is not None and LONE_DOTS.fullmatch(word.text):
            run.append(word)
            continue
        if len(run) >= MIN_DOTS:
            yield from run
        run = []
