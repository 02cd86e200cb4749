"""The config of a UniSpeech-SAT checkpoint: wav2vec 2.0's."""

from __future__ import annotations

from dataclasses import dataclass

from ..wav2vec2.config import Wav2Vec2Config


@dataclass(frozen=True, kw_only=True)
class UniSpeechSatConfig(Wav2Vec2Config):
    model_type: str = "unispeech-sat"
    ctc_loss_reduction: str = "mean"
