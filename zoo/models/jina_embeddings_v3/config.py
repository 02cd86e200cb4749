"""The config of a checkpoint of Jina embeddings v3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..nomic_bert.config import RotaryBertConfig


@dataclass(frozen=True, kw_only=True)
class JinaEmbeddingsV3Config(RotaryBertConfig):
    model_type: str = "jina_embeddings_v3"
    vocab_size: int = 250002
    hidden_size: int = 1024
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    intermediate_size: int = 4096
    type_vocab_size: int = 1
    max_position_embeddings: int = 8194
    layer_norm_eps: float = 1e-5
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    pad_token_id: int | None = 1
    default_theta: ClassVar[float] = 20_000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(is_decoder=False, add_cross_attention=False)
