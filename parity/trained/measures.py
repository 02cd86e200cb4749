"""Figures of end results: errors of words, and the order of what was found."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, without punctuation."""
    return re.findall(r"[\w']+", unicodedata.normalize("NFKC", text).lower())


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
    pairs = [(words_of(a), words_of(b)) for a, b in zip(found, wanted, strict=True)]
    return sum(count_edits(a, b) for a, b in pairs) / sum(len(b) for _, b in pairs)


def ndcg_at_10(scores: np.ndarray, relevant: Sequence[Mapping[int, float]]) -> float:
    """The mean over queries of nDCG@10.  scores: (queries, texts).  relevant: the gain of each text that has one."""
    discounts, found = 1 / np.log2(np.arange(2, 12)), []
    for row, gains in zip(scores, relevant, strict=True):
        order = np.argsort(-row, kind="stable")[:10]
        best = np.sort(np.array(list(gains.values())))[::-1][:10]
        own = np.array([gains.get(int(i), 0.0) for i in order])
        found.append(float(own @ discounts[: len(own)]) / float(best @ discounts[: len(best)]))
    return float(np.mean(found))
