"""HGNetV2, the network of PP-OCRv5's server models and of D-FINE, after PP-HGNet
(https://github.com/PaddlePaddle/PaddleClas): blocks of convolutions whose results are all put side by side.

Images may have any size.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, C channels, y and x those of a stage, d and D channels before and
after, L labels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ... import ops
from ...errors import ConfigError
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, DepthwiseConv2d, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit.backbone import BackboneOutput, select_states
from .config import HGNetV2Config, StageSizes

# A class with a head has the network beside it, without a prefix.
NAME_MAP = NameMap(prefix="hgnetv2", base=(), ignored=(r"\.num_batches_tracked$", r"^fc\."))


class Affine(Module):
    """A factor and a summand for all of an array."""

    def __init__(self, w: Weights):
        self.scale, self.bias = w.get("scale", (1,)), w.get("bias", (1,))

    def __call__(self, x: Array) -> Array:
        return x * self.scale + self.bias


class ConvLayer(Module):
    """affine(act(norm(convolution))), the norm folded in; the affine only where there is an activation."""

    def __init__(
        self,
        w: Weights,
        cfg: HGNetV2Config,
        d_in: int,
        d_out: int,
        kernel: int,
        stride: int | tuple[int, int] = 1,
        act: str | None = "relu",
        of_channels: bool = False,
    ):
        """of_channels: each channel is convolved by itself.  At stride 1 an odd kernel leaves the image's size."""
        norm, conv = BatchNorm(w / "normalization", d_out), w / "convolution"
        if of_channels:
            self.conv = DepthwiseConv2d(conv, d_out, kernel, stride, bias=False, act=act, norm=norm)
        else:
            self.conv = Conv2d(conv, d_in, d_out, kernel, stride, (kernel - 1) // 2, bias=False, act=act, norm=norm)
        self.affine = Affine(w / "lab") if act and cfg.use_learnable_affine_block else None

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        x = self.conv(x)
        return x if self.affine is None else self.affine(x)


class Stem(Module):
    prefix_tokens: tuple[Array, ...] = ()

    def __init__(self, w: Weights, cfg: HGNetV2Config):
        (C, d, D), act = cfg.stem_channels, cfg.hidden_act
        first, second, third, fourth, last = cfg.stem_strides
        self.first = ConvLayer(w / "stem1", cfg, C, d, 3, first, act)
        self.narrow = ConvLayer(w / "stem2a", cfg, d, d // 2, 2, second, act)
        self.widen = ConvLayer(w / "stem2b", cfg, d // 2, d, 2, third, act)
        self.merge = ConvLayer(w / "stem3", cfg, 2 * d, d, 3, fourth, act)
        self.last = ConvLayer(w / "stem4", cfg, d, D, 1, last, act)

    def __call__(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, Y / 4, X / 4, D) with the default strides, rounded up."""
        x = pad_end(self.first(pixels))
        y = self.widen(pad_end(self.narrow(x)))
        return self.last(self.merge(ops.cat([ops.max_pool2d(x, 2, stride=1), y], 3)))


def pad_end(x: Array) -> Array:
    """x (B, Y, X, d) -> (B, Y + 1, X + 1, d) with zeros below and on the right."""
    B, Y, X, d = x.shape
    x = ops.cat([x, ops.zeros((B, 1, X, d), x)], 1)
    return ops.cat([x, ops.zeros((B, Y + 1, 1, d), x)], 2)


class LightLayer(Module):
    """Channels are mixed in each pixel, then pixels in each channel."""

    def __init__(self, w: Weights, cfg: HGNetV2Config, d_in: int, d_out: int, kernel: int):
        self.pointwise = ConvLayer(w / "conv1", cfg, d_in, d_out, 1, act=None)
        self.depthwise = ConvLayer(w / "conv2", cfg, d_out, d_out, kernel, of_channels=True)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, Y, X, D)."""
        return self.depthwise(self.pointwise(x))


class Block(Module):
    """What each of a row of layers makes is put side by side, and mixed."""

    def __init__(self, w: Weights, cfg: HGNetV2Config, size: StageSizes, i: int):
        d, D, make = size.d_out if i else size.d_in, size.d_out, LightLayer if size.is_light else ConvLayer
        widths = [d, *(size.d_mid,) * size.layers]
        self.layers = [make(w / "layers" / j, cfg, widths[j], size.d_mid, size.kernel) for j in range(size.layers)]
        self.narrow = ConvLayer(w / "aggregation" / 0, cfg, sum(widths), D // 2, 1)
        self.excite = ConvLayer(w / "aggregation" / 1, cfg, D // 2, D, 1)
        self.is_residual = i > 0

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, Y, X, D)."""
        found = [x]
        for layer in self.layers:
            found.append(layer(found[-1]))
        y = self.excite(self.narrow(ops.cat(found, 3)))
        return y + x if self.is_residual else y


class Stage(Module):
    def __init__(self, w: Weights, cfg: HGNetV2Config, size: StageSizes):
        d, stride = size.d_in, size.stride
        self.reduce = None
        if stride is not None:
            self.reduce = ConvLayer(w / "downsample", cfg, d, d, 3, stride, None, of_channels=True)
        self.blocks = [Block(w / "blocks" / i, cfg, size, i) for i in range(size.blocks)]

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        x = x if self.reduce is None else self.reduce(x)
        for block in self.blocks:
            x = block(x)
        return x


class HGNetV2(Module):
    """The network, which other models look through too."""

    def __init__(self, w: Weights, cfg: HGNetV2Config):
        self.outputs = cfg.outputs
        self.embeddings = Stem(w / "embedder", cfg)
        self.layers = [Stage(w / "encoder.stages" / i, cfg, size) for i, size in enumerate(cfg.stages)]

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


class HGNetV2Pretrained(ImageModel):
    config_class = HGNetV2Config
    name_map = NAME_MAP
    any_size = True
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training


class HGNetV2Backbone(HGNetV2Pretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: HGNetV2Config):
        self.config, self.net = cfg, HGNetV2(w, cfg)

    @property
    def embeddings(self) -> Module:
        return self.net.embeddings

    @property
    def layers(self) -> list[Stage]:
        return self.net.layers

    def forward(self, p: ImageInputs) -> BackboneOutput:
        """-> the hidden states that the config names."""
        return BackboneOutput(tuple(self.net(p.pixel_values)))


class HGNetV2ForImageClassification(HGNetV2Pretrained):
    def __init__(self, w: Weights, cfg: HGNetV2Config):
        if cfg.hidden_sizes[-1] != cfg.hidden_size:
            raise ConfigError(
                f"hidden_sizes = {cfg.hidden_sizes!r} do not end as stage_out_channels, {cfg.hidden_size}"
            )
        self.config, self.base_model = cfg, HGNetV2Backbone(w, cfg)
        self.classifier = Linear(w / "fc", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        (x,) = deque(self.base_model.net.hidden_states(p.pixel_values), maxlen=1)
        return self.classifier(ops.adaptive_avg_pool2d(x, 1)[:, 0, 0])
