"""The config of a DeBERTa-v2 or -v3 checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ...errors import ConfigError, UnsupportedError
from ..bert.config import BertConfig

KINDS = ("c2p", "p2c")  # a query's product with a distance, and a key's


@dataclass(frozen=True, kw_only=True)
class DebertaV2Config(BertConfig):
    model_type: str = "deberta-v2"
    vocab_size: int = 128100
    hidden_size: int = 1536
    num_hidden_layers: int = 24
    num_attention_heads: int = 24
    intermediate_size: int = 6144
    cls_dropout: float | None = None
    type_vocab_size: int = 0
    layer_norm_eps: float = 1e-7
    relative_attention: bool = False
    max_relative_positions: int = -1
    position_buckets: int = -1
    norm_rel_ebd: str = "none"
    share_att_key: bool = False
    pos_att_type: str | list[str] | None = None
    position_biased_input: bool = True
    conv_kernel_size: int = 0
    conv_act: str = "tanh"
    pooler_dropout: float = 0.0
    pooler_hidden_act: str = "gelu"
    legacy: bool = True
    needs_segments: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions("cls_dropout", "pooler_dropout")
        if self.conv_kernel_size and self.conv_kernel_size % 2 == 0:
            raise ConfigError(f"conv_kernel_size = {self.conv_kernel_size}, expected an odd number, or 0 for none")
        D = self.hidden_size
        self.require(type_vocab_size=0, conv_groups=1, embedding_size=D, pooler_hidden_size=D)
        self.require(attention_head_size=D // self.num_attention_heads)
        if self.relative_attention and not (self.share_att_key and {*self.kinds} == {*KINDS}):
            raise UnsupportedError(
                f"{self.model_type}: relative_attention is implemented with share_att_key = True and pos_att_type = "
                f"{'|'.join(KINDS)!r} alone, found {self.share_att_key} and {self.pos_att_type!r}"
            )
        if self.position_buckets > 0 and self.position_buckets // 2 >= self.positions - 1:
            raise ConfigError(f"position_buckets = {self.position_buckets} for {self.positions} positions: too many")

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
    def norms_distances(self) -> bool:
        """True if the vectors of distances pass through a norm."""
        return "layer_norm" in self.norm_rel_ebd.lower()

    @property
    def positions(self) -> int:
        """The longest distance that has a bucket of its own kind."""
        return self.max_relative_positions if self.max_relative_positions >= 1 else self.max_position_embeddings

    @property
    def span(self) -> int:
        """The buckets of one direction."""
        return self.position_buckets if self.position_buckets > 0 else self.positions

    @property
    def head_dropout(self) -> float:
        """The dropout before the labels of tokens."""
        return self.hidden_dropout_prob

    @cached_property
    def bucket_starts(self) -> tuple[int, ...]:
        """The distances from which the buckets 1, 2, ... of one direction begin: the first half has one distance each,
        the others are wider and wider.
        """
        half = self.position_buckets // 2
        if half <= 0:
            return tuple(range(1, self.span + 1))
        starts, step = list(range(1, half + 1)), math.log((self.positions - 1) / half) / max(half - 1, 1)
        for bucket in range(half + 1, self.span + 1):  # the first distance beyond the one where the last bucket ends
            starts.append(math.floor(half * math.exp((bucket - half - 1) * step) + 1e-6) + 1)
        return tuple(starts)
