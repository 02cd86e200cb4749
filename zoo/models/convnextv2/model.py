"""ConvNeXt V2 (Woo et al. 2023, https://arxiv.org/abs/2301.00808): ConvNeXt, whose layers scale each channel by how
strong it is in the whole image, instead of by a number of its own.

Shapes: B batch, h and w rows and columns of a stage, D its width, F = 4 D.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...nn import DepthwiseConv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..convnext import model as convnext
from .config import ConvNextV2Config

NAME_MAP = replace(convnext.NAME_MAP, prefix="convnextv2")
EPS = 1e-6


class ResponseNorm(Module):
    """Global response normalisation: each channel by its length over the pixels, of that of the mean channel."""

    def __init__(self, w: Weights, F: int):
        self.weight, self.bias = w.get("weight", (1, 1, 1, F)), w.get("bias", (1, 1, 1, F))

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, F) -> (B, h, w, F)."""
        pixels = x.reshape(x.shape[0], -1, x.shape[3])
        length = (ops.mean(pixels * pixels, 1) * pixels.shape[1]) ** 0.5
        share = length / (ops.mean(length, 1)[:, None] + EPS)
        return self.weight * (x * share[:, None, None]) + self.bias + x


class Layer(Module):
    """drop_path: the share of images for which training skips the layer."""

    def __init__(self, w: Weights, cfg: ConvNextV2Config, D: int, drop_path: float):
        self.depthwise = DepthwiseConv2d(w / "dwconv", D, 7)
        self.norm = LayerNorm(w / "layernorm", D, EPS)
        self.up = Linear(w / "pwconv1", D, 4 * D, act=cfg.hidden_act)
        self.response_norm = ResponseNorm(w / "grn", 4 * D)
        self.down = Linear(w / "pwconv2", 4 * D, D)
        self.drop_path = Dropout(drop_path, of_rows=True)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, h, w, D)."""
        y = self.response_norm(self.up(self.norm(self.depthwise(x))))
        return x + self.drop_path(self.down(y))


class Stage(convnext.Stage):
    layer_class = Layer


class ConvNextV2Pretrained(convnext.ConvNextPretrained):
    config_class = ConvNextV2Config
    name_map = NAME_MAP


class ConvNextV2Model(ConvNextV2Pretrained, convnext.ConvNextModel):
    stage_class = Stage


class ConvNextV2ForImageClassification(ConvNextV2Pretrained, convnext.ConvNextForImageClassification):
    base_class = ConvNextV2Model


class ConvNextV2Backbone(ConvNextV2Pretrained, convnext.ConvNextBackbone):
    base_class = ConvNextV2Model
