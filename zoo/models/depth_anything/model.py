"""Depth Anything 1 and 2 (Yang et al. 2024, https://arxiv.org/abs/2401.10891, https://arxiv.org/abs/2406.09414):
hidden states of DINOv2 as maps of four sizes, which DPT (https://arxiv.org/abs/2103.13413) fuses from the smallest up.

Shapes: B batch, Y and X height and width, h and w rows and columns of patches, D the backbone's width, C a map's, F
fusion_hidden_size.  Images are (B, Y, X, C): channels come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import Conv2d, ConvTranspose2d, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..dinov2 import Dinov2Backbone
from ..dinov2.model import NAME_MAP as DINOV2
from .config import KINDS, DepthAnythingConfig

NAME_MAP = NameMap(
    prefix="depth_anything",
    base=(),
    part_renames={"backbone": DINOV2.renames},
)


class DepthOutput(NamedTuple):
    predicted_depth: Array  # (B, Y, X): metres, or for "relative" larger for what is nearer


class Reassemble(Module):
    """A hidden state at the width and the size of its stage."""

    def __init__(self, w: Weights, cfg: DepthAnythingConfig, i: int):
        C, factor = cfg.neck_hidden_sizes[i], cfg.reassemble_factors[i]
        self.projection = Conv2d(w / "projection", cfg.reassemble_hidden_size, C, 1)
        self.resize: ConvTranspose2d | Conv2d | None = None
        if factor > 1:
            self.resize = ConvTranspose2d(w / "resize", C, C, int(factor), stride=int(factor))
        elif factor < 1:
            self.resize = Conv2d(w / "resize", C, C, 3, stride=int(1 / factor), padding=1)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, Y, X, C)."""
        x = self.projection(x)
        return x if self.resize is None else self.resize(x)


class Residual(Module):
    """x and two convolutions of it, each after a ReLU."""

    def __init__(self, w: Weights, F: int):
        self.conv_1 = Conv2d(w / "convolution1", F, F, 3, padding=1, act="relu")
        self.conv_2 = Conv2d(w / "convolution2", F, F, 3, padding=1)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, F) -> (B, Y, X, F)."""
        return self.conv_2(self.conv_1(ops.activate(x, "relu")), x)


class Fusion(Module):
    """What came from the smaller maps and the next larger one, at the size of the one after."""

    def __init__(self, w: Weights, F: int):
        self.projection = Conv2d(w / "projection", F, F, 1)
        self.of_map = Residual(w / "residual_layer1", F)  # which the first layer does not use
        self.of_sum = Residual(w / "residual_layer2", F)

    def __call__(self, x: Array, more: Array | None, size: tuple[int, int]) -> Array:
        """x, more (B, Y, X, F) -> (B, *size, F)."""
        x = self.of_sum(x if more is None else x + self.of_map(more))
        return self.projection(ops.interpolate(x, size, "bilinear corners"))


class Neck(Module):
    def __init__(self, w: Weights, cfg: DepthAnythingConfig):
        F, count = cfg.fusion_hidden_size, range(len(cfg.neck_hidden_sizes))
        self.reassemble = [Reassemble(w / "reassemble_stage.layers" / i, cfg, i) for i in count]
        self.convs = [Conv2d(w / "convs" / i, cfg.neck_hidden_sizes[i], F, 3, padding=1, bias=False) for i in count]
        self.fusion = [Fusion(w / "fusion_stage.layers" / i, F) for i in count]

    def __call__(self, states: Sequence[Array]) -> list[Array]:
        """Hidden states (B, h, w, D) -> maps (B, Y, X, F), each larger than the one before."""
        maps = [conv(r(x)) for conv, r, x in zip(self.convs, self.reassemble, states, strict=True)][::-1]
        x, found = maps[0], []
        for i, fuse in enumerate(self.fusion):
            Y, X = maps[i].shape[1:3]
            size = (maps[i + 1].shape[1], maps[i + 1].shape[2]) if i + 1 < len(maps) else (2 * Y, 2 * X)
            x = fuse(x, maps[i] if i else None, size)
            found.append(x)
        return found


class Head(Module):
    def __init__(self, w: Weights, cfg: DepthAnythingConfig):
        F, E = cfg.fusion_hidden_size, cfg.head_hidden_size
        self.conv_1 = Conv2d(w / "conv1", F, F // 2, 3, padding=1)
        self.conv_2 = Conv2d(w / "conv2", F // 2, E, 3, padding=1, act="relu")
        self.conv_3 = Conv2d(w / "conv3", E, 1, 1, act=KINDS[cfg.depth_estimation_type])
        self.most = cfg.max_depth or 1

    def __call__(self, x: Array, size: tuple[int, int]) -> Array:
        """x (B, Y, X, F) -> (B, *size)."""
        x = self.conv_2(ops.interpolate(self.conv_1(x), size, "bilinear corners"))
        return self.conv_3(x)[..., 0] * self.most


class DepthAnythingForDepthEstimation(ImageModel):
    config_class = DepthAnythingConfig
    name_map = NAME_MAP
    any_size = True

    def __init__(self, w: Weights, cfg: DepthAnythingConfig):
        self.config = cfg
        self.backbone = Dinov2Backbone(w / "backbone", cfg.dinov2)
        self.neck, self.head = Neck(w / "neck", cfg), Head(w / "head", cfg)

    @property
    def like(self) -> Array:
        return self.backbone.like

    def forward(self, p: ImageInputs) -> DepthOutput:
        """-> depth, at the size of the image in whole patches."""
        maps, (h, w), patch = self.neck(self.backbone.forward(p).feature_maps), p.grid, self.config.patch_size
        return DepthOutput(self.head(maps[self.config.head_in_index], (h * patch, w * patch)))
