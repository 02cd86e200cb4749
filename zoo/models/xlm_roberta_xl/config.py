"""The config of an XLM-R XL checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..roberta.config import RobertaConfig


@dataclass(frozen=True, kw_only=True)
class XLMRobertaXLConfig(RobertaConfig):
    model_type: str = "xlm-roberta-xl"
    vocab_size: int = 250880
    hidden_size: int = 2560
    num_hidden_layers: int = 36
    num_attention_heads: int = 32
    intermediate_size: int = 10240
    max_position_embeddings: int = 514
    type_vocab_size: int = 1
    layer_norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(is_decoder=False, add_cross_attention=False)
