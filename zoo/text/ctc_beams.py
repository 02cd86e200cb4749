"""CtcBeams: the likeliest texts of a recording, all paths of a text taken together (CTC, Graves et al. 2006), with the
scores of a language model and of hotwords for whole words (Hannun et al. 2014, https://arxiv.org/abs/1408.2873).

Scores are those of pyctcdecode.  Shapes: T states of a recording, V ids.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from .ctc_vocabulary import CtcVocabulary, Span
from .ngrams import NgramModel

LEAST_ID = -5.0  # log-probability: a state's ids below it are left out, but for the likeliest
LEAST_BEAM = -10.0  # a text so far below the best one is left out
LEAST_PROBABILITY = math.log(1e-15)
HOTWORD_WEIGHT = 10.0  # what a hotword adds to the score of a text

Heard = tuple["Heard | None", str, int, int]  # those before; a character; its first state and the one after its last


class Hypothesis(NamedTuple):
    """A text that a recording may have.  score: the logarithm of its probability, with what language model and hotwords
    add."""

    spans: list[Span]
    score: float


class _Words:
    """The whole words of a text, by what is added to its score and the state of the language model."""

    __slots__ = ("__weakref__", "score", "state")

    def __init__(self, score: float, state: Any):
        self.score, self.state = score, state


Key = tuple[_Words, str, int]  # whole words, what is heard of the next one, and the last id
Beam = tuple[float, float, "Heard | None"]  # the logarithms of all paths' probability and of the likeliest's, its times


class CtcBeams:
    """A search that goes on from block to block of a recording's states, in memory that does not grow with them but for
    the texts themselves.

    width: the number of texts that are followed.  ngrams: scores of words.  hotwords: words that are likelier here,
    each by hotword_weight, which is added to a text's score.
    """

    def __init__(
        self,
        vocabulary: CtcVocabulary,
        width: int,
        ngrams: NgramModel | None = None,
        hotwords: Sequence[str] = (),
        hotword_weight: float = HOTWORD_WEIGHT,
    ):
        self.width, self.ngrams = width, ngrams
        self.blank, self.space = vocabulary.blank, vocabulary.space
        self.vocabulary = vocabulary
        self.hotwords = sorted({word for one in hotwords for word in one.split()}, key=len)
        self.hotword_weight = hotword_weight
        self.states = 0
        start = _Words(0.0, None if ngrams is None else ngrams.start())
        self.beams: dict[Key, Beam] = {(start, "", self.blank): (0.0, 0.0, None)}
        # The same words are the same object, as long as a text has them.
        self._longer: WeakValueDictionary[tuple[_Words, str], _Words] = WeakValueDictionary()
        self._parts: dict[str, float] = {}

    def advance(self, logits: np.ndarray) -> None:
        """Hear further states.  logits (T, V)."""
        logits = logits.astype(np.float64)
        shifted = logits - logits.max(-1, keepdims=True)
        scores = np.maximum(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)), LEAST_PROBABILITY)
        for row in scores:
            self._hear(row)
            self.states += 1

    def finish(self) -> list[Hypothesis]:
        """The texts, the best first."""
        whole: dict[Key, Beam] = {}
        for (words, part, _), beam in self.beams.items():
            key = (self._add(words, part) if part else words, "", self.blank)
            whole[key] = _merge(whole[key], beam) if key in whole else beam
        out = []
        for (words, _, _), (paths, _, heard) in whole.items():
            end = 0.0 if self.ngrams is None else self.ngrams.score_end(words.state)
            out.append(Hypothesis(_spans(heard), paths + words.score + end))
        return sorted(out, key=lambda one: -one.score)

    def _hear(self, row: np.ndarray) -> None:
        """Hear one state.  row (V,): the logarithms of the probabilities."""
        likely, now = np.flatnonzero(row >= LEAST_ID), self.states
        found: dict[Key, Beam] = {}
        for i in likely.tolist() if len(likely) else [int(row.argmax())]:
            score, (i, text) = float(row[i]), self._character(i)
            is_blank, is_space, begins, bare = i == self.blank, text == self.space, text[:1] == " ", text.lstrip(" ")
            for (words, part, last), (paths, best, heard) in self.beams.items():
                if is_blank:
                    pass
                elif i == last:
                    heard = heard and (*heard[:3], now + 1)
                elif is_space:
                    if part:
                        words, part, heard = self._add(words, part), "", (heard, text, now, now + 1)
                else:
                    if begins and part:  # a piece with the space before it
                        words, part = self._add(words, part), ""
                    part, heard = part + bare, (heard, text, now, now + 1)
                key, beam = (words, part, i), (paths + score, best + score, heard)
                found[key] = _merge(found[key], beam) if key in found else beam
        totals = {key: beam[0] + key[0].score + self._score_part(key[1]) for key, beam in found.items()}
        least = max(totals.values()) + LEAST_BEAM
        kept = sorted((key for key, total in totals.items() if total >= least), key=lambda key: -totals[key])
        self.beams = {key: found[key] for key in kept[: self.width]}

    def _character(self, i: int) -> tuple[int, str]:
        """The id and the text that stand for an id."""
        vocabulary = self.vocabulary
        if i not in vocabulary.characters:
            i = vocabulary.blank if vocabulary.unknown is None else vocabulary.unknown
        text = vocabulary.characters[i]
        return i, vocabulary.space if text == vocabulary.delimiter else text

    def _add(self, words: _Words, word: str) -> _Words:
        """Words, and one more."""
        if (longer := self._longer.get((words, word))) is None:
            score, state = (0.0, None) if self.ngrams is None else self.ngrams.score(words.state, word)
            longer = _Words(words.score + score + self.hotword_weight * (word in self.hotwords), state)
            self._longer[words, word] = longer
        return longer

    def _score_part(self, part: str) -> float:
        """What the beginning of a word adds."""
        if not part:
            return 0.0
        if part not in self._parts:
            if len(self._parts) > 100_000:
                self._parts.clear()
            shortest = next((word for word in self.hotwords if word.startswith(part)), None)
            if shortest is not None:
                self._parts[part] = self.hotword_weight * len(part) / len(shortest)
            else:
                self._parts[part] = 0.0 if self.ngrams is None else self.ngrams.score_part(part)
        return self._parts[part]


def _merge(a: Beam, b: Beam) -> Beam:
    """The paths of both, with the times of the likeliest."""
    (best, heard), high, low = max(a[1:], b[1:], key=lambda one: one[0]), max(a[0], b[0]), min(a[0], b[0])
    return high + math.log1p(math.exp(low - high)), best, heard


def _spans(heard: Heard | None) -> list[Span]:
    out = []
    while heard is not None:
        heard, text, start, end = heard
        out.append(Span(text, start, end))
    return out[::-1]
