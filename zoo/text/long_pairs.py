"""Pairs of which much is cut off, in the memory of what is kept.

The library keeps what truncation cuts off as further rows: of a pair each part of the one text beside each part of the
other.  With 1,000 words beside 2,000 and rows of 16 tokens these are 47,000 rows.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import tokenizers

SHORT_RATIO, FITTING_RATIO = (
    8,
    4,
)  # characters for a token: at most as many make no long pair, or likely fit
FIELDS = {name: name for name in ("ids", "type_ids", "tokens", "offsets", "special_tokens_mask", "attention_mask")} | {
    "words": "word_ids"
}  # of an encoding's state, and the attributes that have them


class _Text(NamedTuple):
    """`tokens`: how many a text has; `fields`: those that may be kept."""

    tokens: int
    fields: dict[str, list[Any]]

    def truncate(self, count: int, side: str, type_id: int) -> tokenizers.Encoding:
        """Its first or last `count` tokens, as an encoding with nothing cut off."""
        from tokenizers import Encoding

        fields = {name: _end(values, count, side) for name, values in self.fields.items()}
        fields["type_ids"] = [type_id] * len(fields["ids"])
        made = Encoding()
        made.__setstate__(json.dumps({**fields, "overflowing": [], "sequence_ranges": {}}).encode())
        return made


class LongPairs:
    """Makes the rows of pairs of a tokenizer's backend."""

    def __init__(self, backend: tokenizers.Tokenizer, bare: tokenizers.Tokenizer):
        """bare: a backend of the same tokens that neither truncates nor processes them further."""
        self._whole, self._bare, self._special = backend, bare, backend.num_special_tokens_to_add(True)
        self._last: tuple[Any, _Text] | None = None  # a query is read once for all of its documents

    def row(self, backend: tokenizers.Tokenizer, first: str, second: str) -> tokenizers.Encoding | None:
        """The row that `backend`, which truncates, makes of a pair, with one token of what is cut off.

        None where the library may make it: it is not long, one of the two is whole in any case, or it is an error.
        """
        settings: dict[str, Any] = backend.truncation or {}
        room, side, both = settings["max_length"] - self._special, settings["direction"], len(first) + len(second)
        is_whole = 2 * min(len(first), len(second)) <= room or 4 * len(first) * len(second) <= room * both
        if both <= SHORT_RATIO * room and is_whole:
            return None
        if both <= FITTING_RATIO * room and len(row := self._whole.encode(first, second)) <= settings["max_length"]:
            return row
        key = (first, room, side)
        last = self._last
        if last is None or last[0] != key:
            self._last = last = key, self._read(first, room, side)
        one, other = last[1], self._read(second, room, side)
        counts = _counts(one.tokens, other.tokens, room, settings["strategy"])
        if min(counts) < 0 or (min(counts) == 0 and settings["strategy"] != "longest_first"):
            return None
        # The longer text gets an odd token: it has to stay the longer one.
        was_cut = one.tokens > counts[0], other.tokens > counts[1]
        at = 0 if was_cut[0] and (not was_cut[1] or counts[0] > counts[1]) else 1
        more = [count + (was_cut[i] and i == at) for i, count in enumerate(counts)]
        return backend.post_process(one.truncate(more[0], side, 0), other.truncate(more[1], side, 1))

    def _read(self, text: str, room: int, side: str) -> _Text:
        tokens = self._bare.encode_batch([text])[0]  # which, unlike `encode`, lets go of the interpreter's lock
        return _Text(len(tokens), {name: _end(getattr(tokens, its), room + 1, side) for name, its in FIELDS.items()})


def _end(values: list[Any], count: int, side: str) -> list[Any]:
    """The first of the values, or the last where the left side is cut."""
    return values[:count] if side == "right" else values[max(0, len(values) - count) :]


def _counts(first: int, second: int, room: int, strategy: str) -> tuple[int, int]:
    """The tokens of each text that the library keeps."""
    if first + second <= room:
        return first, second
    if strategy != "longest_first":
        return (room - second, second) if strategy == "only_first" else (first, room - first)
    shorter = min(first, second)
    longer = max(shorter, room - shorter)
    if shorter + longer > room:
        shorter, longer = room // 2, room - room // 2
    return (longer, shorter) if first > second else (shorter, longer)
