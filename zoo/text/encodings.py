"""What a tokenizer makes of texts: rows of unequal length, and padded batches.

B rows of a batch, T tokens of a row, R rows before padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import tokenizers


class Encoding(NamedTuple):
    """A padded batch."""

    input_ids: np.ndarray  # (B, T) int64
    attention_mask: np.ndarray  # (B, T) bool, True on tokens
    token_type_ids: np.ndarray  # (B, T) int64
    special_tokens_mask: np.ndarray  # (B, T) bool, True on special tokens and padding
    offsets: np.ndarray  # (B, T, 2) int64, start and end in characters of the original text; 0, 0 on specials
    sequence_ids: np.ndarray  # (B, T) int64: 0 first text, 1 second, -1 special tokens and padding
    overflow_to_sample: np.ndarray  # (B,) int64, the input that a row comes from


class Encodings(NamedTuple):
    """Rows of unequal length, to be sorted by length before padding (see `Tokenizer.pad`)."""

    rows: list[tokenizers.Encoding]
    lengths: np.ndarray  # (R,) int64, tokens with the special ones
    overflow_to_sample: np.ndarray  # (R,) int64
