"""The config of a DistilBERT checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config


@dataclass(frozen=True, kw_only=True)
class DistilBertConfig(Config):
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "dim",
        "num_attention_heads": "n_heads",
        "num_hidden_layers": "n_layers",
    }
    model_type: str = "distilbert"
    vocab_size: int = 30522
    max_position_embeddings: int = 512
    n_layers: int = 6
    n_heads: int = 12
    dim: int = 768
    hidden_dim: int = 4 * 768
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation: str = "gelu"
    qa_dropout: float = 0.1
    seq_classif_dropout: float = 0.2
    pad_token_id: int | None = 0

    def __post_init__(self) -> None:
        self.positive("vocab_size", "max_position_embeddings", "n_layers", "n_heads", "dim", "hidden_dim")
        self.fractions("dropout", "attention_dropout", "qa_dropout", "seq_classif_dropout")
        self.divides("n_heads", "dim")

    # The other families' names for these fields.

    @property
    def hidden_size(self) -> int:
        return self.dim

    @property
    def num_hidden_layers(self) -> int:
        return self.n_layers

    @property
    def num_attention_heads(self) -> int:
        return self.n_heads
