"""The config of a DeBERTa checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ...errors import UnsupportedError
from ..bert.config import BertConfig

KINDS = ("c2p", "p2c")  # a query's product with a distance, and a key's


@dataclass(frozen=True, kw_only=True)
class DebertaConfig(BertConfig):
    model_type: str = "deberta"
    vocab_size: int = 50265
    cls_dropout: float | None = None
    type_vocab_size: int = 0
    layer_norm_eps: float = 1e-7
    relative_attention: bool = False
    max_relative_positions: int = -1
    pos_att_type: str | list[str] | None = None
    position_biased_input: bool = True
    pooler_dropout: float = 0.0
    pooler_hidden_act: str = "gelu"
    legacy: bool = True
    needs_segments: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions("cls_dropout", "pooler_dropout")
        D = self.hidden_size
        self.require(type_vocab_size=0, embedding_size=D, pooler_hidden_size=D, talking_head=False)
        if self.relative_attention and {*self.kinds} != {*KINDS}:
            raise UnsupportedError(
                f"{self.model_type}: relative_attention is implemented with pos_att_type = {'|'.join(KINDS)!r} alone, "
                f"found {self.pos_att_type!r}"
            )

    @property
    def kinds(self) -> list[str]:
        """The terms of attention with distances."""
        given = self.pos_att_type or []
        return [part.strip() for part in given.lower().split("|")] if isinstance(given, str) else given

    @property
    def scale(self) -> float:
        """The factor of the products of queries and keys, which are of as many kinds."""
        return (self.hidden_size // self.num_attention_heads * (1 + len(self.kinds))) ** -0.5

    @property
    def positions(self) -> int:
        """The longest distance that has a row of its own."""
        return self.max_relative_positions if self.max_relative_positions >= 1 else self.max_position_embeddings

    @property
    def span(self) -> int:
        """The rows of distances of one direction."""
        return self.positions

    @property
    def head_dropout(self) -> float:
        """The dropout before the labels of tokens."""
        return self.hidden_dropout_prob

    @cached_property
    def bucket_starts(self) -> tuple[int, ...]:
        """The distances from which the rows 1, 2, ... of one direction begin."""
        return tuple(range(1, self.span + 1))
