"""PP-LCNet (Cui et al. 2021, https://arxiv.org/abs/2109.15099): depthwise convolutions between pointwise ones.

Images may have any size.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, C channels, y and x those of a stage, D its width, L labels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, DepthwiseConv2d, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit.backbone import BackboneOutput, select_states
from .config import BlockSizes, PPLCNetConfig

# A class with a head has the network beside it, without a prefix.
NAME_MAP = NameMap(prefix="model", base=(), ignored=(r"\.num_batches_tracked$", r"^(last_convolution|head)\."))


def convolution(
    w: Weights,
    d_in: int,
    d_out: int,
    kernel: int,
    stride: int = 1,
    act: str | None = None,
    padding: int | None = None,
) -> Conv2d:
    """act(norm(convolution)), the norm folded in; at stride 1 the image keeps its size."""
    padding, norm = kernel // 2 if padding is None else padding, BatchNorm(w / "normalization", d_out)
    return Conv2d(w / "convolution", d_in, d_out, kernel, stride, padding, bias=False, act=act, norm=norm)


class Stem(Module):
    prefix_tokens: tuple[Array, ...] = ()

    def __init__(self, w: Weights, cfg: PPLCNetConfig, act: str | None):
        self.conv = convolution(w, cfg.num_channels, cfg.widths[0], 3, cfg.stem_stride, act)

    def __call__(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, Y / 2, X / 2, D), rounded up."""
        return self.conv(pixels)


class Squeeze(Module):
    """Channels weighted by what an image has of all of them (Hu et al. 2017, https://arxiv.org/abs/1709.01507)."""

    def __init__(self, w: Weights, d: int, reduction: int):
        self.down = Conv2d(w / "convolutions" / 0, d, d // reduction, 1, act="relu")
        self.up = Conv2d(w / "convolutions" / 2, d // reduction, d, 1, act="hardsigmoid")

    def __call__(self, x: Array) -> Array:
        """x (B, y, x, D) -> (B, y, x, D)."""
        return x * self.up(self.down(ops.adaptive_avg_pool2d(x, 1)))


class Block(Module):
    """Pixels are mixed in each channel by itself, then channels in each pixel."""

    def __init__(self, w: Weights, cfg: PPLCNetConfig, size: BlockSizes):
        d, act, own = size.d_in, cfg.hidden_act, w / "depthwise_convolution"
        norm = BatchNorm(own / "normalization", d)
        self.depthwise = DepthwiseConv2d(own / "convolution", d, size.kernel, size.stride, False, act, norm)
        self.gate = Squeeze(w / "squeeze_excitation_module", d, cfg.reduction) if size.squeezes else None
        self.pointwise = convolution(w / "pointwise_convolution", d, size.d_out, 1, act=act)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        x = self.depthwise(x)
        return self.pointwise(x if self.gate is None else self.gate(x))


class Stage(Module):
    def __init__(self, blocks: list[Any]):
        self.blocks = blocks

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        for block in self.blocks:
            x = block(x)
        return x


class PPLCNet(Module):
    """The network, which other models look through too."""

    block_class: Any = Block
    stem_has_act = True

    def __init__(self, w: Weights, cfg: PPLCNetConfig):
        self.outputs = cfg.outputs
        self.embeddings = Stem(w / "convolution", cfg, cfg.hidden_act if self.stem_has_act else None)
        self.layers = [
            Stage([self.block_class(w / "blocks" / i / "layers" / j, cfg, size) for j, size in enumerate(stage)])
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


class PPLCNetPretrained(ImageModel):
    config_class = PPLCNetConfig
    name_map = NAME_MAP
    any_size = True
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training


class PPLCNetBackbone(PPLCNetPretrained):
    is_base_model = True
    net_class = PPLCNet

    def __init__(self, w: Weights, cfg: PPLCNetConfig):
        self.config, self.net = cfg, self.net_class(w / "encoder", cfg)

    @property
    def embeddings(self) -> Module:
        return self.net.embeddings

    @property
    def layers(self) -> list[Stage]:
        return self.net.layers

    def forward(self, p: ImageInputs) -> BackboneOutput:
        """-> the hidden states that the config names."""
        return BackboneOutput(tuple(self.net(p.pixel_values)))


class PPLCNetForImageClassification(PPLCNetPretrained):
    def __init__(self, w: Weights, cfg: PPLCNetConfig):
        self.config, self.base_model = cfg, PPLCNetBackbone(w, cfg)
        D, E = cfg.hidden_size, cfg.class_expand
        self.widen = Conv2d(w / "last_convolution", D, E, 1, bias=False, act=cfg.hidden_act)
        self.scale = 1 - cfg.hidden_dropout_prob  # in training and after it alike
        self.head = Linear(w / "head", E, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        (x,) = deque(self.base_model.net.hidden_states(p.pixel_values), maxlen=1)
        x = self.widen(ops.adaptive_avg_pool2d(x, 1)) * self.scale
        return self.head(x[:, 0, 0])
