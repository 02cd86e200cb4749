"""Which regular expressions of a tokenizer file are safe to run: the engine backtracks, and a file is a stranger's.

A pattern is taken if its shape alone bounds the work: at most one repetition in an alternative can be taken back
because something after it fails, it is of one kind of character (a word, a run of spaces), nothing that repeats is
repeated, and the ways to match what is left are few.  What remains is quadratic in the longest run of one kind, at
worst.  All patterns of the known families are of this shape.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

MAX_LENGTH = 2_000  # characters of a pattern
MAX_WAYS = 2_000  # of matching the parts of one alternative that are optional or have alternatives
MAX_COUNT = 1_000  # of {m,n}
ENDLESS = 32  # counts from which a repetition is treated as one without end

_QUANTIFIER = re.compile(r"[*+?]|\{(\d{1,4})?(,)?(\d{1,4})?\}")
_ESCAPE = re.compile(
    r"\\(?:[pP]\{\^?[\w ]{1,40}\}|x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|[^\w]|[sSdDwWhHnrtfvbBAzZ])"
)
_OPEN = re.compile(r"\((?:\?:|\?i:|\?=|\?!|\?<=|\?<!|(?!\?))")
_WIDE = ("\\S", "\\D", "\\W", "\\P", "\\p{^", "[^")


class _Part(NamedTuple):
    """A piece of a pattern: how it may repeat, and what can be taken back in it."""

    least: int  # characters (or tests) that it needs
    loops: int  # repetitions without end within it that can be taken back
    ways: int  # of matching it otherwise
    tail: int = 0  # repetitions without end that can be taken back if what follows fails
    fixed: bool = False  # always of one length, in one way
    wide: bool = False  # of characters of more than one kind


class UnsafePatternError(ValueError):
    """A pattern that is too long, not understood, or of a shape that can take for ever."""


def check_pattern(pattern: str) -> None:
    """UnsafePatternError unless the work that a pattern makes is bounded by its shape."""
    if len(pattern) > MAX_LENGTH:
        raise UnsafePatternError(f"{len(pattern)} characters, at most {MAX_LENGTH} are taken")
    body = pattern.removeprefix("(?i)")
    part, at = _alternatives(body, 0, 0)
    if at != len(body):
        raise UnsafePatternError(f"{body[at : at + 10]!r} is not understood")
    if part.least == 0:
        raise UnsafePatternError("it matches nothing at all")


def _alternatives(text: str, at: int, depth: int) -> tuple[_Part, int]:
    if depth > 5:
        raise UnsafePatternError("its groups are nested too deeply")
    found: list[_Part] = []
    while True:
        part, at = _sequence(text, at, depth)
        found.append(part)
        if at == len(text) or text[at] != "|":
            break
        at += 1
    ways = sum(part.ways for part in found)
    if ways > MAX_WAYS:
        raise UnsafePatternError(f"it can match in more than {MAX_WAYS} ways")
    alone = len(found) == 1 and found[0].fixed
    least, loops, tail = min(p.least for p in found), max(p.loops for p in found), max(p.tail for p in found)
    return _Part(least, loops, ways, tail, alone, any(p.wide for p in found)), at


def _sequence(text: str, at: int, depth: int) -> tuple[_Part, int]:
    parts: list[_Part] = []
    while at < len(text) and text[at] not in "|)":
        part, at = _quantified(text, at, depth)
        parts.append(part)
    # What need not be there cannot fail, and of the last that must be there only the first character can.
    needed = len(parts)
    while needed and parts[needed - 1].least == 0 and not parts[needed - 1].loops:
        needed -= 1
    before, after = parts[: max(needed - 1, 0)], parts[max(needed - 1, 0) :]
    loops = sum(part.loops for part in parts) + sum(part.tail for part in before)
    if loops > 1:
        raise UnsafePatternError("more than one repetition in an alternative can be taken back")
    if any(part.tail and part.wide for part in before):
        raise UnsafePatternError("a repetition of characters of every kind, and something that may fail after it")
    ways = math.prod(part.ways for part in parts)
    if ways > MAX_WAYS:
        raise UnsafePatternError(f"it can match in more than {MAX_WAYS} ways")
    tail, fixed = sum(part.tail for part in after), all(part.fixed for part in parts)
    wide = any(part.wide for part in parts)
    return _Part(sum(part.least for part in parts), loops, ways, tail, fixed, wide), at


def _quantified(text: str, at: int, depth: int) -> tuple[_Part, int]:
    part, at = _atom(text, at, depth)
    match = _QUANTIFIER.match(text, at)
    if match is None:
        return part, at
    least, most = _counts(match)
    at = match.end()
    if match[0] in "*+?" and text[at : at + 1] in ("?", "+"):  # lazy, possessive; after a count they mean another thing
        at += 1
    if _QUANTIFIER.match(text, at):
        raise UnsafePatternError("a repetition is repeated")
    if least == most == 1:
        return part, at
    if most is not None and most <= ENDLESS and part.fixed:
        return _Part(part.least * least, 0, most - least + 1, 0, most == least, part.wide), at
    if (least, most) == (0, 1):
        return part._replace(least=0, ways=part.ways + 1, fixed=False), at
    if not part.fixed:
        raise UnsafePatternError("a group that can match in several ways is repeated")
    return _Part(part.least * least, 0, 1, 1, False, part.wide), at


def _counts(match: re.Match[str]) -> tuple[int, int | None]:
    if match[0] in "*+?":
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[match[0]]
    low, comma, high = match.groups()
    if low is None and high is None:
        raise UnsafePatternError(f"{match[0]!r} is not understood")
    least = int(low or 0)
    most = (int(high) if high else None) if comma else least
    if max(least, most or 0) > MAX_COUNT or (most is not None and not 0 < most >= least):
        raise UnsafePatternError(f"{match[0]!r} is out of range, expected counts up to {MAX_COUNT}")
    return least, most


_ONE = _Part(1, 0, 1, fixed=True)


def _atom(text: str, at: int, depth: int) -> tuple[_Part, int]:
    sign = text[at]
    if sign == "(":
        match = _OPEN.match(text, at)
        if match is None:
            raise UnsafePatternError(f"{text[at : at + 4]!r} is not a group that is taken")
        part, end = _alternatives(text, match.end(), depth + 1)
        if text[end : end + 1] != ")":
            raise UnsafePatternError("a group that is not closed")
        if match[0] in ("(?<=", "(?<!") and not part.fixed:
            raise UnsafePatternError("what stands before is not of one length")
        if match[0] in ("(?=", "(?!", "(?<=", "(?<!"):
            return _Part(1, part.loops + part.tail, part.ways), end + 1
        return part, end + 1
    if sign == "[":
        return _class(text, at)
    if sign == "\\":
        match = _ESCAPE.match(text, at)
        if match is None:
            raise UnsafePatternError(f"{text[at : at + 2]!r} is not an escape that is taken")
        wide = match[0].startswith(_WIDE)
        return _ONE._replace(wide=wide), match.end()
    if sign == ".":
        return _ONE._replace(wide=True), at + 1
    if sign in "*+?{}":
        if sign in "{}" and not _QUANTIFIER.match(text, at):
            return _ONE, at + 1
        raise UnsafePatternError(f"{sign!r} with nothing to repeat")
    return _ONE, at + 1


def _class(text: str, at: int) -> tuple[_Part, int]:
    """[...], which may hold others."""
    start, depth = at, 0
    while at < len(text):
        if text[at] == "\\":
            match = _ESCAPE.match(text, at)
            if match is None:
                raise UnsafePatternError(f"{text[at : at + 2]!r} is not an escape that is taken")
            at = match.end()
            continue
        if text.startswith("&&", at):
            raise UnsafePatternError("'&&' in a class of characters is not taken")
        depth += (text[at] == "[") - (text[at] == "]")
        at += 1
        if depth == 0:
            found = text[start:at]
            spaces = "\\s" in found or " " in found
            words = "\\w" in found or "\\p{" in found or "-z" in found or "-Z" in found
            return _ONE._replace(wide=any(sign in found for sign in _WIDE) or (spaces and words)), at
    raise UnsafePatternError("a class of characters that is not closed")
