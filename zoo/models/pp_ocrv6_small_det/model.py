"""PP-OCRv6's small detector of text (https://arxiv.org/abs/2507.05595): that of version 5 through PP-LCNetV4, with
depthwise convolutions in its pyramid.

Height and width of images are multiples of 32.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, N neck_out_channels.
"""

from __future__ import annotations

from typing import Any

from ...nn import Conv2d, DepthwiseConv2d, Module
from ...typing import Array
from ...weights import Weights
from ..pp_lcnet_v4.model import PPLCNetV4
from ..pp_ocrv5_mobile_det.model import Neck as NeckV5
from ..pp_ocrv5_mobile_det.model import PPOCRV5MobileDetForObjectDetection, Squeeze
from ..pp_ocrv5_server_det.model import NAME_MAP, PPOCRV5ServerDetModel
from .config import PPOCRV6SmallDetConfig


class Smooth(Module):
    def __init__(self, w: Weights, cfg: PPOCRV6SmallDetConfig):
        N = cfg.neck_out_channels
        self.depthwise = DepthwiseConv2d(w / "depthwise_convolution", N, cfg.dilated_kernel_size)
        self.pointwise = Conv2d(w / "pointwise_convolution", N, N // 4, 1, bias=False)
        self.gate = Squeeze(w / "squeeze_excitation_module", N // 4, cfg.reduction)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, N) -> (B, Y, X, N / 4)."""
        x = self.pointwise(self.depthwise(x))
        return x + self.gate(x)


class Neck(NeckV5):
    @staticmethod
    def make_smooth(w: Weights, cfg: PPOCRV6SmallDetConfig) -> Any:
        return Smooth(w, cfg)


class PPOCRV6SmallDetModel(PPOCRV5ServerDetModel):
    config_class = PPOCRV6SmallDetConfig

    @staticmethod
    def make_net(w: Weights, cfg: PPOCRV6SmallDetConfig) -> Any:
        return PPLCNetV4(w / "encoder", cfg.network)

    @staticmethod
    def make_neck(w: Weights, cfg: PPOCRV6SmallDetConfig) -> Any:
        return Neck(w / "neck", cfg)


class PPOCRV6SmallDetForObjectDetection(PPOCRV5MobileDetForObjectDetection):
    config_class = PPOCRV6SmallDetConfig
    name_map = NAME_MAP
    base_class = PPOCRV6SmallDetModel
