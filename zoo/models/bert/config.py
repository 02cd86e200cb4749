"""The config of a BERT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class BertConfig(Config):
    model_type: str = "bert"
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    is_decoder: bool = False
    add_cross_attention: bool = False
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    classifier_dropout: float | None = None
    needs_segments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        self.positive("max_position_embeddings", *["type_vocab_size"] * self.needs_segments)
        self.fractions("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("layer_norm_eps")
        if self.add_cross_attention and not self.is_decoder:
            raise ConfigError("add_cross_attention = True needs is_decoder = True")
        self.require(position_embedding_type="absolute")

    @property
    def head_dropout(self) -> float:
        """The dropout before a classifier."""
        return self.hidden_dropout_prob if self.classifier_dropout is None else self.classifier_dropout
