"""Texts that spreadsheet programs run as formulas when they open CSV."""

from __future__ import annotations

import re
import unicodedata

# A text that begins with one of these is a formula to spreadsheet programs, to some of them also in the wide and small
# forms, which compatibility normalization (NFKC) makes the same.
FORMULA = "=+-@\u2212%|"
# Separators at which some programs split fields or rows even within quotes.
PARTS = re.compile(r"([;\t\r\n\v\f\x85\u2028\u2029]+)")
# Letters and symbols that are invisible: Hangul fillers and the empty Braille pattern.
BLANK_CHARACTERS = "\u115f\u1160\u3164\uffa0\u2800"
# What begins like a formula and is none, in the syntax that Python and JavaScript share (the review page has it too): a
# number with its sign, currency, thousands, percent sign and marks of footnotes; signs alone, such as the dash for a
# missing number; and "% of total", a heading without anything that calls or computes.
_MONEY, _SPACES = "$\u20ac\u00a3\u00a5\u20b9", " '\u2019\u00a0\u202f\u2009"
HARMLESS_PATTERN = (
    rf"[+\-\u2212]? ?[{_MONEY}]? ?([0-9]+([.,][0-9]+)*|[0-9]{{1,3}}([{_SPACES}][0-9]{{3}})+([.,][0-9]+)?|[.,][0-9]+)"
    rf"([eE][+\-]?[0-9]+)?[ \u00a0\u202f]?[%\u2030{_MONEY}]?[*\u2020\u2021\u00a7]*"
    r"|[+\-\u2212\u2013\u2014/ ]+|[%|]|%[ \u00a0][^=+@|!'\u2212]*"
)
_HARMLESS_TEXT = re.compile(HARMLESS_PATTERN)


def escape_formulas(text: str) -> str:
    """The text, with an apostrophe before each part of it that a spreadsheet program could run as a formula.

    A part begins at the start, or after a semicolon, tab or line end.  It is a formula if it begins with = + - @ % | or
    a minus sign, also in their wide and small forms and after invisible characters, unless it is a number such as -3.5
    or +10 %, a dash alone, or a heading such as "% of total" (HARMLESS).
    """
    parts = PARTS.split(text)
    parts[::2] = ["'" + part if _is_formula(part) else part for part in parts[::2]]
    begin = text.lstrip(" ")[:1]
    return ("'" if begin and PARTS.match(begin) and begin != ";" else "") + "".join(parts)


def _is_formula(text: str) -> bool:
    begin = next(
        (i for i, c in enumerate(text) if unicodedata.category(c)[0] not in "CMZ" and c not in BLANK_CHARACTERS),
        len(text),
    )
    bare = text[begin:].rstrip(" ")
    return unicodedata.normalize("NFKC", bare[:1]).startswith(tuple(FORMULA)) and not _HARMLESS_TEXT.fullmatch(bare)
