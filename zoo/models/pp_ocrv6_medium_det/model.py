"""PP-OCRv6's medium detector of text (https://arxiv.org/abs/2507.05595): the large one of version 5 through PP-LCNetV4,
without the correction at its end.

Shapes: as in the large one.
"""

from __future__ import annotations

from typing import Any

from ...weights import Weights
from ..pp_lcnet_v4.model import PPLCNetV4
from ..pp_ocrv5_mobile_det.model import PPOCRV5MobileDetForObjectDetection
from ..pp_ocrv5_server_det.model import NAME_MAP, Neck, PPOCRV5ServerDetModel
from .config import PPOCRV6MediumDetConfig


class PPOCRV6MediumDetModel(PPOCRV5ServerDetModel):
    config_class = PPOCRV6MediumDetConfig

    @staticmethod
    def make_net(w: Weights, cfg: PPOCRV6MediumDetConfig) -> Any:
        return PPLCNetV4(w / "encoder", cfg.network)

    @staticmethod
    def make_neck(w: Weights, cfg: PPOCRV6MediumDetConfig) -> Any:
        return Neck(w / "neck", cfg, bias=True)


class PPOCRV6MediumDetForObjectDetection(PPOCRV5MobileDetForObjectDetection):
    config_class = PPOCRV6MediumDetConfig
    name_map = NAME_MAP
    base_class = PPOCRV6MediumDetModel
