"""The config of a CANINE checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError

PRIMES = (31, 43, 59, 61, 73, 97, 103, 113, 137, 149, 157, 173, 181, 193, 211, 223)  # the factors of the hash functions


@dataclass(frozen=True, kw_only=True)
class CanineConfig(Config):
    model_type: str = "canine"
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 16384
    type_vocab_size: int = 16
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    downsampling_rate: int = 4
    upsampling_kernel_size: int = 4
    num_hash_functions: int = 8
    num_hash_buckets: int = 16384
    local_transformer_stride: int = 128
    vocab_size: ClassVar[int] = 0x110000  # the code points of Unicode

    def __post_init__(self) -> None:
        self.positive("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        self.positive("max_position_embeddings", "type_vocab_size", "downsampling_rate", "upsampling_kernel_size")
        self.positive("num_hash_functions", "num_hash_buckets", "local_transformer_stride")
        self.fractions("hidden_dropout_prob", "attention_probs_dropout_prob")
        self.divides("num_attention_heads", "hidden_size")
        self.divides("num_hash_functions", "hidden_size")
        self.above_zero("layer_norm_eps")
        if self.num_hash_functions > len(PRIMES):
            raise ConfigError(f"num_hash_functions = {self.num_hash_functions}, expected at most {len(PRIMES)}")

    @property
    def head_dropout(self) -> float:
        """The dropout before a classifier."""
        return self.hidden_dropout_prob
