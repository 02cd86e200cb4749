"""The config of a DeBERTa-v2 or -v3 checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from ...errors import ConfigError
from ..deberta.config import DebertaConfig


@dataclass(frozen=True, kw_only=True)
class DebertaV2Config(DebertaConfig):
    model_type: str = "deberta-v2"
    vocab_size: int = 128100
    hidden_size: int = 1536
    num_hidden_layers: int = 24
    num_attention_heads: int = 24
    intermediate_size: int = 6144
    position_buckets: int = -1
    norm_rel_ebd: str = "none"
    share_att_key: bool = False
    conv_kernel_size: int = 0
    conv_act: str = "tanh"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.conv_kernel_size and self.conv_kernel_size % 2 == 0:
            raise ConfigError(f"conv_kernel_size = {self.conv_kernel_size}, expected an odd number, or 0 for none")
        self.require(conv_groups=1, attention_head_size=self.hidden_size // self.num_attention_heads)
        if self.relative_attention:
            self.require(share_att_key=True)
        if self.position_buckets > 0 and self.position_buckets // 2 >= self.positions - 1:
            raise ConfigError(f"position_buckets = {self.position_buckets} for {self.positions} positions: too many")

    @property
    def norms_distances(self) -> bool:
        """True if the vectors of distances pass through a norm."""
        return "layer_norm" in self.norm_rel_ebd.lower()

    @property
    def span(self) -> int:
        """The buckets of one direction."""
        return self.position_buckets if self.position_buckets > 0 else self.positions

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
