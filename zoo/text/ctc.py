"""Texts from the probabilities of each place's character (CTC, Graves et al. 2006).

Shapes: T places along a line, V characters, the first of which is none, C characters of a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

BLANK_ID = 0  # the character that is none


class CtcText(NamedTuple):
    """The characters of a text, and the place and the probability of each (C,)."""

    characters: list[str]
    places: np.ndarray
    probabilities: np.ndarray

    @property
    def confidence(self) -> float:
        """The mean probability; 0.0 without characters."""
        return float(self.probabilities.mean()) if len(self.probabilities) else 0.0

    @property
    def text(self) -> str:
        return "".join(self.characters)


def character_runs(ids: np.ndarray, blank: int = BLANK_ID) -> tuple[np.ndarray, np.ndarray]:
    """The first place of each character, and the place after its last: (C,), (C,).

    ids (T,): the likeliest character of each place.  One that stays for several places is one, and between two equal
    ones is a blank.
    """
    begins = np.append(True, ids[1:] != ids[:-1]) if len(ids) else np.zeros(0, bool)
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(ids))
    is_character = ids[starts] != blank
    return starts[is_character], ends[is_character]


def decode_best_path(probabilities: np.ndarray, alphabet: Sequence[str]) -> CtcText:
    """The text of the likeliest character of each place.

    probabilities (T, V); alphabet: V strings, the first of which is never written.
    """
    ids = probabilities.argmax(-1)
    places, _ = character_runs(ids)
    return CtcText([alphabet[int(i)] for i in ids[places]], places, probabilities[places, ids[places]])
