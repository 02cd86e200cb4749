"""PP-OCRv6's small reader of lines: PP-LCNetV4, two layers of SVTR's attention (Du et al. 2022,
https://arxiv.org/abs/2205.00159) along the line, and the probabilities of each place's character, for CTC.

Shapes: B batch, T places in the text, D hidden_size, d the backbone's width.
"""

from __future__ import annotations

from ...nn import BatchNorm, Conv2d, DepthwiseConv2d, LayerNorm, Module
from ...typing import Array
from ...weights import Weights
from ..pp_lcnet_v4.model import PPLCNetV4
from ..pp_ocrv5_server_rec.model import Layer, PPOCRV5ServerRecForTextRecognition, PPOCRV5ServerRecModel
from .config import PPOCRV6SmallRecConfig


class Encoder(Module):
    def __init__(self, w: Weights, cfg: PPOCRV6SmallRecConfig):
        d, D, act, convs = cfg.network.hidden_size, cfg.hidden_size, cfg.hidden_act, w / "conv_block"
        norms = [BatchNorm(convs / i / "normalization", D) for i in range(3)]
        self.skip = Conv2d(convs / 0 / "convolution", d, D, 1, bias=False, act=act, norm=norms[0])
        self.reduce = Conv2d(convs / 1 / "convolution", d, D, 1, bias=False, act=act, norm=norms[1])
        kernel = cfg.kernel[0], cfg.kernel[1]
        self.local = DepthwiseConv2d(convs / 2 / "convolution", D, kernel, bias=False, act=act, norm=norms[2])
        self.layers = [Layer(w / "svtr_block" / i, cfg) for i in range(cfg.depth)]
        self.norm = LayerNorm(w / "norm", D, cfg.layer_norm_eps)

    def __call__(self, features: Array) -> Array:
        """features (B, 1, T, d) -> (B, T, D)."""
        x = self.reduce(features)
        x = (x + self.local(x))[:, 0]
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) + self.skip(features)[:, 0]


class PPOCRV6SmallRecModel(PPOCRV5ServerRecModel):
    config_class = PPOCRV6SmallRecConfig

    @staticmethod
    def make_net(w: Weights, cfg: PPOCRV6SmallRecConfig) -> PPLCNetV4:
        return PPLCNetV4(w / "encoder", cfg.network)


class PPOCRV6SmallRecForTextRecognition(PPOCRV5ServerRecForTextRecognition):
    config_class = PPOCRV6SmallRecConfig
    base_class = PPOCRV6SmallRecModel
    encoder_class = Encoder
