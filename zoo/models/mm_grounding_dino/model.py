"""MM-Grounding-DINO (Zhao et al. 2024, https://arxiv.org/abs/2401.02361): Grounding DINO, trained anew in the open,
with a bias and a scale for the products of queries and tokens.

Shapes: B batch, Q queries, T tokens, D d_model.
"""

from __future__ import annotations

from ...typing import Array
from ...weights import Weights
from ..grounding_dino import decoder
from ..grounding_dino import model as grounding_dino
from ..grounding_dino.config import GroundingDinoConfig
from .config import MMGroundingDinoConfig


class Contrast(decoder.Contrast):
    def __init__(self, w: Weights, cfg: GroundingDinoConfig):
        self.size, self.bias = cfg.d_model, w.get("bias", ())

    def scale(self, products: Array) -> Array:
        return products / self.size**0.5 + self.bias


class MMGroundingDinoModel(grounding_dino.GroundingDinoModel):
    config_class = MMGroundingDinoConfig
    contrast_class = Contrast


class MMGroundingDinoForObjectDetection(grounding_dino.GroundingDinoForObjectDetection):
    config_class = MMGroundingDinoConfig
    contrast_class = Contrast
    base_class = MMGroundingDinoModel

    def __init__(self, w: Weights, cfg: MMGroundingDinoConfig):
        super().__init__(w, cfg)
        inside = w / "model.decoder.class_embed"
        self.training_embed = [Contrast(inside / i, cfg) for i in range(cfg.decoder_layers)]

    @classmethod
    def heads(cls, config: GroundingDinoConfig) -> list[tuple[str, list[str], bool]]:
        assert isinstance(config, MMGroundingDinoConfig)
        return [*super().heads(config), ("class_embed", ["bias"], config.decoder_cls_embed_share)]
