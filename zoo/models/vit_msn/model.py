"""ViT-MSN (Assran et al. 2022, https://arxiv.org/abs/2204.07141): ViT without a pooler, trained without labels.

Shapes: as in ViT's models.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...inputs import ImageInputs
from ...typing import Array
from ...weights import Weights
from ..vit import model as vit
from .config import ViTMSNConfig


class ViTMSNModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class ViTMSNModel(vit.ViTModel):
    config_class = ViTMSNConfig

    def __init__(self, w: Weights, cfg: ViTMSNConfig, pooler: bool = False, mask_token: bool | None = None):
        super().__init__(w, cfg, pooler=False, mask_token=mask_token)

    def forward(self, p: ImageInputs) -> ViTMSNModelOutput:  # type: ignore[override]
        return ViTMSNModelOutput(self.encode(p))


class ViTMSNForImageClassification(vit.ViTForImageClassification):
    config_class = ViTMSNConfig
    # transformers 5 writes a classifier's layers without the prefix.
    name_map = replace(vit.NAME_MAP, renames={**vit.LAYER_NAMES, r"^encoder\.": "vit.encoder."})
    base_class = ViTMSNModel
