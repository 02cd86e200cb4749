"""EfficientNet (Tan and Le 2019, https://arxiv.org/abs/1905.11946): MobileNetV2's blocks with weighted channels, in
widths and depths that grow together.

Images may have any size.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, C channels, y and x those of a block, D its width, L labels.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, DepthwiseConv2d, Dropout, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import BlockSizes, EfficientNetBlocks, EfficientNetConfig

NAME_MAP = NameMap(
    prefix="efficientnet",
    base=("embeddings", "encoder"),
    ignored=(r"\.num_batches_tracked$", r"^classifier\."),  # a counter of training, and the head
)


class EfficientNetModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, y, x, D)
    pooler_output: Array  # (B, D)


class Stem(Module):
    prefix_tokens: tuple[Array, ...] = ()

    def __init__(self, w: Weights, cfg: EfficientNetBlocks):
        d = cfg.scale_width(32)
        norm, act = BatchNorm(w / "batchnorm", d, cfg.batch_norm_eps), cfg.hidden_act
        self.conv = Conv2d(w / "convolution", cfg.num_channels, d, 3, 2, bias=False, act=act, norm=norm)

    def __call__(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, Y / 2, X / 2, D), rounded down."""
        return self.conv(ops.pad_images(pixels, (0, 1), (0, 1)))


class Depthwise(Module):
    """act(norm(convolution of each channel by itself))."""

    def __init__(self, w: Weights, cfg: EfficientNetBlocks, d: int, size: BlockSizes):
        self.is_first, far = size.stride == 2, size.kernel // 2
        self.edges = (far - 1 if size.pads_last else far, far)
        norm, padding = BatchNorm(w / "depthwise_norm", d, cfg.batch_norm_eps), 0 if self.is_first else None
        self.conv = DepthwiseConv2d(
            w / "depthwise_conv", d, size.kernel, size.stride, False, cfg.hidden_act, norm, padding=padding
        )

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, D) -> (B, Y / stride, X / stride, D), rounded down where `pads_last`, or else up."""
        return self.conv(ops.pad_images(x, self.edges, self.edges) if self.is_first else x)


class Squeeze(Module):
    """Channels weighted by what an image has of all of them (Hu et al. 2017, https://arxiv.org/abs/1709.01507)."""

    def __init__(self, w: Weights, cfg: EfficientNetBlocks, d: int, size: BlockSizes):
        inner = max(1, int(size.d_in * cfg.squeeze_expansion_ratio))
        self.down = Conv2d(w / "reduce", d, inner, 1, act=cfg.hidden_act)
        self.up = Conv2d(w / "expand", inner, d, 1, act="sigmoid")

    def __call__(self, x: Array) -> Array:
        """x (B, y, x, D) -> (B, y, x, D)."""
        return x * self.up(self.down(ops.adaptive_avg_pool2d(x, 1)))


class Block(Module):
    def __init__(self, w: Weights, cfg: EfficientNetBlocks, size: BlockSizes, dropout: float):
        d, act, eps = size.d_in * size.expansion, cfg.hidden_act, cfg.batch_norm_eps
        wide, last = w / "expansion", w / "projection"
        norm = BatchNorm(wide / "expand_bn", d, eps) if size.expansion > 1 else None
        self.first = Conv2d(wide / "expand_conv", size.d_in, d, 1, bias=False, act=act, norm=norm) if norm else None
        self.depthwise = Depthwise(w / "depthwise_conv", cfg, d, size)
        self.gate = Squeeze(w / "squeeze_excite", cfg, d, size)
        norm = BatchNorm(last / "project_bn", size.d_out, eps)
        self.project = Conv2d(last / "project_conv", d, size.d_out, 1, bias=False, norm=norm)
        self.is_added, self.dropout = size.is_added, Dropout(dropout)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        y = self.gate(self.depthwise(x if self.first is None else self.first(x)))
        if self.is_added and not self.dropout.rate:
            return self.project(y, x)
        return self.dropout(self.project(y)) + x if self.is_added else self.project(y)


class EfficientNetPretrained(ImageModel):
    config_class = EfficientNetConfig
    name_map = NAME_MAP
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training
    any_size = True


class EfficientNetModel(EfficientNetPretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: EfficientNetConfig):
        self.config, sizes, encoder = cfg, cfg.blocks, w / "encoder"
        self.embeddings = Stem(w / "embeddings", cfg)
        self.layers = [
            Block(encoder / "blocks" / i, cfg, size, cfg.drop_connect_rate * i / len(sizes))
            for i, size in enumerate(sizes)
        ]
        norm, d = BatchNorm(encoder / "top_bn", cfg.hidden_dim, cfg.batch_norm_eps), sizes[-1].d_out
        top = encoder / "top_conv"
        self.widen = Conv2d(top, d, cfg.hidden_dim, 1, bias=False, act=cfg.hidden_act, norm=norm)

    def forward(self, p: ImageInputs) -> EfficientNetModelOutput:
        x = self.embeddings(p.pixel_values)
        for layer in self.layers:
            x = layer(x)
        x = self.widen(x)
        return EfficientNetModelOutput(x, ops.mean(x.reshape(x.shape[0], -1, x.shape[3]), 1))


class EfficientNetForImageClassification(EfficientNetPretrained):
    def __init__(self, w: Weights, cfg: EfficientNetConfig):
        self.config, self.base_model = cfg, EfficientNetModel(w / "efficientnet", cfg)
        self.dropout = Dropout(cfg.dropout_rate)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(self.dropout(self.base_model.forward(p).pooler_output))
