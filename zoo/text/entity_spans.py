"""Texts whose entities are spans of characters, as LUKE (Yamada et al. 2020, https://arxiv.org/abs/2010.01057) reads
them: the ids of its tokens, and for each entity an id and the places of the tokens that name it.

Shapes: B rows, T tokens, E entities, M places of an entity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, TokenizerError
from ..files.folder import CheckpointFolder
from .tokenizer import Tokenizer

VOCABULARY = "entity_vocab.json"
MAX_PLACES = 30  # tokens of an entity whose places count, where the files say nothing else (max_mention_length)
ENTITIES = {"entity_mask_token": "[MASK]", "entity_mask2_token": "[MASK2]", "entity_pad_token": "[PAD]"}
MARKS = (("entity_token_1", "entity_1_token", "<ent>"), ("entity_token_2", "entity_2_token", "<ent2>"))

Span = tuple[int, int]  # the first, and the one after the last


class EntityRow(NamedTuple):
    """A text with its entities."""

    ids: list[int]  # T
    entity_ids: list[int]  # E
    spans: list[Span]  # E: of tokens


class EntityMarker:
    """A tokenizer with what LUKE's files say of entities."""

    def __init__(self, tokenizer: Tokenizer, folder: CheckpointFolder):
        if not folder.has(VOCABULARY):
            raise TokenizerError(f"{folder} has no {VOCABULARY}, which has the ids of entities")
        said = folder.json("tokenizer_config.json") if folder.has("tokenizer_config.json") else {}
        known, self.tokenizer = folder.json(VOCABULARY, error=TokenizerError), tokenizer
        tokens = [said.get(name, default) for name, default in ENTITIES.items()]
        for token in tokens:
            if type(known.get(token)) is not int:
                raise TokenizerError(f"{folder.where(VOCABULARY)} has no id of {token!r:.100}")
        self.mask_ids, self.pad_id = [known[token] for token in tokens[:2]], known[tokens[2]]
        self.max_places = said.get("max_mention_length", MAX_PLACES)
        if type(self.max_places) is not int or self.max_places < 1:
            raise TokenizerError(f"{folder}: max_mention_length = {self.max_places!r:.100}, expected a whole number")
        marks = [said.get(name, said.get(other, token)) for name, other, token in MARKS]
        known = tokenizer.added_tokens()
        self._marks = [known.get(str(mark.get("content") if isinstance(mark, dict) else mark)) for mark in marks]
        self._around = tokenizer.encode_batch([""]).rows[0].ids
        if len(self._around) != 2:
            raise TokenizerError(f"{tokenizer.source} puts {len(self._around)} tokens around a text, expected 2")

    def row(self, text: str, spans: Sequence[Span], marked: int) -> EntityRow:
        """The row of a text.  marked: how many entities stand between marks of their own: 0, 1 or 2, then all of them.

        InputError: a span has no token.
        """
        ids, at = self._tokens(text, spans)
        for (start, end), (first, last) in zip(spans, at, strict=True):
            if first >= last:
                raise InputError(f"[{start}, {end}) is {text[start:end]!r:.50}, which has no token", argument="spans")
        entity_ids, found = self.mask_ids[:1] * len(spans), at
        if marked:
            entity_ids = self.mask_ids[:marked]
            order = sorted(range(marked), key=lambda k: (at[k][0], -k))  # of equal ones the second is the first
            found = [(at[k][0] + 2 * order.index(k), at[k][1] + 2 * order.index(k) + 2) for k in range(marked)]
            for k in reversed(order):
                if (mark := self._marks[k]) is None:
                    raise TokenizerError(f"{self.tokenizer.source} has no token {MARKS[k][2]} for entities")
                first, last = at[k]
                ids = [*ids[:first], mark, *ids[first:last], mark, *ids[last:]]
        return EntityRow([self._around[0], *ids, self._around[1]], entity_ids, [(a + 1, b + 1) for a, b in found])

    def _tokens(self, text: str, spans: Sequence[Span]) -> tuple[list[int], list[Span]]:
        """The ids of a text's parts, which begin and end where entities do, and the entities' places among them."""
        ids, begin, places = list[int](), 0, dict[int, int]()
        for at in sorted({at for span in spans for at in span}):
            cut = at - 1 if at and text[at - 1] == " " else at  # a space belongs to the token after it
            ids += self._ids(text[begin:cut])
            begin, places[at] = max(begin, cut), len(ids)
        return ids + self._ids(text[begin:]), [(places[start], places[end]) for start, end in spans]

    def _ids(self, part: str) -> list[int]:
        if not part:
            return []
        row = self.tokenizer.encode_batch([part], truncation=False).rows[0]
        return [i for i, own in zip(row.ids, row.sequence_ids, strict=True) if own is not None]

    def batch(self, rows: Sequence[EntityRow], has_ends: bool) -> tuple[np.ndarray, dict[str, Any]]:
        """The ids (B, T) of rows, padded, and a model's other arguments.

        has_ends: with the first and last place of each entity.
        """
        B, T, E = len(rows), max(len(row.ids) for row in rows), max(len(row.spans) for row in rows)
        M = min(self.max_places, max(b - a for row in rows for a, b in row.spans))
        ids, mask = np.full((B, T), self.tokenizer.pad_token_id or 0), np.zeros((B, T), np.int64)
        entity_ids, known = np.full((B, E), self.pad_id), np.zeros((B, E), np.int64)
        places, ends = np.full((B, E, M), -1), np.zeros((2, B, E), np.int64)
        for i, row in enumerate(rows):
            ids[i, : len(row.ids)], mask[i, : len(row.ids)] = row.ids, 1
            entity_ids[i, : len(row.spans)], known[i, : len(row.spans)] = row.entity_ids, 1
            for k, (first, end) in enumerate(row.spans):
                count = min(end - first, M)
                places[i, k, :count], ends[:, i, k] = range(first, first + count), (first, end - 1)
        found = {"attention_mask": mask, "entity_ids": entity_ids, "entity_position_ids": places}
        more = {"entity_start_positions": ends[0], "entity_end_positions": ends[1]} if has_ends else {}
        return ids, {**found, "entity_attention_mask": known, **more}
