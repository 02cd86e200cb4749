"""ResNet-D (He et al. 2018, https://arxiv.org/abs/1812.01187) as a backbone: an image to the features of some stages.

Shapes: B batch, Y and X height and width in pixels, C channels, D width of a stage.
"""

from __future__ import annotations

from ... import ops
from ...nn import Conv2d, Module
from ...typing import Array
from ...weights import Weights
from ..resnet.model import Block, Shortcut, convolution
from .config import RTDetrResNetConfig


class Pooled(Module):
    """The shortcut of a block that halves rows and columns: means of four pixels, then a convolution."""

    def __init__(self, conv: Conv2d):
        self.conv = conv

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d_in) -> (B, Y / 2, X / 2, d_out)."""
        return self.conv(ops.avg_pool2d(x, 2))


class BlockD(Block):
    def __init__(self, w: Weights, cfg: RTDetrResNetConfig, d_in: int, d_out: int, stride: int, is_first: bool):
        self.is_basic, self.is_first = cfg.layer_type == "basic", is_first
        super().__init__(w, cfg, d_in, d_out, stride)

    def make_shortcut(self, w: Weights, d_in: int, d_out: int, stride: int) -> Shortcut | None:
        """None where the input is added as it is: in all blocks but a stage's first."""
        if not self.is_first or (not self.is_basic and stride == 1 and d_in == d_out):
            return None
        if d_in != d_out if self.is_basic else stride == 2:
            return Pooled(convolution(w / 1, d_in, d_out, 1, 1))
        return convolution(w, d_in, d_out, 1, stride)


class ResNetD(Module):
    def __init__(self, w: Weights, cfg: RTDetrResNetConfig):
        D, act, stem = cfg.embedding_size, cfg.hidden_act, w / "embedder.embedder"
        self.outputs = cfg.outputs
        self.stem = [
            convolution(stem / 0, cfg.num_channels, D // 2, 3, 2, act),
            convolution(stem / 1, D // 2, D // 2, 3, 1, act),
            convolution(stem / 2, D // 2, D, 3, 1, act),
        ]
        self.stages = []
        for i, (width, depth) in enumerate(zip(cfg.hidden_sizes, cfg.depths, strict=True)):
            stride, layers = 2 if i > 0 or cfg.downsample_in_first_stage else 1, w / "encoder.stages" / i / "layers"
            first = BlockD(layers / 0, cfg, D, width, stride, is_first=True)
            self.stages.append([first, *(BlockD(layers / j, cfg, width, width, 1, False) for j in range(1, depth))])
            D = width

    def __call__(self, x: Array) -> list[Array]:
        """x (B, Y, X, C) -> (B, y, x, D) of each stage that is asked for."""
        for conv in self.stem:
            x = conv(x)
        x, found = ops.max_pool2d(x, 3, stride=2, padding=1), []
        for i, stage in enumerate(self.stages, 1):
            for block in stage:
                x = block(x)
            if i in self.outputs:
                found.append(x)
        return found
