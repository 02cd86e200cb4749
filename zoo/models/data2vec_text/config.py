"""The config of a data2vec checkpoint of texts: RoBERTa's, with other defaults."""

from __future__ import annotations

from dataclasses import dataclass

from ..roberta.config import RobertaConfig


@dataclass(frozen=True, kw_only=True)
class Data2VecTextConfig(RobertaConfig):
    model_type: str = "data2vec-text"
    vocab_size: int = 30522
