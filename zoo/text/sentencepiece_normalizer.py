"""SentencePiece's normalisation of texts, as it does it itself: the longest rule that fits at each place, then spaces.

The `tokenizers` library applies the rules to what is drawn as one letter, and so loses a second accent, which is right
only where transformers does the same.  (https://github.com/google/sentencepiece/blob/master/src/normalizer.cc)
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from .sentencepiece_model import USER_DEFINED, SentencePieceModel


class SentencePieceNormalizer:
    """What a model does to a text before it is cut into pieces.

    Its rules are a double array of 32 bits, and the texts that its leaves point into (see `guards`).
    """

    def __init__(self, source: SentencePieceModel):
        rules = source.charsmap
        size = int.from_bytes(rules[:4], "little")
        self._units: list[int] = np.frombuffer(rules, "<u4", size // 4, 4).tolist() if rules else []
        self._texts = rules[4 + size :]
        symbols = (piece.text for piece in source.pieces if piece.kind == USER_DEFINED)
        self._symbols = re.compile(_any_of(symbols).encode())
        self._prefix = "▁" if source.add_dummy_prefix else ""
        self._strips, self._escapes = source.remove_extra_whitespaces, source.escape_whitespaces

    def __call__(self, text: str, begins: bool = True) -> str:
        """The normalised text.  begins: False for one that follows another, whose first space is its own."""
        if not text:
            return ""
        text = self._with_rules(text)
        if self._strips:
            text = re.sub(" {2,}", " ", text)
            text = text.lstrip(" ") if begins else text
            if not text:
                return ""
        text = (self._prefix if begins else "") + (text.replace(" ", "▁") if self._escapes else text)
        # Spaces that a text types as "▁" go at its end alone.
        return text.rstrip("▁" if self._escapes else " ") if self._strips else text

    def _with_rules(self, text: str) -> str:
        if not self._units:
            return text
        data, at, out = text.encode(), 0, bytearray()
        while at < len(data):
            symbol = self._symbols.match(data, at)
            length, new = self._longest(data, at) if symbol is None else (symbol.end() - at, symbol[0])
            if length:
                out += new
            else:  # a character that no rule begins with
                length = 1 if data[at] < 0x80 else 2 if data[at] < 0xE0 else 3 if data[at] < 0xF0 else 4
                out += data[at : at + length]
            at += length
        return out.decode()

    def _longest(self, data: bytes, at: int) -> tuple[int, bytes]:
        """The length of the longest rule at a place, 0 if there is none, and its text."""
        units, node, length, value = self._units, 0, 0, 0
        node ^= units[0] >> 10 << ((units[0] & 1 << 9) >> 6)
        for i in range(at, len(data)):
            node ^= data[i]
            unit = units[node]
            if unit & 0x800000FF != data[i]:
                break
            node ^= unit >> 10 << ((unit & 1 << 9) >> 6)
            if unit >> 8 & 1:
                length, value = i + 1 - at, units[node] & 0x7FFFFFFF
        return length, self._texts[value : self._texts.index(0, value)] if length else b""


class Segments:
    """Cuts a text at its special tokens."""

    def __init__(self, special: Iterable[str]):
        self._pattern = re.compile(f"({_any_of(special)})")

    def split(self, text: str) -> list[str]:
        """The parts of a text; every other one is a special token."""
        return self._pattern.split(text)


def _any_of(texts: Iterable[str]) -> str:
    """A pattern of any text, the longest that fits; of nothing where there are none."""
    return "|".join(re.escape(text) for text in sorted(filter(None, texts), key=len, reverse=True)) or "(?!)"
