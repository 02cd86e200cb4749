"""PP-OCRv6's small detector of text: PP-LCNetV4, a pyramid of its four stages, and each pixel's probability of being
within a line, as in DB (Liao et al. 2019, https://arxiv.org/abs/1911.08947).

Height and width of images are multiples of 32.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, y and x a quarter of them, N neck_out_channels.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...errors import ConfigError
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, ConvTranspose2d, DepthwiseConv2d, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..pp_lcnet_v4.model import PPLCNetV4
from .config import PPOCRV6SmallDetConfig

NAME_MAP = NameMap(prefix="model", base=("backbone", "neck"), ignored=(r"\.num_batches_tracked$", r"^head\."))


class PPOCRV6SmallDetModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, y, x, N)


class PPOCRV6SmallDetOutput(NamedTuple):
    last_hidden_state: Array  # (B, Y, X, 1), probabilities


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
    """A stage's features in the pyramid's width."""

    def __init__(self, w: Weights, cfg: PPOCRV6SmallDetConfig, d: int):
        N = cfg.neck_out_channels
        self.project = Conv2d(w / "in_conv", d, N, 1, bias=False)
        self.gate = Squeeze(w / "squeeze_excitation_block", N, cfg.reduction)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, Y, X, N)."""
        x = self.project(x)
        return x + self.gate(x)


class Smooth(Module):
    def __init__(self, w: Weights, cfg: PPOCRV6SmallDetConfig):
        N = cfg.neck_out_channels
        self.depthwise = DepthwiseConv2d(w / "depthwise_convolution", N, cfg.dilated_kernel_size)
        self.pointwise = Conv2d(w / "pointwise_convolution", N, N // 4, 1, bias=False)
        self.gate = Squeeze(w / "squeeze_excitation_module", N // 4, cfg.reduction)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, N) -> (B, Y, X, N / 4)."""
        x = self.pointwise(self.depthwise(x))
        return x + self.gate(x)


class Neck(Module):
    def __init__(self, w: Weights, cfg: PPOCRV6SmallDetConfig):
        self.mode, widths = cfg.interpolate_mode, cfg.layer_list_out_channels
        self.insert = [Insert(w / "insert_conv" / i, cfg, d) for i, d in enumerate(widths)]
        self.smooth = [Smooth(w / "input_conv" / i, cfg) for i in range(len(widths))]

    def __call__(self, features: list[Array]) -> Array:
        """features of the stages, the largest first -> (B, y, x, N)."""
        levels = [insert(x) for insert, x in zip(self.insert, features, strict=True)]
        for i in (2, 1, 0):
            levels[i] = levels[i] + ops.interpolate(levels[i + 1], levels[i].shape[1:3], self.mode)
        levels = [smooth(x) for smooth, x in zip(self.smooth, levels, strict=True)]
        size = levels[0].shape[1:3]
        levels = [levels[0], *(ops.interpolate(x, size, self.mode) for x in levels[1:])]
        return ops.cat(levels[::-1], 3)


class PPOCRV6SmallDetPretrained(ImageModel):
    config_class = PPOCRV6SmallDetConfig
    name_map = NAME_MAP
    any_size = True
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Multiples of a place of the last stage, so that each stage is twice as large as the next."""
        (Y, X), (y, x) = size, self.patch
        return max(round(Y / y), 1) * y, max(round(X / x), 1) * x


class PPOCRV6SmallDetModel(PPOCRV6SmallDetPretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: PPOCRV6SmallDetConfig):
        net = cfg.network
        widths = [net.widths[i] for i in net.outputs]
        if list(cfg.layer_list_out_channels) != widths or len(widths) != 4:
            raise ConfigError(f"layer_list_out_channels = {cfg.layer_list_out_channels!r}, the backbone gives {widths}")
        self.config, self.net = cfg, PPLCNetV4(w / "backbone.encoder", net)
        self.neck = Neck(w / "neck", cfg)

    @property
    def embeddings(self) -> Module:
        return self.net.embeddings

    @property
    def layers(self) -> list[Module]:
        return [*self.net.layers]

    def features(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, y, x, N)."""
        return self.neck(self.net(pixels))

    def forward(self, p: ImageInputs) -> PPOCRV6SmallDetModelOutput:
        return PPOCRV6SmallDetModelOutput(self.features(p.pixel_values))


class PPOCRV6SmallDetForObjectDetection(PPOCRV6SmallDetPretrained):
    def __init__(self, w: Weights, cfg: PPOCRV6SmallDetConfig):
        self.config, self.base_model = cfg, PPOCRV6SmallDetModel(w / "model", cfg)
        N, (first, second, third), w = cfg.neck_out_channels, cfg.kernel_list, w / "head"
        norms = [BatchNorm(w / name / "norm", N // 4) for name in ("conv_down", "conv_up")]
        down = w / "conv_down.convolution"
        self.down = Conv2d(down, N, N // 4, first, 1, first // 2, bias=False, act="relu", norm=norms[0])
        self.up = ConvTranspose2d(w / "conv_up.convolution", N // 4, N // 4, second, 2, "relu", norms[1])
        self.last = ConvTranspose2d(w / "conv_final", N // 4, 1, third, 2, "sigmoid")

    def forward(self, p: ImageInputs) -> PPOCRV6SmallDetOutput:
        return PPOCRV6SmallDetOutput(self.last(self.up(self.down(self.base_model.features(p.pixel_values)))))
