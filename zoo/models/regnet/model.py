"""RegNet (Radosavovic et al. 2020, https://arxiv.org/abs/2003.13678): ResNet's blocks without a bottleneck, whose
convolutions mix groups of channels, in widths and depths that follow from a line.

Images may have any size.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, C channels, y and x those of a stage, D its width, L labels.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import RegNetConfig

NAME_MAP = NameMap(
    prefix="regnet",
    base=("embedder", "encoder"),
    ignored=(r"\.num_batches_tracked$", r"^classifier\."),  # a counter of training, and the head
)


class RegNetModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, y, x, D)
    pooler_output: Array  # (B, D)


def convolution(
    w: Weights,
    d_in: int,
    d_out: int,
    kernel: int = 1,
    stride: int = 1,
    act: str | None = None,
    groups: int = 1,
    post: str | None = None,
) -> Conv2d:
    """post(act(norm(convolution)) + residual), the norm folded in; at stride 1 the image keeps its size."""
    norm = BatchNorm(w / "normalization", d_out)
    w = w / "convolution"
    return Conv2d(w, d_in, d_out, kernel, stride, kernel // 2, bias=False, act=act, norm=norm, post=post, groups=groups)


class Stem(Module):
    prefix_tokens: tuple[Array, ...] = ()

    def __init__(self, w: Weights, cfg: RegNetConfig):
        self.conv = convolution(w / "embedder", cfg.num_channels, cfg.embedding_size, 3, 2, cfg.hidden_act)

    def __call__(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, Y / 2, X / 2, D), rounded up."""
        return self.conv(pixels)


class Squeeze(Module):
    """Channels weighted by what an image has of all of them (Hu et al. 2017, https://arxiv.org/abs/1709.01507)."""

    def __init__(self, w: Weights, d: int, inner: int):
        self.down = Conv2d(w / "attention" / 0, d, inner, 1, act="relu")
        self.up = Conv2d(w / "attention" / 2, inner, d, 1, act="sigmoid")

    def __call__(self, x: Array) -> Array:
        """x (B, y, x, D) -> (B, y, x, D)."""
        return x * self.up(self.down(ops.adaptive_avg_pool2d(x, 1)))


class Block(Module):
    """act(three convolutions + a shortcut); of the type "y" with weighted channels before the third."""

    def __init__(self, w: Weights, cfg: RegNetConfig, d_in: int, d_out: int, stride: int):
        act, own, is_weighted = cfg.hidden_act, w / "layer", cfg.layer_type == "y"
        self.first = convolution(own / 0, d_in, d_out, act=act)
        self.grouped = convolution(own / 1, d_out, d_out, 3, stride, act, cfg.groups(d_out))
        self.gate = Squeeze(own / 2, d_out, round(d_in / 4)) if is_weighted else None
        self.last = convolution(own / (3 if is_weighted else 2), d_out, d_out, post=act)
        is_plain = stride == 1 and d_in == d_out
        self.shortcut = None if is_plain else convolution(w / "shortcut", d_in, d_out, 1, stride)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d_in) -> (B, Y / stride, X / stride, d_out), rounded up."""
        y = self.grouped(self.first(x))
        return self.last(y if self.gate is None else self.gate(y), x if self.shortcut is None else self.shortcut(x))


class Stage(Module):
    def __init__(self, w: Weights, cfg: RegNetConfig, i: int):
        D, d = cfg.hidden_sizes[i], cfg.hidden_sizes[i - 1] if i else cfg.embedding_size
        stride = 2 if i or cfg.downsample_in_first_stage else 1
        first = Block(w / "layers" / 0, cfg, d, D, stride)
        self.blocks = [first, *(Block(w / "layers" / j, cfg, D, D, 1) for j in range(1, cfg.depths[i]))]

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        for block in self.blocks:
            x = block(x)
        return x


class RegNetPretrained(ImageModel):
    config_class = RegNetConfig
    name_map = NAME_MAP
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training
    any_size = True

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        """Rows and columns of the last stage, rounded up."""
        (Y, X), (y, x) = pixel_values.shape[1:3], self.patch
        return (Y + y - 1) // y, (X + x - 1) // x


class RegNetModel(RegNetPretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: RegNetConfig):
        self.config, self.embeddings = cfg, Stem(w / "embedder", cfg)
        self.layers = [Stage(w / "encoder.stages" / i, cfg, i) for i in range(len(cfg.depths))]

    def forward(self, p: ImageInputs) -> RegNetModelOutput:
        x = self.embeddings(p.pixel_values)
        for stage in self.layers:
            x = stage(x)
        return RegNetModelOutput(x, ops.mean(x.reshape(x.shape[0], -1, x.shape[3]), 1))


class RegNetForImageClassification(RegNetPretrained):
    def __init__(self, w: Weights, cfg: RegNetConfig):
        self.config, self.base_model = cfg, RegNetModel(w / "regnet", cfg)
        self.classifier = Linear(w / "classifier" / 1, cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(self.base_model.forward(p).pooler_output)
