"""A JSON text's values are counted before they are made: `{"":` takes five bytes of a text, and 230 in memory."""

from __future__ import annotations

import numpy as np

BYTES = 128  # bytes of memory for each sign of a value: an object has two, its brace and its colon
SIGNS = b",:[{"
_OTHER_BYTES = bytes({*range(256)} - {*SIGNS, ord('"')})
_SHORT_BYTES = 4096  # bytes


def values_of(text: bytes) -> int:
    """The commas, colons and opening brackets of a JSON text, without those in its strings (of a short one: with)."""
    if len(text) <= _SHORT_BYTES:
        return sum(map(text.count, SIGNS))
    if b"\\" in text:
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    signs = np.frombuffer(text.translate(None, _OTHER_BYTES), np.uint8)
    is_quote = signs == ord('"')
    is_inside = np.add.accumulate(is_quote, dtype=np.uint8) & 1  # which wraps at 256: whether it is odd remains
    return int(np.count_nonzero(is_quote | is_inside == 0))
