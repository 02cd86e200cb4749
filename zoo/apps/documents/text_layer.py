"""What of a PDF's text layer may not be what is seen: letters without Unicode, and fonts that stand for other letters.

A font's map from its glyphs to Unicode may be missing, which leaves private codes and replacement characters, or wrong:
then the text is letters, but not those on the page ("Uifsf" for "There").  In every language that is written in Latin
letters some pairs of them are common and others hardly occur; in text with a wrong map the rare ones are as frequent.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from .word import Word

NO_UNICODE = "its letters have no Unicode"
OTHER_LETTERS = "its font's letters are perhaps others"

PAIRS = Path(__file__).parents[2] / "data" / "letter-pairs.txt"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
STEP = 0.5  # bits between two digits of the table
ODD_SIGNS = "[\\]^_`{|}~@<>"  # between two letters: as rare as the rarest pair
# Bits of a pair, on average over twelve words: up to 8.8 in the table's sixteen languages, from 9.6 on where each
# letter stands for another.  A list of abbreviations has 10.2: compared with the picture, it is no longer doubted.
MAX_BITS = 9.2
MIN_PAIRS = 40  # a font with fewer pairs says little, so the average counts


def add_word_doubts(words: Sequence[Word], fonts: Sequence[int]) -> list[Word]:
    """The words, those that may not be what is seen with a `Word.doubt`; fonts: the number of each word's font."""
    wrong = _wrong_fonts(words, fonts)
    found = []
    for word, font in zip(words, fonts, strict=True):
        doubt = NO_UNICODE if is_unreadable(word.text) else OTHER_LETTERS if font in wrong else None
        found.append(word if doubt is None else replace(word, doubt=doubt))
    return found


def is_unreadable(text: str) -> bool:
    """Return True for a text with a replacement character or a private code, which stand for any letter."""
    return not text.isascii() and any(c == "\ufffd" or unicodedata.category(c) == "Co" for c in text)


def _wrong_fonts(words: Sequence[Word], fonts: Sequence[int]) -> set[int]:
    texts: dict[int, list[str]] = {}
    for word, font in zip(words, fonts, strict=True):
        texts.setdefault(font, []).append(word.text)
    return {font for font, of in texts.items() if mean_bits(of) > MAX_BITS}


def mean_bits(words: Iterable[str]) -> float:
    """How rare the pairs of letters in some words are: the mean of -log2 of their probability, 0.0 for few pairs."""
    text = " ".join(dict.fromkeys(words)).lower()
    if not text.isascii():  # letters lose their accents, and what is not Latin becomes "?"
        text = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", text))
    codes = _codes()[np.frombuffer(text.encode("ascii", "replace"), np.uint8)]
    found = _table()[codes[:-1], codes[1:]]
    found = found[found > 0]
    return float(found.mean()) if len(found) >= MIN_PAIRS else 0.0


@functools.cache
def _codes() -> np.ndarray:
    """The number of each of 128 characters: of a letter from 0, of ODD_SIGNS, of any other."""
    codes = np.full(128, len(LETTERS) + 1)
    codes[[ord(c) for c in LETTERS]] = np.arange(len(LETTERS))
    codes[[ord(c) for c in ODD_SIGNS]] = len(LETTERS)
    return codes


@functools.cache
def _table() -> np.ndarray:
    """The bits of each pair of characters' numbers (28, 28), 0.0 where one is no letter."""
    n = len(LETTERS)
    rows = PAIRS.read_text("ascii").split()
    table = np.zeros((n + 2, n + 2))
    table[:n, :n] = [[STEP * (ord(digit) - ord("0")) for digit in row] for row in rows]
    table[:n, n] = table[n, :n] = table.max()
    return table
