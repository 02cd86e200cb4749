"""The config of an MPNet checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...config import Config
from ...errors import ConfigError

BUCKETS, PADDING = 32, 1  # the ones that transformers computes with, whatever a config says
FAR = 128  # tokens: all that are farther share a bucket


@dataclass(frozen=True, kw_only=True)
class MPNetConfig(Config):
    model_type: str = "mpnet"
    vocab_size: int = 30527
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    layer_norm_eps: float = 1e-12
    relative_attention_num_buckets: int = BUCKETS
    pad_token_id: int | None = PADDING
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        self.fractions("hidden_dropout_prob", "attention_probs_dropout_prob")
        self.divides("num_attention_heads", "hidden_size")
        if self.max_position_embeddings < PADDING + 2:
            raise ConfigError(f"max_position_embeddings = {self.max_position_embeddings}, expected at least 3")
        for name, only in (("relative_attention_num_buckets", BUCKETS), ("pad_token_id", PADDING)):
            if getattr(self, name) != only:
                raise ConfigError(f"{name} = {getattr(self, name)}, expected {only}, with which transformers computes")

    @property
    def head_dropout(self) -> float:
        return self.hidden_dropout_prob


def bucket_starts() -> list[int]:
    """The distances from which the buckets 1, 2, ... of one direction begin: the first half has one distance each."""
    half = BUCKETS // 2
    exact = half // 2
    distance = np.arange(exact, FAR + 1, dtype=np.float32)
    bucket = exact + (np.log(distance / exact) / math.log(FAR / exact) * (half - exact)).astype(int)
    return [*range(1, exact), *(int(distance[bucket >= b][0]) for b in range(exact, half))]
