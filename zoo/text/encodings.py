"""What a tokenizer makes of texts: rows of unequal length, and padded batches.

B rows of a batch, T tokens of a row, R rows before padding.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ..errors import InputError

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

    rows: Sequence[tokenizers.Encoding | TokenRow]
    lengths: np.ndarray  # (R,) int64, tokens with the special ones
    overflow_to_sample: np.ndarray  # (R,) int64


@dataclass
class TokenRow:
    """A row of ids that came without a text, with the fields of a row of the tokenizers package."""

    ids: list[int]
    special_tokens_mask: list[bool]

    def __post_init__(self) -> None:
        self.type_ids = [0] * len(self.ids)
        self.offsets = [(0, 0)] * len(self.ids)
        self.sequence_ids = [None if special else 0 for special in self.special_tokens_mask]


def rows_of_ids(rows: Sequence[list[int]], special_ids: Collection[int]) -> Encodings:
    """Rows of ids that are tokens already, special ones among them."""
    found = [TokenRow(ids, [i in special_ids for i in ids]) for ids in rows]
    return Encodings(found, np.array([len(ids) for ids in rows], np.int64), np.arange(len(rows)))


def width_of(lengths: np.ndarray, padding: bool | int, multiple: int | None) -> int:
    """The tokens of a padded row, for rows of these lengths.

    padding: True pads to the longest row, a number to that many tokens, False refuses rows of unequal length.
    """
    longest = int(lengths.max(initial=0))
    width = longest if isinstance(padding, bool) else padding
    if multiple and padding is not False:
        width = -(-width // multiple) * multiple
    if longest > width:
        raise InputError(f"padding={padding}, but the longest row has {longest} tokens: truncate it, or pad to more")
    if padding is False and (lengths != longest).any():
        raise InputError(f"padding=False, but the rows have {lengths.min()} to {longest} tokens")
    return width


def pad(
    encodings: Encodings,
    index: np.ndarray,
    width: int,
    *,
    side: Literal["left", "right"],
    pad_id: int | None,
    typed: bool,
) -> Encoding:
    """The rows of an index as a batch.  typed: False where all tokens are of segment 0."""
    if pad_id is None and (encodings.lengths[index] != width).any():
        raise InputError("this tokenizer has no padding token: pass texts of equal length or one at a time")
    shape = (len(index), width)
    out = Encoding(
        input_ids=np.full(shape, pad_id or 0, np.int64),
        attention_mask=np.zeros(shape, bool),
        token_type_ids=np.zeros(shape, np.int64),
        special_tokens_mask=np.ones(shape, bool),
        offsets=np.zeros((*shape, 2), np.int64),
        sequence_ids=np.full(shape, -1, np.int64),
        overflow_to_sample=encodings.overflow_to_sample[index],
    )
    for i, (at, length) in enumerate(zip(index, encodings.lengths[index], strict=True)):
        if not length:
            continue
        row = encodings.rows[at]
        span = slice(width - length, width) if side == "left" else slice(0, length)
        out.input_ids[i, span] = row.ids
        out.attention_mask[i, span] = True
        if typed:
            out.token_type_ids[i, span] = row.type_ids
        out.special_tokens_mask[i, span] = row.special_tokens_mask
        out.offsets[i, span] = row.offsets
        out.sequence_ids[i, span] = [-1 if s is None else s for s in row.sequence_ids]
    return out
