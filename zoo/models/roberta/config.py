"""The configs of RoBERTa and XLM-R checkpoints: BERT's, with other defaults."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..bert.config import BertConfig


@dataclass(frozen=True, kw_only=True)
class RobertaConfig(BertConfig):
    model_type: str = "roberta"
    vocab_size: int = 50265
    pad_token_id: int = 1  # positions are counted from it, so it cannot be null

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.pad_token_id < min(self.vocab_size, self.max_position_embeddings):
            raise ConfigError(f"pad_token_id = {self.pad_token_id} is out of range: it must be a token and a position")


@dataclass(frozen=True, kw_only=True)
class XLMRobertaConfig(RobertaConfig):
    model_type: str = "xlm-roberta"
    vocab_size: int = 30522


@dataclass(frozen=True, kw_only=True)
class CamembertConfig(RobertaConfig):
    model_type: str = "camembert"
    vocab_size: int = 30522
