"""Texts from the probabilities of each place's character (CTC, Graves et al. 2006).

Shapes: T places along a line, V characters, the first of which is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

BLANK_ID = 0  # the character that is none


class CtcText(NamedTuple):
    """The characters of a text, the place of each (C,), and their mean probability (0.0 without any)."""

    characters: list[str]
    places: np.ndarray
    confidence: float

    @property
    def text(self) -> str:
        return "".join(self.characters)


def decode_best_path(probabilities: np.ndarray, alphabet: Sequence[str]) -> CtcText:
    """The text of the likeliest character of each place.

    probabilities (T, V); alphabet: V strings, the first of which is never written.  A character that stays for several
    places is one, and between two equal ones is a blank.
    """
    ids = probabilities.argmax(-1)
    begins = ids != BLANK_ID
    begins[1:] &= ids[1:] != ids[:-1]
    places = np.flatnonzero(begins)
    confidence = float(probabilities[places, ids[places]].mean()) if len(places) else 0.0
    return CtcText([alphabet[int(i)] for i in ids[places]], places, confidence)
