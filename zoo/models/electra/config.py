"""The config of an ELECTRA checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..bert.config import BertConfig


@dataclass(frozen=True, kw_only=True)
class ElectraConfig(BertConfig):
    model_type: str = "electra"
    embedding_size: int = 128
    hidden_size: int = 256
    num_attention_heads: int = 4
    intermediate_size: int = 1024
    summary_activation: str = "gelu"
    summary_last_dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("embedding_size")
        self.fractions("summary_last_dropout")
        self.require(summary_type="first", summary_use_proj=True)
