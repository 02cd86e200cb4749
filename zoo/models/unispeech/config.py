"""The config of a UniSpeech checkpoint: wav2vec 2.0's."""

from __future__ import annotations

from dataclasses import dataclass

from ..wav2vec2.config import Wav2Vec2Config


@dataclass(frozen=True, kw_only=True)
class UniSpeechConfig(Wav2Vec2Config):
    model_type: str = "unispeech"
    ctc_loss_reduction: str = "mean"
