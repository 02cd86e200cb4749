"""Signs that are drawn and not read: dots that lead the eye to a number, and rules of typewritten dashes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from .table import Word
from .text_lines import word_lines

LEADER = re.compile(r"\s*([.…·_]\s?){4,}$")  # three dots are an ellipsis, or stand for a number that is missing
RULE = re.compile(r"[-–—=_]{8,}")
DOTS = re.compile(r"[.·…]{1,3}")  # dots of leaders that are set apart, ". . . .", four words or more in a row
MIN_DOTS = 4
DOT_WIDTH = 0.5  # share of a letter's width: a dot's, in print


def without_leaders(words: Sequence[Word]) -> list[Word]:
    """The words without leaders, alone or at their ends, and without rules of dashes."""
    found = list(_words_without_leaders(words))
    apart = {id(word) for line in word_lines(found) for word in _leaders(line)}
    return [word for word in found if id(word) not in apart]


def _words_without_leaders(words: Sequence[Word]) -> Iterator[Word]:
    for word in words:
        text = LEADER.sub("", word.text)
        if RULE.fullmatch(text.strip()) or (not text and word.text):
            continue
        if text != word.text:
            x0, y0, x1, y1 = word.box
            rest = len(word.text) - len(text)
            word = replace(
                word, text=text, box=(x0, y0, x0 + (x1 - x0) * len(text) / (len(text) + DOT_WIDTH * rest), y1)
            )
        yield word


def _leaders(line: Sequence[Word]) -> Iterator[Word]:
    """The words of a line that are dots, of runs of LEAST."""
    run: list[Word] = []
    for word in [*sorted(line, key=lambda w: w.box), None]:
        if word is not None and DOTS.fullmatch(word.text):
            run.append(word)
            continue
        if len(run) >= MIN_DOTS:
            yield from run
        run = []
