"""The config of a Megatron-BERT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..bert.config import BertConfig


@dataclass(frozen=True, kw_only=True)
class MegatronBertConfig(BertConfig):
    model_type: str = "megatron-bert"
    vocab_size: int = 29056
    hidden_size: int = 1024
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    intermediate_size: int = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(is_decoder=False, add_cross_attention=False)

    @property
    def head_dropout(self) -> float:
        """The dropout before a classifier."""
        return self.hidden_dropout_prob
