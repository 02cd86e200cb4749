"""Two texts with their differences marked, word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

WORDS = re.compile(r"\s+|\w+|[^\w\s]")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f]")  # each has a visible symbol in Unicode
STRANGE = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# Words in a row of scripts that are written from right to left.
TURNED = re.compile(r"([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?: [\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*)")
MAX_WORDS = 5000  # of a text that is compared word by word: the time grows with their square


class Fragment(NamedTuple):
    text: str
    marked: bool


def differences(ours: str, reference: str) -> tuple[list[Fragment], list[Fragment]]:
    """Both texts in pieces, marked where the other text differs."""
    a, b = WORDS.findall(ours), WORDS.findall(reference)
    if max(len(a), len(b)) > MAX_WORDS:
        a, b = ours.splitlines(keepends=True), reference.splitlines(keepends=True)
    left: list[Fragment] = []
    right: list[Fragment] = []
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for pieces, words in ((left, a[i:j]), (right, b[k:m])):
            if words:
                pieces.append(Fragment(visible("".join(words)), kind != "equal"))
    return left, right


def runs(text: str) -> list[tuple[str, bool]]:
    """The text in parts, with True for words from right to left, which swap places with figures beside them."""
    return [(part, i % 2 == 1) for i, part in enumerate(TURNED.split(text)) if part]


def visible(text: str) -> str:
    """The text with a symbol for each character that HTML cannot show, or that reverses the text after it."""
    return STRANGE.sub("\N{REPLACEMENT CHARACTER}", CONTROLS.sub(lambda found: chr(0x2400 + ord(found[0])), text))
