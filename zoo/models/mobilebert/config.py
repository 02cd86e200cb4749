"""The config of a MobileBERT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..bert.config import BertConfig


@dataclass(frozen=True, kw_only=True)
class MobileBertConfig(BertConfig):
    model_type: str = "mobilebert"
    hidden_size: int = 512
    num_hidden_layers: int = 24
    num_attention_heads: int = 4
    intermediate_size: int = 512
    hidden_act: str = "relu"
    hidden_dropout_prob: float = 0.0
    embedding_size: int = 128
    intra_bottleneck_size: int = 128
    num_feedforward_networks: int = 4
    classifier_activation: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("embedding_size", "intra_bottleneck_size", "num_feedforward_networks")
        self.divides("num_attention_heads", "intra_bottleneck_size")
        self.require(is_decoder=False, add_cross_attention=False, trigram_input=True, normalization_type="no_norm")
        self.require(use_bottleneck=True, use_bottleneck_attention=False, key_query_shared_bottleneck=True)
        if self.embedding_size >= self.hidden_size:
            raise ConfigError(
                f"embedding_size = {self.embedding_size}, expected less than hidden_size = {self.hidden_size}"
            )
        if self.num_feedforward_networks > 1000:
            raise ConfigError(f"num_feedforward_networks = {self.num_feedforward_networks}, expected at most 1000")
