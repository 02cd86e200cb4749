"""The config of a HuBERT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..wav2vec2.config import Wav2Vec2Config


@dataclass(frozen=True, kw_only=True)
class HubertConfig(Wav2Vec2Config):
    model_type: str = "hubert"
    feat_proj_layer_norm: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(conv_pos_batch_norm=False)

    @property
    def has_feature_norm(self) -> bool:
        return self.feat_proj_layer_norm
