"""Texts with entities: beside its tokens a text has entities, each with the places of the tokens that name it.

Shapes: B rows, T tokens, E entities, M places of an entity.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import ops
from ..errors import InputError
from ..typing import Array, RecordField
from .texts import TextInputs, TextModel

NO_PLACE = -1  # in place of a position, for entities with fewer tokens than others
SPANS = ("entity_start_positions", "entity_end_positions")


class EntityInputs(NamedTuple):
    """The entities of texts."""

    ids: Array  # (B, E)
    positions: Array  # (B, E, M): of the tokens that name it, one more than their places; 0 for none
    token_type_ids: Array  # (B, E)
    mask: Array  # (B, E)
    starts: Array | None = None  # (B, E): the place of the first token that names it
    ends: Array | None = None  # (B, E): that of the last

    fields = (
        RecordField("ids", "entity_ids", ("B", "E"), "int64"),
        RecordField("positions", "entity_position_ids", ("B", "E", "M"), "int64"),
        RecordField("token_type_ids", "entity_token_type_ids", ("B", "E"), "int64", 0),
        RecordField("mask", "entity_attention_mask", ("B", "E"), "int64", 1),
        RecordField("starts", "entity_start_positions", ("B", "E"), "int64"),
        RecordField("ends", "entity_end_positions", ("B", "E"), "int64"),
    )

    def mask_with(self, t: TextInputs) -> Array:
        """The mask (B, T + E) of a text's tokens and these entities."""
        of_words = t.context.mask
        if of_words is None:
            of_words = self.mask[:, :1] | (ops.arange(t.shape[1], self.ids) >= 0)
        return ops.cat([of_words, self.mask], 1)


class EntityTextModel(TextModel):
    """A model of texts, which may have entities.  `forward(tokens)` or `forward(tokens, entities)` is its maths.

    Its config has entity_vocab_size, max_position_embeddings and type_vocab_size, which bound the numbers of entities.
    """

    least_entities: ClassVar[int] = 0  # those that a head needs of each text
    needs_spans: ClassVar[bool] = False  # True for one that reads the states of their first and last tokens, too

    def __call__(
        self,
        input_ids: Array | None = None,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        *,
        entity_ids: Array | None = None,
        entity_position_ids: Array | None = None,
        entity_attention_mask: Array | None = None,
        entity_token_type_ids: Array | None = None,
        entity_start_positions: Array | None = None,
        entity_end_positions: Array | None = None,
        **options: Any,
    ) -> Any:
        """The output of `forward` for a text as of `TextModel`, and its entities; entity_ids None: it has none.

        entity_ids, entity_attention_mask, entity_token_type_ids (B, E); entity_position_ids (B, E, M): the places of
        the tokens that name an entity, then -1.  entity_start_positions, entity_end_positions (B, E): the first and
        the last of these, for a head that needs them.  InputError: as of `TextModel`.
        """
        given = {
            "entity_ids": entity_ids,
            "entity_position_ids": entity_position_ids,
            "entity_attention_mask": entity_attention_mask,
            "entity_token_type_ids": entity_token_type_ids,
            "entity_start_positions": entity_start_positions,
            "entity_end_positions": entity_end_positions,
        }
        return self.runner.run(
            self.forward, *self.records(input_ids, attention_mask, token_type_ids, **given, **options)
        )

    def forward(self, t: TextInputs, entities: EntityInputs | None = None) -> Any:
        """The class's output for checked inputs."""
        raise NotImplementedError

    def records(self, *args: Any, **given: Any) -> tuple[Any, ...]:
        names = [field.name for field in EntityInputs.fields]
        of_entities = {name: array for name in names if (array := given.pop(name, None)) is not None}
        t = self.tokens(*args, **given)
        if not of_entities and not self.least_entities:
            return (t,)
        return t, self.entities(t, **of_entities)

    def entities(self, t: TextInputs, **given: Array) -> EntityInputs:
        """The entities of a text, checked and placed beside the weights; arguments as for a call."""
        (B, T), like, cfg = t.shape, self.like, self.config
        for name in ("entity_ids", "entity_position_ids", *(SPANS if self.needs_spans else ())):
            if name not in given:
                raise InputError(f"{self.architecture} needs {name} beside the text's tokens")
        ids = ops.as_ids(given["entity_ids"], like, "entity_ids", cfg.entity_vocab_size)
        shape = B, ids.shape[1]
        if shape[1] < self.least_entities:
            raise InputError(f"{self.architecture} needs {self.least_entities} entities of each text, found {shape[1]}")
        positions = _one_more(given["entity_position_ids"], like, cfg.max_position_embeddings)
        found = {"entity_ids": ids, "entity_position_ids": positions[..., 0]}
        if (types := given.get("entity_token_type_ids")) is not None:
            found["entity_token_type_ids"] = ops.as_ids(types, like, "entity_token_type_ids", cfg.type_vocab_size)
        for name in SPANS:
            if name in given:
                found[name] = ops.as_ids(given[name], like, name, T)
        for name, array in found.items():
            if tuple(array.shape) != shape:
                axes = " and places" if name == "entity_position_ids" else ""
                raise InputError(f"{name} has rows and entities {tuple(array.shape)}, expected {shape}{axes}")
        mask = given.get("entity_attention_mask")
        mask = ids >= 0 if mask is None else ops.as_mask(mask, like, "entity_attention_mask", shape)
        spans = (found.get(name) for name in SPANS)
        return EntityInputs(ids, positions, found.get("entity_token_type_ids", ids * 0), mask, *spans)

    def example(self, seed: int = 0, **sizes: Any) -> dict[str, Any]:
        """As for texts; with entities where the head needs them."""
        found = super().example(seed, **sizes)
        if not self.least_entities:
            return found
        (rows, length), mask = found["input_ids"].shape, found.get("attention_mask")
        return {**found, **self.entities_of(rows, length, seed, mask is not None)}

    def entities_of(self, rows: int, length: int, seed: int = 0, padded: bool = False) -> dict[str, Any]:
        """Random entities of texts of a length; padded: later rows have fewer."""
        rng, cfg, E, M = np.random.default_rng(seed), self.config, 5, min(4, length)
        first = rng.integers(0, length - M + 1, (rows, E, 1))
        count = rng.integers(1, M + 1, (rows, E, 1))
        at = np.arange(M)
        found = {
            "entity_ids": rng.integers(min(1, cfg.entity_vocab_size - 1), cfg.entity_vocab_size, (rows, E)),
            "entity_position_ids": np.where(at < count, first + at, NO_PLACE),
            "entity_token_type_ids": rng.integers(0, cfg.type_vocab_size, (rows, E)),
        }
        if padded and rows > 1:
            known = np.arange(E) < np.maximum(E - np.arange(rows)[:, None], 2)
            found["entity_attention_mask"] = known.astype(np.int64)
        if self.needs_spans:
            found |= {SPANS[0]: first[..., 0], SPANS[1]: (first + count - 1)[..., 0]}
        return found


def _one_more(places: Any, like: Array, most: int) -> Array:
    """Places (B, E, M) below `most`, checked, where NO_PLACE becomes 0, and the others one more."""
    name = "entity_position_ids"
    if isinstance(places, (list, tuple)):
        try:
            places = np.asarray(places)
        except (ValueError, OverflowError) as e:
            raise InputError(f"{name} is not a rectangular list of integers: {e}") from None
    is_known = isinstance(places, np.ndarray) and places.dtype.kind in "iu" and places.size
    if is_known and not NO_PLACE <= places.min() <= places.max() < most:
        found = f"{places.min()} to {places.max()}"
        raise InputError(f"{name} must be in [0, {most}), or {NO_PLACE} for no place, found {found}")
    return ops.as_ids(places - NO_PLACE if hasattr(places, "ndim") else places, like, name, most + 1, ndim=3)
