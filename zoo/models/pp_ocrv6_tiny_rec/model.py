"""PP-OCRv6's smallest reader of lines (https://arxiv.org/abs/2507.05595): PP-LCNetV4, convolutions along the line, and
the probabilities of each place's character, for CTC.

Shapes: B batch, T places in the text, D hidden_size, d the backbone's width, V characters, the first of which is none.
"""

from __future__ import annotations

from ... import ops
from ...inputs import ImageInputs
from ...nn import BatchNorm, FoldedModule, Linear
from ...typing import Array
from ...weights import Weights
from ..pp_lcnet_v4.model import PPLCNetV4
from ..pp_ocrv5_server_rec.model import PPOCRV5RecOutput, PPOCRV5ServerRecModel, PPOCRV5ServerRecPretrained
from .config import PPOCRV6TinyRecConfig


class LineConv(FoldedModule):
    """hardswish(norm(convolution)) along a line: of each channel by itself over five places, or of each place."""

    def __init__(self, w: Weights, i: int, d: int, of_channels: bool):
        self.of_channels, shape = of_channels, (d, 1, 5) if of_channels else (d, d, 1)
        self.weight, self.norm = w.get(f"conv{i}.weight", shape), BatchNorm(w / f"norm{i}", d)
        self._folded = self.norm.fold(self.weight[:, :, None], None)  # a kernel of one row

    def convolve(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        """x (B, 1, T, d) -> (B, 1, T, d)."""
        if self.of_channels:
            return ops.depthwise_conv2d(x, weight, bias)
        return ops.conv2d(x, weight, bias)

    def __call__(self, x: Array) -> Array:
        """x (B, 1, T, d) -> (B, 1, T, d)."""
        if self._folded is None:
            return ops.activate(self.norm(self.convolve(x, self.weight[:, :, None])), "hardswish")
        return ops.activate(self.convolve(x, *self._folded), "hardswish")


class PPOCRV6TinyRecModel(PPOCRV5ServerRecModel):
    config_class = PPOCRV6TinyRecConfig

    @staticmethod
    def make_net(w: Weights, cfg: PPOCRV6TinyRecConfig) -> PPLCNetV4:
        return PPLCNetV4(w / "encoder", cfg.network)


class PPOCRV6TinyRecForTextRecognition(PPOCRV5ServerRecPretrained):
    config_class = PPOCRV6TinyRecConfig

    def __init__(self, w: Weights, cfg: PPOCRV6TinyRecConfig):
        self.config, self.base_model = cfg, PPOCRV6TinyRecModel(w / "model", cfg)
        d, D, w = cfg.network.hidden_size, cfg.hidden_size, w / "head"
        self.along = LineConv(w, 1, d, of_channels=True)
        self.across = LineConv(w, 2, d, of_channels=False)
        self.reduce = Linear(w / "fc1", d, D)
        self.head = Linear(w / "fc2", D, cfg.head_out_channels)

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Lines have one height, and any width of a place or more."""
        return self.patch[0], max(size[1], self.patch[1])

    def forward(self, p: ImageInputs) -> PPOCRV5RecOutput:
        x = self.across(self.along(self.base_model.features(p.pixel_values)))[:, 0]
        return PPOCRV5RecOutput(ops.softmax(self.head(self.reduce(x))))
