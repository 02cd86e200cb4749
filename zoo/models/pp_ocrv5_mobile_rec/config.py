"""The config of a small PP-OCRv5 reader of lines."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import read_backbone
from ..pp_lcnet_v3.config import PPLCNetV3Config
from ..pp_ocrv5_server_rec.config import PPOCRV5ServerRecConfig

# What transformers takes where config.json has no backbone_config.
BACKBONE = {"scale": 0.75, "out_features": ["stage2", "stage3", "stage4", "stage5"], "divisor": 16}


@dataclass(frozen=True, kw_only=True)
class PPOCRV5MobileRecConfig(PPOCRV5ServerRecConfig):
    model_type: str = "pp_ocrv5_mobile_rec"

    @property
    def network(self) -> PPLCNetV3Config:
        """The backbone's config."""
        return read_backbone(BACKBONE if self.backbone_config is None else self.backbone_config, PPLCNetV3Config)
