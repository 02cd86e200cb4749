"""Regular expressions of a tokenizer file that are safe to run: the library's engine backtracks.

A pattern is taken if its shape bounds the work.  In each alternative at most one repetition can give characters back
because something after it fails, and it is of one kind of character (a word, a run of spaces).  Nothing that can match
in several ways is repeated, and there are few ways to match what is optional.  The rest is quadratic in the longest run
of one kind of character, at worst.  All patterns of the known families have this shape.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

MAX_LENGTH = 2_000  # characters of a pattern
MAX_GROUPS = 100
MAX_WAYS = 2_000  # ways to match what is optional, or has alternatives
MAX_COUNT = 1_000  # the counts of {m,n}
MIN_ENDLESS_COUNT = 32  # counts from which a repetition is treated as one without end

_GROUP = re.compile(r"\((?:\?:|\?i:|\?=|\?!|\?<=|\?<!|(?!\?))")
_ESCAPE = re.compile(
    r"\\(?:[pP]\{\^?[\w ]{1,40}\}|x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|[^\w]|[sSdDwWhHnrtfvbBAzZ])"
)
_REPEAT = re.compile(r"[*+?]|\{(?=,?\d)(\d*)(,?)(\d*)\}")
_WIDE_CLASSES = ("\\S", "\\D", "\\W", "\\P", "\\p{^", "[^", ".")


class UnsafePatternError(ValueError):
    """A pattern that is too long, not understood, or of a shape that can take for ever."""


class _Part(NamedTuple):
    """A piece of a pattern, and how it can match."""

    least: int = 1  # characters (or tests) that it needs
    loops: int = 0  # repetitions without end that give characters back to something within the piece
    tail: int = 0  # repetitions without end that give characters back if what follows the piece fails
    ways: int = 1  # other ways to match it
    is_fixed: bool = True  # it matches texts of one length, in one way
    is_wide: bool = False  # it matches characters of more than one kind


def check_pattern(pattern: str) -> None:
    """UnsafePatternError unless the shape of a pattern bounds its work."""
    if len(pattern) > MAX_LENGTH or pattern.count("(") > MAX_GROUPS:
        raise UnsafePatternError(f"it has more than {MAX_LENGTH} characters or {MAX_GROUPS} groups")
    body = pattern.removeprefix("(?i)")
    part, at = _alternatives(body, 0)
    if at != len(body):
        raise UnsafePatternError(f"{body[at : at + 10]!r} is not understood")
    if part.least == 0:
        raise UnsafePatternError("it matches the empty text")
    if part.loops > 1:
        raise UnsafePatternError("its repetitions can give characters back in too many ways")
    if part.ways > MAX_WAYS:
        raise UnsafePatternError(f"it can match in more than {MAX_WAYS} ways")


def _alternatives(text: str, at: int) -> tuple[_Part, int]:
    part, at = _sequence(text, at)
    found = [part]
    while text[at : at + 1] == "|":
        part, at = _sequence(text, at + 1)
        found.append(part)
    least, loops, tail = min(p.least for p in found), max(p.loops for p in found), max(p.tail for p in found)
    is_fixed, is_wide = len(found) == 1 and found[0].is_fixed, any(p.is_wide for p in found)
    return _Part(least, loops, tail, sum(p.ways for p in found), is_fixed, is_wide), at


def _sequence(text: str, at: int) -> tuple[_Part, int]:
    parts: list[_Part] = []
    while at < len(text) and text[at] not in "|)":
        part, at = _atom(text, at)
        part, at = _repeat_part(part, text, at)
        parts.append(part)
    # What need not match cannot fail, and of the last part that must match only the first character can.
    last = max((i for i, part in enumerate(parts) if part.least or part.loops), default=0)
    given_back = [part for part in parts[:last] if part.tail]
    loops = sum(part.loops for part in parts) + sum(part.tail for part in given_back)
    if any(part.is_wide for part in given_back):
        raise UnsafePatternError("something may fail after a repetition of characters of every kind")
    is_fixed, is_wide = all(part.is_fixed for part in parts), any(part.is_wide for part in parts)
    tail, ways = sum(part.tail for part in parts[last:]), math.prod(part.ways for part in parts)
    return _Part(sum(part.least for part in parts), loops, tail, ways, is_fixed, is_wide), at


def _repeat_part(part: _Part, text: str, at: int) -> tuple[_Part, int]:
    """A part with the *, +, ? or {m,n} that follows it."""
    if (match := _REPEAT.match(text, at)) is None:
        return part, at
    at = match.end()
    if match[0] in "*+?":
        least, most = int(match[0] == "+"), 1 if match[0] == "?" else None
        if text[at : at + 1] in ("?", "+"):  # lazy, possessive
            at += 1
    else:
        least = int(match[1] or 0)
        most = int(match[3]) if match[3] else None if match[2] else least
        if max(least, most or 0) > MAX_COUNT or (most is not None and not 0 < most >= least):
            raise UnsafePatternError(f"{match[0]!r} is out of range, expected counts up to {MAX_COUNT}")
    if _REPEAT.match(text, at):
        raise UnsafePatternError("a repetition is repeated")
    if (least, most) == (0, 1):
        return part._replace(least=0, ways=part.ways + 1, is_fixed=False), at
    if least == most == 1:
        return part, at
    if not part.is_fixed:
        raise UnsafePatternError("a group that can match in several ways is repeated")
    if most is not None and most <= MIN_ENDLESS_COUNT:
        return part._replace(least=part.least * least, ways=most - least + 1, is_fixed=most == least), at
    return part._replace(least=part.least * least, tail=1, is_fixed=False), at


def _atom(text: str, at: int) -> tuple[_Part, int]:
    """A group, a class of characters, an escape or a character."""
    if text[at] == "(":
        if (match := _GROUP.match(text, at)) is None:
            raise UnsafePatternError(f"{text[at : at + 4]!r} is not a group that is taken")
        part, end = _alternatives(text, match.end())
        if text[end : end + 1] != ")":
            raise UnsafePatternError("a group that is not closed")
        if match[0] in ("(?<=", "(?<!") and not part.is_fixed:
            raise UnsafePatternError("a look behind that is not of one length")
        if match[0] in ("(?=", "(?!", "(?<=", "(?<!"):
            part = _Part(loops=part.loops + part.tail, ways=part.ways, is_fixed=False)
        return part, end + 1
    if text[at] == "[":
        return _class(text, at)
    if text[at] == "\\":
        found = _escape(text, at)
        return _Part(is_wide=found.startswith(_WIDE_CLASSES)), at + len(found)
    if _REPEAT.match(text, at):
        raise UnsafePatternError(f"{text[at]!r} with nothing to repeat")
    return _Part(is_wide=text[at] == "."), at + 1


def _escape(text: str, at: int) -> str:
    if (match := _ESCAPE.match(text, at)) is None:
        raise UnsafePatternError(f"{text[at : at + 2]!r} is not an escape that is taken")
    return match[0]


def _class(text: str, at: int) -> tuple[_Part, int]:
    """[...], which may hold others."""
    start, depth = at, 0
    while at < len(text):
        if text[at] == "\\":
            at += len(_escape(text, at))
            continue
        if text.startswith(("&&", "[]", "[^]"), at):
            raise UnsafePatternError(f"{text[at : at + 3]!r} in a class of characters is not taken")
        depth += (text[at] == "[") - (text[at] == "]")
        at += 1
        if depth == 0:
            found = text[start:at]
            spaces = "\\s" in found or " " in found
            words = any(sign in found for sign in ("\\w", "\\p{", "-z", "-Z"))
            return _Part(is_wide=any(sign in found for sign in _WIDE_CLASSES[:-1]) or (spaces and words)), at
    raise UnsafePatternError("a class of characters that is not closed")
