"""MobileViT (Mehta and Rastegari 2021, https://arxiv.org/abs/2110.02178): MobileNetV2's blocks, and between them ViT's
layers, in which each pixel of a patch attends to the pixels at its place in all other patches.

Images may have any size; where a map cannot be cut into patches, it is resized to the next size that can.  Channels
come last.  The head that finds segments is DeepLab's (Chen et al. 2017, https://arxiv.org/abs/1706.05587).

Shapes: B batch, Y and X height and width in pixels, C channels, y and x those of a stage, D its width, p the side of a
patch, L labels.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, DepthwiseConv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit.model import Layer
from .config import MobileViTConfig

NAME_MAP = NameMap(
    prefix="mobilevit",
    base=("conv_stem", "encoder", "conv_1x1_exp"),
    ignored=(r"\.num_batches_tracked$", r"^(classifier|segmentation_head)\."),  # a counter of training, and the heads
)
NORM_EPS = 1e-5  # convolutions have one in their norms, whatever layer_norm_eps is
BLOCKS = (1, 3)  # the two stages without attention have as many
LAYERS = (2, 4, 3)  # the three stages with attention have as many


class MobileViTModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, y, x, D)
    pooler_output: Array  # (B, D)


def convolution(w: Weights, d_in: int, d_out: int, size: int = 1, act: str | None = None, dilation: int = 1) -> Conv2d:
    """act(norm(convolution)), as large as what it reads."""
    norm, padding = BatchNorm(w / "normalization", d_out, NORM_EPS), size // 2 * dilation
    own = w / "convolution"
    return Conv2d(own, d_in, d_out, size, 1, padding, dilation=dilation, bias=False, act=act, norm=norm)


class Stem(Module):
    prefix_tokens: tuple[Array, ...] = ()

    def __init__(self, w: Weights, cfg: MobileViTConfig):
        d = cfg.neck_hidden_sizes[0]
        norm, act = BatchNorm(w / "normalization", d, NORM_EPS), cfg.hidden_act
        self.conv = Conv2d(w / "convolution", cfg.num_channels, d, 3, 2, 1, bias=False, act=act, norm=norm)

    def __call__(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, Y / 2, X / 2, D), rounded up."""
        return self.conv(pixels)


class Block(Module):
    """MobileNetV2's."""

    def __init__(self, w: Weights, cfg: MobileViTConfig, d_in: int, d_out: int, stride: int = 1, dilation: int = 1):
        inner, act, middle = cfg.widen(d_in), cfg.hidden_act, w / "conv_3x3"
        self.first = convolution(w / "expand_1x1", d_in, inner, act=act)
        norm, own = BatchNorm(middle / "normalization", inner, NORM_EPS), middle / "convolution"
        self.depthwise = DepthwiseConv2d(own, inner, 3, stride, False, act, norm, padding=dilation, dilation=dilation)
        self.reduce = convolution(w / "reduce_1x1", inner, d_out)
        self.is_added = stride == 1 and d_in == d_out

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        return self.reduce(self.depthwise(self.first(x)), x if self.is_added else None)


class SmallStage(Module):
    """Blocks alone."""

    def __init__(self, w: Weights, cfg: MobileViTConfig, stage: int):
        d_in, d_out = cfg.neck_hidden_sizes[stage : stage + 2]
        self.blocks = [
            Block(w / "layer" / i, cfg, d_out if i else d_in, d_out, 1 if i else stage + 1)
            for i in range(BLOCKS[stage])
        ]

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        for block in self.blocks:
            x = block(x)
        return x


class Stage(Module):
    """A block, and what layers over patches find, beside what was there."""

    def __init__(self, w: Weights, cfg: MobileViTConfig, stage: int):
        d_in, d_out = cfg.neck_hidden_sizes[stage + 2 : stage + 4]
        layer, act, size = cfg.layer_config(stage), cfg.hidden_act, cfg.conv_kernel_size
        D, self.side = layer.hidden_size, cfg.patch_size
        self.block = Block(w / "downsampling_layer", cfg, d_in, d_out, *cfg.strides()[stage])
        self.near = convolution(w / "conv_kxk", d_out, d_out, size, act)
        self.widen = Conv2d(w / "conv_1x1.convolution", d_out, D, 1, bias=False)
        self.layers = [Layer(w / "transformer.layer" / i, layer) for i in range(LAYERS[stage])]
        self.norm = LayerNorm(w / "layernorm", D, layer.layer_norm_eps)
        self.narrow = convolution(w / "conv_projection", D, d_out, act=act)
        self.fusion = convolution(w / "fusion", 2 * d_out, d_out, size, act)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        x = self.block(x)
        return self.fusion(ops.cat([x, self.narrow(self.attend(self.widen(self.near(x))))], 3))

    def attend(self, maps: Array) -> Array:
        """maps (B, y, x, D) -> (B, y, x, D): each pixel beside those at its place in other patches."""
        (B, y, x, D), p = maps.shape, self.side
        h, w = (y + p - 1) // p, (x + p - 1) // p
        patches = ops.windows(ops.interpolate(maps, (h * p, w * p), "bilinear"), p)
        z = ops.cat([patches[:, i].reshape(B, h * w, D) for i in range(p * p)], 0)  # (p p B, h w, D)
        for layer in self.layers:
            z = layer(z)
        z = self.norm(z)
        patches = ops.cat([z[i * B : (i + 1) * B].reshape(B * h * w, 1, D) for i in range(p * p)], 1)
        return ops.interpolate(ops.from_windows(patches, p, (h * p, w * p)), (y, x), "bilinear")


class MobileViTPretrained(ImageModel):
    config_class = MobileViTConfig
    name_map = NAME_MAP
    only_saved = (r"\.num_batches_tracked$",)
    any_size = True

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        """Rows and columns of the last stage, rounded up."""
        (Y, X), (y, x) = pixel_values.shape[1:3], self.patch
        return (Y + y - 1) // y, (X + x - 1) // x


class MobileViTModel(MobileViTPretrained):
    """widens: whether the last convolution is there, which the head of segments does not need."""

    is_base_model = True

    def __init__(self, w: Weights, cfg: MobileViTConfig, widens: bool = True):
        self.config, encoder, D = cfg, w / "encoder.layer", cfg.hidden_size
        self.embeddings = Stem(w / "conv_stem", cfg)
        self.layers: list[SmallStage | Stage] = [SmallStage(encoder / i, cfg, i) for i in range(2)]
        self.layers += [Stage(encoder / (i + 2), cfg, i) for i in range(3)]
        last = cfg.neck_hidden_sizes[-2]
        self.widen = convolution(w / "conv_1x1_exp", last, D, act=cfg.hidden_act) if widens else None

    def encode(self, p: ImageInputs) -> Array:
        """-> (B, y, x, D) of the last stage."""
        x = self.embeddings(p.pixel_values)
        for layer in self.layers:
            x = layer(x)
        return x

    def forward(self, p: ImageInputs) -> MobileViTModelOutput:
        x = self.encode(p)
        x = x if self.widen is None else self.widen(x)
        return MobileViTModelOutput(x, ops.mean(x.reshape(x.shape[0], -1, x.shape[3]), 1))


class MobileViTForImageClassification(MobileViTPretrained):
    def __init__(self, w: Weights, cfg: MobileViTConfig):
        self.config, self.base_model = cfg, MobileViTModel(w / "mobilevit", cfg)
        self.dropout = Dropout(cfg.classifier_dropout_prob)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(self.dropout(self.base_model.forward(p).pooler_output))


class DecodeHead(Module):
    """DeepLab's: each place, its surroundings at three distances, and the mean of all places."""

    def __init__(self, w: Weights, cfg: MobileViTConfig):
        d, D, convs = cfg.neck_hidden_sizes[-2], cfg.aspp_out_channels, w / "aspp.convs"
        self.places = [convolution(convs / 0, d, D, act="relu")]
        self.places += [convolution(convs / (i + 1), d, D, 3, "relu", n) for i, n in enumerate(cfg.atrous_rates)]
        self.pooled = convolution(convs / 4 / "conv_1x1", d, D, act="relu")
        self.project = convolution(w / "aspp.project", 5 * D, D, act="relu")
        self.dropout, self.channel_dropout = Dropout(cfg.aspp_dropout_prob), Dropout(cfg.classifier_dropout_prob)
        self.classifier = Conv2d(w / "classifier.convolution", D, cfg.num_labels, 1)

    def __call__(self, maps: Array) -> Array:
        """maps (B, y, x, D) -> logits (B, y, x, L)."""
        mean = ops.interpolate(self.pooled(ops.adaptive_avg_pool2d(maps, 1)), maps.shape[1:3], "nearest")
        x = self.dropout(self.project(ops.cat([*(place(maps) for place in self.places), mean], 3)))
        if self.channel_dropout.rate:
            x = x * self.channel_dropout(x[:, :1, :1] * 0 + 1)
        return self.classifier(x)


class MobileViTForSemanticSegmentation(MobileViTPretrained):
    auxiliary_head = None

    def __init__(self, w: Weights, cfg: MobileViTConfig):
        self.config, self.base_model = cfg, MobileViTModel(w / "mobilevit", cfg, widens=False)
        self.decode_head = DecodeHead(w / "segmentation_head", cfg)

    def maps(self, p: ImageInputs) -> Array:
        """-> (B, y, x, D) of the last stage."""
        return self.base_model.encode(p)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, y, x, L)."""
        return self.decode_head(self.maps(p))
