"""The config of an MPNet checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..roberta.config import RobertaConfig

BUCKETS, PADDING = 32, 1  # the ones that transformers computes with, whatever a config says
MAX_DISTANCE = 128  # tokens: all that are farther share a bucket


@dataclass(frozen=True, kw_only=True)
class MPNetConfig(RobertaConfig):
    model_type: str = "mpnet"
    vocab_size: int = 30527
    relative_attention_num_buckets: int = BUCKETS

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, only in (("relative_attention_num_buckets", BUCKETS), ("pad_token_id", PADDING)):
            if getattr(self, name) != only:
                raise ConfigError(f"{name} = {getattr(self, name)}, expected {only}, with which transformers computes")

    @property
    def head_dropout(self) -> float:
        return self.hidden_dropout_prob
