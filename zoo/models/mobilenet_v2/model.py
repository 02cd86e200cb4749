"""MobileNetV2 (Sandler et al. 2018, https://arxiv.org/abs/1801.04381): blocks that are wide inside, where a convolution
mixes the pixels of each channel by itself, and narrow where they are added.

Images may have any size.  Channels come last.  The head that finds segments is DeepLab's (Chen et al. 2018,
https://arxiv.org/abs/1802.02611).

Shapes: B batch, Y and X height and width in pixels, C channels, y and x those of a block, D its width, L labels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, DepthwiseConv2d, Dropout, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import CHANNELS, BlockSizes, MobileNetV2Config

NAME_MAP = NameMap(
    prefix="mobilenet_v2",
    base=("conv_stem", "layer", "conv_1x1"),
    ignored=(r"\.num_batches_tracked$", r"^(classifier|segmentation_head)\."),  # a counter of training, and the heads
)
ASPP, ASPP_EPS = 256, 1e-5  # the width of DeepLab's head, and the epsilon of its norms


class MobileNetV2ModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, y, x, D)
    pooler_output: Array  # (B, D)


def pad_last(x: Array) -> Array:
    """The images with the zeros around them that TensorFlow has where a kernel of 3 x 3 moves in steps of 2: one on
    each side, or where a size is even only at the bottom and on the right.
    """
    Y, X = x.shape[1:3]
    return ops.pad_images(x, (Y % 2, 1), (X % 2, 1))


def pointwise(w: Weights, cfg: MobileNetV2Config, d_in: int, d_out: int, act: str | None = None) -> Conv2d:
    """act(norm(convolution of each pixel by itself))."""
    norm = BatchNorm(w / "normalization", d_out, cfg.layer_norm_eps)
    return Conv2d(w / "convolution", d_in, d_out, 1, bias=False, act=act, norm=norm)


class Depthwise(Module):
    """act(norm(convolution of each channel by itself)), 3 x 3."""

    def __init__(self, w: Weights, cfg: MobileNetV2Config, d: int, stride: int = 1, dilation: int = 1):
        self.pads_last = cfg.tf_padding and stride == 2
        padding, norm = 0 if self.pads_last else dilation, BatchNorm(w / "normalization", d, cfg.layer_norm_eps)
        self.conv = DepthwiseConv2d(
            w / "convolution", d, 3, stride, False, cfg.hidden_act, norm, padding=padding, dilation=dilation
        )

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, D) -> (B, y, x, D), Y / stride rounded up."""
        return self.conv(pad_last(x) if self.pads_last else x)


class Stem(Module):
    prefix_tokens: tuple[Array, ...] = ()

    def __init__(self, w: Weights, cfg: MobileNetV2Config):
        d, first = cfg.scale_width(32), w / "first_conv"
        norm, padding = BatchNorm(first / "normalization", d, cfg.layer_norm_eps), 0 if cfg.tf_padding else 1
        own = first / "convolution"
        self.pads_last, act = cfg.tf_padding, cfg.hidden_act
        self.conv = Conv2d(own, cfg.num_channels, d, 3, 2, padding, bias=False, act=act, norm=norm)
        self.first = None if cfg.first_layer_is_expansion else pointwise(w / "expand_1x1", cfg, d, d, act)
        self.depthwise = Depthwise(w / "conv_3x3", cfg, d)
        self.reduce = pointwise(w / "reduce_1x1", cfg, d, cfg.scale_width(CHANNELS[0]))

    def __call__(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, Y / 2, X / 2, D), rounded up."""
        x = self.conv(pad_last(pixels) if self.pads_last else pixels)
        return self.reduce(self.depthwise(x if self.first is None else self.first(x)))


class Block(Module):
    def __init__(self, w: Weights, cfg: MobileNetV2Config, size: BlockSizes):
        self.first = pointwise(w / "expand_1x1", cfg, size.d_in, size.inner, cfg.hidden_act)
        self.depthwise = Depthwise(w / "conv_3x3", cfg, size.inner, size.stride, size.dilation)
        self.reduce = pointwise(w / "reduce_1x1", cfg, size.inner, size.d_out)
        self.is_added = size.stride == 1 and size.d_in == size.d_out

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        return self.reduce(self.depthwise(self.first(x)), x if self.is_added else None)


class MobileNetV2Pretrained(ImageModel):
    config_class = MobileNetV2Config
    name_map = NAME_MAP
    only_saved = (r"\.num_batches_tracked$",)
    any_size = True

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        """Rows and columns of the last block, rounded up."""
        (Y, X), (y, x) = pixel_values.shape[1:3], self.patch
        return (Y + y - 1) // y, (X + x - 1) // x


class MobileNetV2Model(MobileNetV2Pretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: MobileNetV2Config):
        self.config = cfg
        self.embeddings = Stem(w / "conv_stem", cfg)
        self.layers = [Block(w / "layer" / i, cfg, size) for i, size in enumerate(cfg.blocks())]
        self.widen = pointwise(w / "conv_1x1", cfg, cfg.last_width, cfg.hidden_size, cfg.hidden_act)

    def encode(self, p: ImageInputs) -> Array:
        """-> (B, y, x, D) of the last block."""
        x = self.embeddings(p.pixel_values)
        for layer in self.layers:
            x = layer(x)
        return x

    def forward(self, p: ImageInputs) -> MobileNetV2ModelOutput:
        x = self.widen(self.encode(p))
        return MobileNetV2ModelOutput(x, ops.mean(x.reshape(x.shape[0], -1, x.shape[3]), 1))


class MobileNetV2ForImageClassification(MobileNetV2Pretrained):
    def __init__(self, w: Weights, cfg: MobileNetV2Config):
        self.config, self.base_model = cfg, MobileNetV2Model(w / "mobilenet_v2", cfg)
        self.dropout = Dropout(cfg.classifier_dropout_prob)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(self.dropout(self.base_model.forward(p).pooler_output))


class DecodeHead(Module):
    """DeepLab's: each place beside the mean of all of them."""

    def __init__(self, w: Weights, cfg: MobileNetV2Config):
        own = replace(cfg, layer_norm_eps=ASPP_EPS)
        self.pooled = pointwise(w / "conv_pool", own, cfg.last_width, ASPP, "relu")
        self.places = pointwise(w / "conv_aspp", own, cfg.last_width, ASPP, "relu")
        self.project = pointwise(w / "conv_projection", own, 2 * ASPP, ASPP, "relu")
        self.dropout = Dropout(cfg.classifier_dropout_prob)
        self.classifier = Conv2d(w / "classifier.convolution", ASPP, cfg.num_labels, 1)

    def __call__(self, maps: Array) -> Array:
        """maps (B, y, x, D) -> logits (B, y, x, L)."""
        mean = ops.interpolate(self.pooled(ops.adaptive_avg_pool2d(maps, 1)), maps.shape[1:3], "nearest")
        x = self.project(ops.cat([mean, self.places(maps)], 3))
        if self.dropout.rate:  # of whole channels
            x = x * self.dropout(x[:, :1, :1] * 0 + 1)
        return self.classifier(x)


class MobileNetV2ForSemanticSegmentation(MobileNetV2Pretrained):
    auxiliary_head = None

    def __init__(self, w: Weights, cfg: MobileNetV2Config):
        self.config, self.base_model = cfg, MobileNetV2Model(w / "mobilenet_v2", cfg)
        self.decode_head = DecodeHead(w / "segmentation_head", cfg)

    def maps(self, p: ImageInputs) -> Array:
        """-> (B, y, x, D) of the last block."""
        return self.base_model.encode(p)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, y, x, L)."""
        return self.decode_head(self.maps(p))
