"""Texts as UTF-8, also those with a file name that is not: the one rule of all that is written.

Python has a byte of such a name as a lone surrogate, which UTF-8 does not have; it is written as an escape, `\\udcff`,
which in JSON is the same text again.
"""

from __future__ import annotations

ERRORS = "backslashreplace"


def to_utf8(text: str) -> bytes:
    """The bytes of a text."""
    return text.encode("utf-8", ERRORS)


def without_surrogates(value: object) -> object:
    """A text as it is written, for libraries that encode it themselves; any other value as it is."""
    return to_utf8(value).decode() if isinstance(value, str) else value
