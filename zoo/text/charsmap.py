"""SentencePiece's precompiled normalisation rules: checked before a library follows them out of their array.

The format (https://github.com/google/sentencepiece/blob/master/src/normalizer.cc): the size of a double-array trie in
bytes, the trie in words of 32 bits, and what its leaves point into, texts that end with a zero.
"""

from __future__ import annotations

import numpy as np

MAX_BYTES = 8 << 20  # of all rules; XLM-R's have 0.24 MB
MAX_REPLACEMENT = 64  # bytes that one character may become; XLM-R's have 33


def check_charsmap(data: bytes) -> None:
    """ValueError unless every path through the trie stays in it, and every leaf points at a text of bounded length."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"{len(data)} bytes of normalisation rules, at most {MAX_BYTES} were expected")
    size = int.from_bytes(data[:4], "little")
    if len(data) < 8 or size % 4 or not 4 <= size <= len(data) - 4:
        raise ValueError(f"normalisation rules of {len(data)} bytes with a trie of {size}")
    units, texts = np.frombuffer(data, "<u4", size // 4, 4), data[4 + size :]
    texts.decode()  # UnicodeDecodeError is a ValueError
    if max(map(len, texts.split(b"\0"))) > MAX_REPLACEMENT:
        raise ValueError(f"a normalisation rule that makes more than {MAX_REPLACEMENT} bytes of one character")
    # A unit is reached by its label, a byte that is not zero; from its base any byte may follow.
    bases = np.arange(len(units)) ^ (units.astype(np.int64) >> 10 << ((units & 1 << 9) >> 6))
    reached = (units & 1 << 31 == 0) & (units & 0xFF != 0)
    reached[0] = True
    if (bases[reached] | 0xFF).max() >= len(units):
        raise ValueError("normalisation rules that point out of their trie")
    leaves = reached & (units & 1 << 8 != 0)
    leaves[0] = False
    starts = units[bases[leaves]] & 0x7FFFFFFF
    if len(starts) and int(starts.max()) >= len(texts):
        raise ValueError("normalisation rules that point out of their texts")
    if (np.frombuffer(texts, np.uint8)[starts] & 0xC0 == 0x80).any():
        raise ValueError("a normalisation rule that points into the middle of a character")
