"""Reading the cells of a table in an image: each cell is cut into lines of text for a reader.

Shapes: Y, X of the image, h, w of a cell in it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...errors import InputError
from ...images.boxes import Box, check_fraction
from ...images.lines import MARGIN, MIN_TEXT_HEIGHT, spans, split_lines
from ...tasks.scripts import ScriptCheck
from .boxes import HALF_SHARE
from .cell_borders import FULL_RULE, INK, fitted_cell_boxes
from .table import Table, Word
from .values import MINUS

if TYPE_CHECKING:
    from ...tasks.read import Read

# A call (images (y, x, 3) uint8, a line of text each) -> for each (text, confidence), or an object with these two
# attributes: the task Read, or anything with the same call.
LineReader = Callable[[list[np.ndarray]], Sequence[Any]]

SPECKS, FAINT_LEVELS = 3, 240  # pixels of ink, and grey levels in all by which they differ from paper: less is dirt
CLEAN_SPECKS, CLEAN_FAINT = 2, 80  # the same where paper is of one colour, as in a picture that no scanner made
MIN_BLUR = 10  # grey levels from paper, over a whole first or last line of pixels: the edge of a rule beside the cell
EDGE_RULE, EDGE = 0.5, 2  # the same of the first and the last pixels, where rules end that are not as wide as the cell
MIN_LINE_HEIGHT = 6  # pixels: what is lower is a part of a line, such as an accent, or a rule of dots
RULE_WIDTH, RULE_FLATNESS = 0.7, 8  # share of a cell's width, and times its own height: no text is as wide and flat
# Share of the usual height of lines: lower ones, such as "-" and "no", are read with the space around them.
LOW_LINE = 0.75
# Share of letters and figures, and confidence: a table has one of them.
FEW_WORDS, LETTERS, LEGIBLE_CONFIDENCE = 4, 0.55, 0.92
MANY_GUESSES = 8  # words in another script: fewer may be the labels of a drawing
GUESSED_CONFIDENCE = 0.6  # confidence: lower, even letters are none
DASHES = f"{MINUS}—"
STROKES = frozenset("1lI|")  # what the upright strokes of a drawing are read as
STROKE_PERCENTILE = 96  # percentile of how far pixels are from paper: the middle of strokes
LINES_AT_ONCE = 64  # lines for one call of a reader: enough for a batch, little memory


@dataclass(frozen=True)
class GuessedWord(Word):
    """A word in a script that its reader does not know, whatever its confidence."""


def read_cells(image: np.ndarray, table: Table, reader: LineReader) -> list[Word]:
    """The text of a table's cells, a Word for each line, in the pixels of the image (Y, X, 3) uint8.

    Cells without ink are not read; a line that the reader finds empty gives no Word.  A reader that knows its scripts
    (`zoo.tasks.read.Read.scripts`) judges all lines together: those in another one are GuessedWords.
    """
    return read_boxes(image, fitted_cell_boxes(image, table), reader)


def read_boxes(image: np.ndarray, boxes: Sequence[Box], reader: LineReader) -> list[Word]:
    """The text in boxes of an image (Y, X, 3) uint8, as `read_cells` has it of a table's cells."""
    found = cell_lines(image, boxes)
    check: ScriptCheck | None = getattr(reader, "scripts", None)
    read_lines: LineReader = reader if check is None else cast("Read", reader).read_lines
    answers: list[Any] = []
    for i in range(0, len(found), LINES_AT_ONCE):
        lines = [_dark_on_light(line) for _, line in found[i : i + LINES_AT_ONCE]]
        of_lines = list(read_lines(lines))
        if len(of_lines) != len(lines):
            raise InputError(f"the reader returned {len(of_lines)} texts for {len(lines)} lines")
        answers += of_lines
    guessed = [False] * len(answers) if check is None else check.find_unknown(answers)
    words: list[Word] = []
    for (place, _), answer, is_guess in zip(found, answers, guessed, strict=True):
        text, confidence = _reading(answer)
        if text.strip():
            words.append((GuessedWord if is_guess else Word)(text.strip(), place, confidence))
    return words


def is_legible(words: Sequence[Word]) -> bool:
    """Return False for words that are mostly unsure signs, or strokes alone: parts of drawings.

    Dashes, which stand for no number, do not count.  Words in a script that the reader does not know may be unsure, if
    they are many.
    """
    own = [word for word in words if word.text.strip(DASHES)]
    if len(own) < FEW_WORDS:
        return not words or not all(STROKES.issuperset(word.text) for word in own)
    letters = statistics.mean(
        0.0 if STROKES.issuperset(word.text) else sum(map(str.isalnum, word.text)) / len(word.text) for word in own
    )
    sure = [word.confidence for word in own]
    is_foreign = sum(isinstance(word, GuessedWord) for word in own) >= max(MANY_GUESSES, HALF_SHARE * len(own))
    is_sure = statistics.median(sure) >= GUESSED_CONFIDENCE or is_foreign
    return (letters >= LETTERS and is_sure) or statistics.mean(sure) >= LEGIBLE_CONFIDENCE


def cell_lines(image: np.ndarray, boxes: Sequence[Box]) -> list[tuple[Box, np.ndarray]]:
    """The lines of text in the boxes of cells of an image (Y, X, 3) uint8: (box, pixels) of each.

    A line without tall letters, such as "-" or "no", gets the usual height of the lines: only so its letters are seen
    to be small.
    """
    found = [(box, *line) for box in boxes for line in text_lines(image, box)]
    usual = float(np.median([len(line) for *_, line in found])) if found else 0.0
    return [
        (place, line if len(line) >= LOW_LINE * usual else _pad_low_line(image, place, box, usual))
        for box, place, line in found
    ]


def _pad_low_line(image: np.ndarray, place: Box, box: Box, height: float) -> np.ndarray:
    """The pixels of a low line, such as a lone dash, with space above and below up to the usual height.

    The space is that of its cell, and paper where the cell has none.
    """
    x0, y0, x1, y1 = place
    more = max(0, round((height - (y1 - y0)) / 2))
    top, bottom = max(y0 - more, min(y0, math.ceil(box[1])), 0), min(y1 + more, max(y1, math.floor(box[3])))
    line = image[round(top) : round(bottom), round(x0) : round(x1)]
    out = np.empty((round(y1 - y0) + 2 * more, *line.shape[1:]), np.uint8)
    out[:] = np.median(line, (0, 1))
    out[(begin := round(top - (y0 - more))) : begin + len(line)] = line
    return out


def _dark_on_light(line: np.ndarray) -> np.ndarray:
    """A line (h, w, 3) uint8; one whose ink is lighter than its paper, such as a coloured header, as black on white."""
    paper = np.median(np.concatenate([line[0], line[-1], line[:, 0], line[:, -1]]), 0)
    away = line - paper
    distance = np.abs(away).sum(-1)
    # The colour of most of a stroke's inner pixels.
    ink = away[distance >= np.percentile(distance, STROKE_PERCENTILE)].mean(0)
    if ink.mean() <= 0:
        return line
    share = (away @ ink) / (ink @ ink)
    grey = (255 * (1 - share.clip(0, 1))).round().astype(np.uint8)
    return np.repeat(grey[..., None], 3, -1)


def text_lines(image: np.ndarray, box: Box) -> Iterator[tuple[Box, np.ndarray]]:
    """The lines of text in a box of the image (Y, X, 3) from the top: (box, pixels without rules)."""
    Y, X = image.shape[:2]
    left, top = max(math.ceil(box[0]), 0), max(math.ceil(box[1]), 0)
    right, bottom = min(math.floor(box[2]), X), min(math.floor(box[3]), Y)
    if left >= right or top >= bottom:
        return
    cell = image[top:bottom, left:right]
    paper = np.median(cell, (0, 1))
    contrast = np.abs(cell.mean(-1) - paper.mean())  # (h, w)
    specks, faint = (CLEAN_SPECKS, CLEAN_FAINT) if np.percentile(contrast, 75) < 1 else (SPECKS, FAINT_LEVELS)
    least, most = np.percentile(contrast, (10, 90), axis=1)
    blurred = (least > MIN_BLUR) & (most < 2 * least)  # letters differ along a line of pixels
    contrast[contrast <= INK] = 0
    shares = (contrast > 0).mean(1)
    rows, columns = shares >= FULL_RULE, (contrast > 0).mean(0) >= FULL_RULE
    for edge in (slice(0, EDGE), slice(-EDGE, None)):
        rows[edge] |= (shares[edge] >= EDGE_RULE) | blurred[edge]
    inner = contrast[~rows][:, ~columns]
    if np.count_nonzero(inner) < specks or inner.sum() < faint:
        return
    if rows.any() or columns.any():
        cell = cell.copy()
        cell[rows] = cell[:, columns] = paper
    contrast[rows] = 0
    for x0, y0, x1, y1 in _join_low_lines([line for line in split_lines(cell) if not _is_rule(line, right - left)]):
        place = float(left + x0), float(top + y0), float(left + x1), float(top + y1)
        yield place, _with_margin(cell[y0:y1, x0:x1], contrast[y0:y1, x0:x1].any(1), paper)


def _with_margin(line: np.ndarray, inked: np.ndarray, paper: np.ndarray) -> np.ndarray:
    """A line (h, w, 3) with paper above and below where its ink (h,) touches the cell's border.

    Less ink there than a line has is of the line above or below.
    """
    least = MIN_TEXT_HEIGHT * len(line)
    parts = [(begin, end) for begin, end in spans(inked) if end - begin >= least]
    above, below = (
        round(MARGIN * len(line)) if touches else 0
        for touches in (parts and parts[0][0] == 0, parts and parts[-1][1] == len(line))
    )
    out = np.empty((above + len(line) + below, *line.shape[1:]), np.uint8)
    out[:] = paper
    out[above : above + len(line)] = line
    return out


def _is_rule(line: tuple[int, int, int, int], wide: int) -> bool:
    """True if a line of ink in a cell of this width is a rule of dots or dashes."""
    x0, y0, x1, y1 = line
    return y1 - y0 < MIN_LINE_HEIGHT and x1 - x0 >= max(RULE_WIDTH * wide, RULE_FLATNESS * (y1 - y0))


def _join_low_lines(lines: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Lines, with low ones joined to a neighbour that is near: the two strokes of a lone "=" are one line."""
    while True:
        low = [line[3] - line[1] < MIN_LINE_HEIGHT for line in lines]
        gaps = [
            (after[1] - before[3], i)
            for i, (before, after) in enumerate(pairwise(lines))
            if (low[i] or low[i + 1]) and after[1] - before[3] < MIN_LINE_HEIGHT
        ]
        if not gaps:
            return lines
        _, i = min(gaps)
        (a0, b0, a1, b1), (c0, d0, c1, d1) = lines[i : i + 2]
        lines[i : i + 2] = [(min(a0, c0), min(b0, d0), max(a1, c1), max(b1, d1))]


def _reading(one: Any) -> tuple[str, float]:
    """The text and the confidence in a reader's answer for a line."""
    try:
        text, confidence = (one.text, one.confidence) if hasattr(one, "text") else one
    except (AttributeError, TypeError, ValueError):
        text, confidence = None, None
    if not isinstance(text, str):
        raise InputError(f"the reader returned {one!r:.100} for a line, expected (text, confidence)")
    return text, check_fraction(confidence, "the confidence of a text that the reader returned")
