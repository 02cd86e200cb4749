"""What was read of the lines of an image, or of the parts of a line, put together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ..peer_names import with_keys
from .line_words import LineWord
from .results import Lines, ResultFormat

# The text of a line, the log-probabilities of its tokens, True if it came to its end, and the odds of its script.
LineText: TypeAlias = tuple[str, np.ndarray, bool, float]


@with_keys(generated_text="text")
class Reading(NamedTuple):
    """The text in an image.

    confidence: the geometric mean of the probabilities that the model gave to the text's tokens and to its end,
    exp(mean(log p)), 0 ... 1; over the tokens of all lines where there are several.
    """

    text: str
    confidence: float


class Readings(ResultFormat):
    columns: ClassVar[dict[str, Any]] = {"text": "string", "confidence": "double"}

    def row(self, result: Reading, top_k: bool = False) -> dict[str, Any]:
        return result._asdict()

    def lines(self, result: Reading) -> Lines:
        first, *others = result.text.split("\n")
        return [(f"{result.confidence:.4f}", first), *(("", line) for line in others)]


class LineReading(NamedTuple):
    """A text, its confidence (see `Reading`), and the log-odds that it is in a script that the reader does not know.

    words: with their places, from readers that know these.
    """

    text: str
    confidence: float
    script_odds: float
    words: tuple[LineWord, ...] = ()


def group_parts(parts: Sequence[LineText], counts: Sequence[int]) -> list[LineText]:
    """Lines from their parts; counts: the parts of each."""
    return [join_parts(parts[end - n : end]) for n, end in zip(counts, itertools.accumulate(counts), strict=True)]


def join_parts(parts: Sequence[LineText]) -> LineText:
    """A line's text, log-probabilities, end and odds, from those of its parts."""
    texts, logprobs, whole, odds = zip(*parts, strict=True)
    words = (text.strip() for text in texts) if len(texts) > 1 else texts
    return " ".join(text for text in words if text), np.concatenate(logprobs), all(whole), max(odds)


def join_lines(lines: Sequence[LineText]) -> LineReading:
    logprobs = np.concatenate([p for _, p, *_ in lines])
    confidence = float(np.exp(logprobs.mean(dtype=np.float64)))
    return LineReading("\n".join(text for text, *_ in lines), confidence, max(odds for *_, odds in lines))
