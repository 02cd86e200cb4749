"""Figures of end results: errors of words, and the order of what was found."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import takewhile

import numpy as np

_LETTER_WORDS = "\u3040-\u30ff\u3400-\u9fff"  # kana and Han: scripts without spaces, whose letters are counted


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, without punctuation; of Chinese and Japanese the letters."""
    text = unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'")
    return re.findall(rf"[{_LETTER_WORDS}]|(?:(?![{_LETTER_WORDS}])[\w'])+", text)


def count_edits(found: Sequence[str], wanted: Sequence[str]) -> int:
    """The fewest words to insert, leave out or replace that turn `found` into `wanted`."""
    row = list(range(len(wanted) + 1))
    for i, a in enumerate(found, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(wanted, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def word_error_rate(found: Sequence[str], wanted: Sequence[str]) -> float:
    """The edits of all texts over the number of words that were wanted."""
    return word_errors(found, wanted) / sum(len(words_of(text)) for text in wanted)


def word_errors(found: Sequence[str], wanted: Sequence[str]) -> int:
    """The edits of all texts."""
    return sum(count_edits(words_of(a), words_of(b)) for a, b in zip(found, wanted, strict=True))


def ndcg_at_10(scores: np.ndarray, relevant: Sequence[Mapping[int, float]]) -> float:
    """The mean over queries of nDCG@10.  scores: (queries, texts).  relevant: the gain of each text that has one."""
    discounts, found = 1 / np.log2(np.arange(2, 12)), []
    for row, gains in zip(scores, relevant, strict=True):
        order = np.argsort(-row, kind="stable")[:10]
        best = np.sort(np.array(list(gains.values())))[::-1][:10]
        own = np.array([gains.get(int(i), 0.0) for i in order])
        found.append(float(own @ discounts[: len(own)]) / float(best @ discounts[: len(best)]))
    return float(np.mean(found))


def perplexity(logits: np.ndarray, ids: Sequence[int]) -> float:
    """Of the tokens after the first.  logits: of the token after each (T, V)."""
    rows = logits[:-1] - logits[:-1].max(-1, keepdims=True)
    chances = rows[np.arange(len(rows)), ids[1:]] - np.log(np.exp(rows).sum(-1))
    return math.exp(-float(chances.mean()))


def count_same(found: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]]) -> int:
    """The tokens before the first other one, of all rows."""
    rows = zip(found, wanted, strict=True)
    return sum(len(list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))) for a, b in rows)
