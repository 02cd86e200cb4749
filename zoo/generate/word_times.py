"""When each word of a window of speech is said: where the decoder's attention looks, as a path through time (dynamic
time warping), as Radford et al. 2022 (https://arxiv.org/abs/2212.04356) have it in their code.

Shapes: A attention heads, T tokens, M states of the encoder, H heads of a layer, K head size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..typing import Array
from .decoder import numpy_logits

REPLACEMENT = "\ufffd"  # what bytes that are no whole character are written as
SPACELESS_LANGUAGES = frozenset(("zh", "ja", "th", "lo", "my", "yue"))  # languages that are written without spaces
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
LEADING_PUNCTUATION = "\"'“¡¿([{-"  # is of the word after it
TRAILING_PUNCTUATION = "\"'.。,，!！?？:：”)]}、"  # is of the word before it


class WordTokens(NamedTuple):
    """A word, as the tokenizer writes it, and the places of its tokens."""

    text: str
    at: list[int]


def attention_shares(
    queries: Sequence[Array], keys: Mapping[int, Array], heads: Sequence[tuple[int, int]]
) -> np.ndarray:
    """How some heads, (layer, head), share their attention among the states, (A, T, M).

    queries: of each layer (1, T, H, K).  keys: of each layer (1, M, H, K).
    """
    found = []
    for layer, head in heads:
        q, k = (numpy_logits(x[0, :, head]) for x in (queries[layer], keys[layer]))
        scores = q @ k.T * np.float32(q.shape[1] ** -0.5)
        shares = np.exp(scores - scores.max(1, keepdims=True))
        found.append(shares / shares.sum(1, keepdims=True))
    return np.stack(found)


def token_states(attention: np.ndarray, width: int) -> np.ndarray:
    """The state (T,) at which the model begins to look where it looks after each token.

    attention (A, T, M): shares of some heads.  width: of the median filter over states, odd.
    """
    total = np.zeros(attention.shape[1:])
    for head in attention.astype(np.float64):
        spread = head.std(0)
        normal = (head - head.mean(0)) / np.where(spread > 0, spread, 1)
        total += filter_median(normal, width)
    tokens, states = warp_time(-total / len(attention))
    return states[np.flatnonzero(np.diff(tokens, prepend=-1))]


def filter_median(x: np.ndarray, width: int) -> np.ndarray:
    """The median of `width` neighbours of each of x (..., M), which is mirrored at both ends."""
    half = width // 2
    if x.shape[-1] <= half:
        return x
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(half, half)], mode="reflect")
    neighbours = np.lib.stride_tricks.sliding_window_view(padded, width, -1)
    return np.partition(neighbours, half, -1)[..., half]


def warp_time(costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cheapest path from the first to the last of both axes of costs (T, M), which never goes back: the places
    (P,) on each axis.
    """
    T, M = costs.shape
    total = np.full((T + 1, M + 1), np.inf, np.float32)  # as in transformers, so that the same paths are equally cheap
    total[0, 0] = 0
    came = np.zeros((T + 1, M + 1), np.int8)  # 0: both axes, 1: the first, 2: the second
    came[0], came[:, 0] = 2, 1
    for d in range(2, T + M + 1):  # the cells of a diagonal do not depend on one another
        i = np.arange(max(1, d - M), min(T, d - 1) + 1)
        j = d - i
        both, first, second = total[i - 1, j - 1], total[i - 1, j], total[i, j - 1]
        step = np.where((both < first) & (both < second), 0, np.where((first < both) & (first < second), 1, 2))
        came[i, j] = step
        total[i, j] = costs[i - 1, j - 1] + np.choose(step, (both, first, second))
    path, i, j = [], T, M
    while i > 0 or j > 0:
        path.append((i - 1, j - 1))
        step = came[i, j]
        i, j = i - (step != 2), j - (step != 1)
    places = np.array(path[::-1])
    return places[:, 0], places[:, 1]


def words_of(tokens: Sequence[int], decode: Callable[[list[int]], str], language: str | None) -> list[WordTokens]:
    """The words of a text, with their punctuation; in a language without spaces its characters."""
    pieces = _characters(tokens, decode)
    if language not in SPACELESS_LANGUAGES:
        words: list[WordTokens] = []
        for text, at in pieces:
            if words and not text.startswith(" ") and text.strip() not in PUNCTUATION:
                words[-1] = WordTokens(words[-1].text + text, words[-1].at + at)
            else:
                words.append(WordTokens(text, at))
        pieces = words
    return _with_punctuation(pieces)


def _characters(tokens: Sequence[int], decode: Callable[[list[int]], str]) -> list[WordTokens]:
    """The fewest tokens each that are whole characters."""
    whole, found, waiting, written = decode([*tokens]), [], list[int](), 0
    for i in range(len(tokens)):
        waiting.append(i)
        text = decode([tokens[at] for at in waiting])
        broken = written + text.find(REPLACEMENT)
        is_whole = REPLACEMENT not in text or broken >= len(whole) or whole[broken] == REPLACEMENT
        if is_whole or i == len(tokens) - 1:
            found.append(WordTokens(text, waiting))
            written, waiting = written + len(text), []
    return found


def _with_punctuation(words: list[WordTokens]) -> list[WordTokens]:
    """Words with the punctuation before and after them."""
    found: list[WordTokens] = []
    for word in reversed(words):
        if found and word.text.startswith(" ") and word.text.strip() in LEADING_PUNCTUATION:
            found[-1] = WordTokens(word.text + found[-1].text, word.at + found[-1].at)
        else:
            found.append(word)
    words, found = found[::-1], []
    for word in words:
        if found and not found[-1].text.endswith(" ") and word.text in TRAILING_PUNCTUATION:
            found[-1] = WordTokens(found[-1].text + word.text, found[-1].at + word.at)
        else:
            found.append(word)
    return found
