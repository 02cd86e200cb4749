"""PP-OCRv5's small reader of lines (https://arxiv.org/abs/2507.05595): the large one, but through PP-LCNetV3.

Shapes: as in the large one.
"""

from __future__ import annotations

from ...weights import Weights
from ..pp_lcnet_v3.model import PPLCNetV3
from ..pp_ocrv5_server_rec.model import PPOCRV5ServerRecForTextRecognition, PPOCRV5ServerRecModel
from .config import PPOCRV5MobileRecConfig


class PPOCRV5MobileRecModel(PPOCRV5ServerRecModel):
    config_class = PPOCRV5MobileRecConfig

    @staticmethod
    def make_net(w: Weights, cfg: PPOCRV5MobileRecConfig) -> PPLCNetV3:
        return PPLCNetV3(w / "encoder", cfg.network)


class PPOCRV5MobileRecForTextRecognition(PPOCRV5ServerRecForTextRecognition):
    config_class = PPOCRV5MobileRecConfig
    base_class = PPOCRV5MobileRecModel
