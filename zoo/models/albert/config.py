"""The config of an ALBERT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..bert.config import BertConfig


@dataclass(frozen=True, kw_only=True)
class AlbertConfig(BertConfig):
    model_type: str = "albert"
    vocab_size: int = 30000
    embedding_size: int = 128
    hidden_size: int = 4096
    num_hidden_groups: int = 1
    num_attention_heads: int = 64
    intermediate_size: int = 16384
    inner_group_num: int = 1
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("embedding_size", "num_hidden_groups", "inner_group_num")
        self.fractions("classifier_dropout_prob")
        self.require(is_decoder=False)

    @property
    def head_dropout(self) -> float:
        """The dropout before a classifier."""
        return self.classifier_dropout_prob
