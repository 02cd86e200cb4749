"""The words of a line that was read, with their places along it.

Shapes: C characters of a text, X columns of a line's image.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..images.lines import inked_columns, spans
from ..text.ctc import CtcText


class LineWord(NamedTuple):
    """A word of a line, from `start` to `end`: 0 is where the line's image begins, 1 where it ends."""

    text: str
    confidence: float
    start: float
    end: float


def words_of_characters(text: CtcText, middles: np.ndarray, image: np.ndarray) -> list[LineWord]:
    """The words of a text whose characters have places: their confidence is the mean of their characters'.

    middles (C,): of the characters, in columns of the line's image (Y, X, 3) uint8.  Two words part at the widest gap
    in the ink between the last character of one and the first of the next.
    """
    groups = spans(np.array([not c.isspace() for c in text.characters], bool))
    ink, cuts = inked_columns(image), [0]
    for (_, last), (first, _) in pairwise(groups):
        a, b = (int(np.clip(m, cuts[-1], len(ink))) for m in (middles[last - 1], middles[first]))
        gaps = spans(np.logical_not(ink[a:b]))
        widest = max(gaps, key=lambda gap: gap[1] - gap[0], default=(0, max(0, b - a)))
        cuts.append(a + sum(widest) // 2)
    texts = ["".join(text.characters[a:b]) for a, b in groups]
    confidences = [float(text.probabilities[a:b].mean()) for a, b in groups]
    return _place_words(texts, confidences, [*cuts, len(ink)], ink)


def words_of_text(text: str, confidence: float, image: np.ndarray) -> list[LineWord]:
    """The words of a text whose characters have no places: the widest gaps in the ink part them.

    Where the ink of the line's image (Y, X, 3) uint8 has too few gaps, each word has room by its number of characters.
    """
    texts, ink = text.split(), inked_columns(image)
    gaps = spans(np.logical_not(ink))
    inner = sorted((a - b, a, b) for a, b in gaps if a > 0 and b < len(ink))[: max(0, len(texts) - 1)]
    cuts = sorted((a + b) // 2 for _, a, b in inner)
    if len(cuts) < len(texts) - 1:
        ends = np.cumsum([len(one) + 1 for one in texts])
        cuts = [int(at) for at in ends[:-1] * len(ink) / ends[-1]]
    return _place_words(texts, [confidence] * len(texts), [0, *cuts, len(ink)], ink)


def _place_words(
    texts: Sequence[str], confidences: Sequence[float], cuts: Sequence[int], ink: np.ndarray
) -> list[LineWord]:
    """Words, each between two cuts and there as wide as the ink (X,) bool."""
    words = []
    for text, confidence, (a, b) in zip(texts, confidences, pairwise(cuts), strict=False):
        columns = np.flatnonzero(ink[a:b])
        start, end = (a + columns[0], a + columns[-1] + 1) if len(columns) else (a, b)
        words.append(LineWord(text, confidence, float(start / len(ink)), float(end / len(ink))))
    return words
