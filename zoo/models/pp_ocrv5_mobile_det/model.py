"""PP-OCRv5's small detector of text: PP-LCNetV3, a pyramid of its four stages, and each pixel's probability of being
within a line, as in DB (Liao et al. 2019, https://arxiv.org/abs/1911.08947).

Height and width of images are multiples of 32.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, y and x a quarter of them, N neck_out_channels.
"""

from __future__ import annotations

from typing import Any

from ... import ops
from ...inputs import ImageInputs
from ...nn import Conv2d, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..pp_lcnet_v3.model import PPLCNetV3
from ..pp_ocrv5_server_det.config import pyramid_widths
from ..pp_ocrv5_server_det.model import Head, PPOCRDetOutput, PPOCRV5ServerDetModel, PPOCRV5ServerDetPretrained
from .config import PPOCRV5MobileDetConfig

NAME_MAP = NameMap(prefix="model", base=("backbone", "layer", "neck"), ignored=(r"\.num_batches_tracked$", r"^head\."))


class Squeeze(Module):
    """Channels weighted by what an image has of all of them."""

    def __init__(self, w: Weights, d: int, reduction: int):
        self.down = Conv2d(w / "conv1", d, d // reduction, 1, act="relu")
        self.up = Conv2d(w / "conv2", d // reduction, d, 1)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, Y, X, d)."""
        # The slope is 1 / 5 here, and hardsigmoid's 1 / 6.
        return x * ops.activate(1.2 * self.up(self.down(ops.adaptive_avg_pool2d(x, 1))), "hardsigmoid")


class Insert(Module):
    """A convolution, and what its channels' weights make of it besides."""

    def __init__(self, w: Weights, cfg: PPOCRV5MobileDetConfig, d: int, D: int, kernel: int):
        self.project = Conv2d(w / "in_conv", d, D, kernel, 1, kernel // 2, bias=False)
        self.gate = Squeeze(w / "squeeze_excitation_block", D, cfg.reduction)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, Y, X, D)."""
        x = self.project(x)
        return x + self.gate(x)


class Neck(Module):
    """From features of each level, in their own widths, to those of the largest level."""

    def __init__(self, w: Weights, cfg: PPOCRV5MobileDetConfig):
        self.mode, widths, N = cfg.interpolate_mode, cfg.layer_list_out_channels, cfg.neck_out_channels
        self.insert = [Insert(w / "insert_conv" / i, cfg, d, N, 1) for i, d in enumerate(widths)]
        self.smooth = [self.make_smooth(w / "input_conv" / i, cfg) for i in range(len(widths))]

    @staticmethod
    def make_smooth(w: Weights, cfg: Any) -> Any:
        """A level's last layer, from N channels to N / 4."""
        return Insert(w, cfg, cfg.neck_out_channels, cfg.neck_out_channels // 4, 3)

    def __call__(self, features: list[Array]) -> Array:
        """features of the stages, the largest first -> (B, y, x, N)."""
        levels = [insert(x) for insert, x in zip(self.insert, features, strict=True)]
        for i in (2, 1, 0):
            levels[i] = levels[i] + ops.interpolate(levels[i + 1], levels[i].shape[1:3], self.mode)
        levels = [smooth(x) for smooth, x in zip(self.smooth, levels, strict=True)]
        size = levels[0].shape[1:3]
        levels = [levels[0], *(ops.interpolate(x, size, self.mode) for x in levels[1:])]
        return ops.cat(levels[::-1], 3)


class AdjustedNeck(Module):
    """The neck, behind a convolution of each stage to the channels that it takes."""

    def __init__(self, w: Weights, cfg: PPOCRV5MobileDetConfig):
        pairs = zip(pyramid_widths(cfg.network), cfg.layer_list_out_channels, strict=True)
        self.adjust = [Conv2d(w / "layer" / i, d, D, 1) for i, (d, D) in enumerate(pairs)]
        self.neck = Neck(w / "neck", cfg)

    def __call__(self, features: list[Array]) -> Array:
        """features of the stages, the largest first -> (B, y, x, N)."""
        return self.neck([adjust(x) for adjust, x in zip(self.adjust, features, strict=True)])


class PPOCRV5MobileDetModel(PPOCRV5ServerDetModel):
    config_class = PPOCRV5MobileDetConfig
    name_map = NAME_MAP

    @staticmethod
    def make_net(w: Weights, cfg: PPOCRV5MobileDetConfig) -> Any:
        return PPLCNetV3(w / "encoder", cfg.network)

    @staticmethod
    def make_neck(w: Weights, cfg: PPOCRV5MobileDetConfig) -> Any:
        return AdjustedNeck(w, cfg)


class PPOCRV5MobileDetForObjectDetection(PPOCRV5ServerDetPretrained):
    config_class = PPOCRV5MobileDetConfig
    name_map = NAME_MAP
    base_class: Any = PPOCRV5MobileDetModel

    def __init__(self, w: Weights, cfg: Any):
        self.config, self.base_model = cfg, self.base_class(w / "model", cfg)
        self.head = Head(w / "head", cfg)

    def forward(self, p: ImageInputs) -> PPOCRDetOutput:
        return PPOCRDetOutput(self.head(self.base_model.features(p.pixel_values))[0])
