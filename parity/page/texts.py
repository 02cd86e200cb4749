"""Two texts with what differs between them marked, word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

WORDS = re.compile(r"\s+|\w+|[^\w\s]")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f]")  # each of which has an image
STRANGE = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# Words of scripts that are written from right to left, one after the other.
TURNED = re.compile(r"([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?: [\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*)")
MAX_WORDS = 5000  # of a text that is compared word by word: more take a time that grows with their square


class Piece(NamedTuple):
    text: str
    marked: bool


def differences(ours: str, reference: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces, marked where the other one has something else or nothing."""
    a, b = WORDS.findall(ours), WORDS.findall(reference)
    if max(len(a), len(b)) > MAX_WORDS:
        a, b = ours.splitlines(keepends=True), reference.splitlines(keepends=True)
    left: list[Piece] = []
    right: list[Piece] = []
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for pieces, words in ((left, a[i:j]), (right, b[k:m])):
            if words:
                pieces.append(Piece(visible("".join(words)), kind != "equal"))
    return left, right


def runs(text: str) -> list[tuple[str, bool]]:
    """The text in parts, and whether each is of words from right to left, which swap with figures beside them."""
    return [(part, i % 2 == 1) for i, part in enumerate(TURNED.split(text)) if part]


def visible(text: str) -> str:
    """The text with a sign for each character that HTML has no place for, or that turns around what follows it."""
    return STRANGE.sub("\N{REPLACEMENT CHARACTER}", CONTROLS.sub(lambda found: chr(0x2400 + ord(found[0])), text))
