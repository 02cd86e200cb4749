"""The config of a WavLM checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..wav2vec2.config import Wav2Vec2Config


@dataclass(frozen=True, kw_only=True)
class WavLMConfig(Wav2Vec2Config):
    model_type: str = "wavlm"
    num_buckets: int = 320
    max_bucket_distance: int = 800
    ctc_loss_reduction: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(adapter_attn_dim=None)
        self.positive("num_buckets", "max_bucket_distance")
        if self.num_buckets % 4 or self.max_bucket_distance <= self.num_buckets // 4:
            raise ConfigError(
                f"num_buckets = {self.num_buckets} and max_bucket_distance = {self.max_bucket_distance}, expected a "
                "multiple of 4, and more than a quarter of it"
            )
