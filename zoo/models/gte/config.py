"""The config of a GTE checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..nomic_bert.config import RotaryBertConfig


@dataclass(frozen=True, kw_only=True)
class GteConfig(RotaryBertConfig):
    model_type: str = "gte"
    vocab_size: int = 250048
    type_vocab_size: int = 1
    max_position_embeddings: int = 8192
    hidden_dropout_prob: float = 0.1
    pad_token_id: int | None = 1
    needs_segments: ClassVar[bool] = False
    default_theta: ClassVar[float] = 160_000.0
