"""The config of a medium PP-OCRv6 detector of text."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import read_backbone
from ..pp_lcnet_v4.config import PPLCNetV4Config
from ..pp_ocrv5_server_det.config import PPOCRV5ServerDetConfig


@dataclass(frozen=True, kw_only=True)
class PPOCRV6MediumDetConfig(PPOCRV5ServerDetConfig):
    model_type: str = "pp_ocrv6_medium_det"

    @property
    def network(self) -> PPLCNetV4Config:
        """The backbone's config."""
        return read_backbone(self.backbone_config or {}, PPLCNetV4Config)
