"""PP-LCNetV4, the network of PP-OCRv6 (after PP-LCNet, Cui et al. 2021, https://arxiv.org/abs/2109.15099): depthwise
convolutions between pointwise ones, for CPUs.

Images may have any size.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, C channels, y and x those of a stage, D its width.
"""

from __future__ import annotations

from collections.abc import Iterator

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, DepthwiseConv2d, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..pp_lcnet.config import BlockSizes
from ..pp_lcnet.model import Squeeze, Stage, convolution
from ..vit.backbone import BackboneOutput, select_states
from .config import PPLCNetV4Config

NAME_MAP = NameMap(prefix="model", base=("encoder",), ignored=(r"\.num_batches_tracked$",))


class LargeStem(Module):
    prefix_tokens: tuple[Array, ...] = ()

    def __init__(self, w: Weights, cfg: PPLCNetV4Config):
        (C, d, D), act = cfg.stem_channels, cfg.hidden_act
        first, _, _, third, last = cfg.stem_strides
        self.first = convolution(w / "stem1", C, d, 3, first, act)
        self.narrow = convolution(w / "stem2a", d, d // 2, 2, act=act, padding=1)
        self.widen = convolution(w / "stem2b", d // 2, d, 2, act=act, padding=1)
        self.merge = convolution(w / "stem3", 2 * d, d, 3, third, act)
        self.last = convolution(w / "stem4", d, D, 1, last, act)

    def __call__(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, Y / 4, X / 4, D), rounded up."""
        x = self.first(pixels)
        # Windows of 2 x 2 with zeros below and on the right: those of padding all around but for the first ones.
        y = self.widen(self.narrow(x)[:, 1:, 1:])[:, 1:, 1:]
        pooled = ops.max_pool2d(x, 2, stride=1, padding=1)[:, 1:, 1:]
        return self.last(self.merge(ops.cat([pooled, y], 3)))


class SmallStem(Module):
    prefix_tokens: tuple[Array, ...] = ()

    def __init__(self, w: Weights, cfg: PPLCNetV4Config):
        C, d, D = cfg.stem_channels
        self.first = convolution(w / "conv1", C, d, 3, 2, "gelu")
        self.last = convolution(w / "conv2", d, D, 3, 2)

    def __call__(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, Y / 4, X / 4, D), rounded up."""
        return self.last(self.first(pixels))


class Block(Module):
    """Pixels are mixed in each channel by itself, then channels in each pixel."""

    def __init__(self, w: Weights, cfg: PPLCNetV4Config, size: BlockSizes):
        d, D, own = size.d_in, size.d_out, w / "token_conv"
        if size.keeps_shape:
            self.depthwise = DepthwiseConv2d(own, d, size.kernel)
        else:
            norm = BatchNorm(own / "normalization", d)
            self.depthwise = DepthwiseConv2d(own / "convolution", d, size.kernel, size.stride, bias=False, norm=norm)
        self.gate = Squeeze(w / "token_squeeze_excitation", d, cfg.reduction) if size.squeezes else None
        self.up = convolution(w / "channel_conv1", d, 2 * d, 1, act="gelu")
        self.down = convolution(w / "channel_conv2", 2 * d, D, 1)
        self.keeps_shape = size.keeps_shape

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        x = self.depthwise(x)
        if self.gate is not None:
            x = self.gate(x)
        return self.down(self.up(x), x if self.keeps_shape else None)


class PPLCNetV4(Module):
    """The network, which readers and detectors look through too."""

    def __init__(self, w: Weights, cfg: PPLCNetV4Config):
        self.outputs = cfg.outputs
        self.embeddings = (LargeStem if cfg.stem_type == "large" else SmallStem)(w / "convolution", cfg)
        self.layers = [
            Stage([Block(w / "blocks" / i / "blocks" / j, cfg, size) for j, size in enumerate(stage)])
            for i, stage in enumerate(cfg.stages)
        ]

    def hidden_states(self, pixels: Array) -> Iterator[Array]:
        """pixels (B, Y, X, C) -> yield the first stage's input, then (B, y, x, D) of each stage."""
        x = self.embeddings(pixels)
        yield x
        for stage in self.layers:
            x = stage(x)
            yield x

    def __call__(self, pixels: Array) -> list[Array]:
        """pixels (B, Y, X, C) -> the hidden states that the config names."""
        return select_states(self.hidden_states(pixels), self.outputs)


class PPLCNetV4Backbone(ImageModel):
    config_class = PPLCNetV4Config
    name_map = NAME_MAP
    any_size = True
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training
    is_base_model = True

    def __init__(self, w: Weights, cfg: PPLCNetV4Config):
        self.config, self.net = cfg, PPLCNetV4(w / "encoder", cfg)

    @property
    def embeddings(self) -> Module:
        return self.net.embeddings

    @property
    def layers(self) -> list[Stage]:
        return self.net.layers

    def forward(self, p: ImageInputs) -> BackboneOutput:
        """-> the hidden states that the config names."""
        return BackboneOutput(tuple(self.net(p.pixel_values)))
