"""The config of a RoBERTa-PreLayerNorm checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..roberta.config import RobertaConfig


@dataclass(frozen=True, kw_only=True)
class RobertaPreLayerNormConfig(RobertaConfig):
    model_type: str = "roberta-prelayernorm"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(is_decoder=False, add_cross_attention=False)
