"""The config of an MM-Grounding-DINO checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..grounding_dino.config import GroundingDinoConfig


@dataclass(frozen=True, kw_only=True)
class MMGroundingDinoConfig(GroundingDinoConfig):
    model_type: str = "mm-grounding-dino"
    decoder_cls_embed_share: bool = True
