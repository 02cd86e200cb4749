"""UVDoc (Verhoeven et al. 2023, https://arxiv.org/abs/2302.02887): a photo of a page to the points of the photo that a
flat page would show, on a coarse grid.

`zoo.images.flatten` makes the pixels, and the flat page of the points.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, y and x those of a stage, d and D channels before and after.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import ops
from ...errors import ConfigError
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit.backbone import select_states
from .config import KERNEL, UVDocBackboneConfig, UVDocConfig

NAME_MAP = NameMap(prefix="", base=("backbone", "head"), ignored=(r"\.num_batches_tracked$",))


class UVDocModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, y, x, 2): where in the photo each point of the flat page is, x and y in -1 ... 1


def conv_norm(w: Weights, d_in: int, d_out: int, kernel: int, act: str | None = "relu", **options: Any) -> Conv2d:
    """act(norm(convolution)), the norm folded in."""
    return Conv2d(
        w / "convolution", d_in, d_out, kernel, act=act, norm=BatchNorm(w / "normalization", d_out), **options
    )


class ResidualBlock(Module):
    def __init__(self, w: Weights, d: int, D: int, dilation: int, halves: bool):
        stride, wide = 2 if halves else 1, 2 * dilation  # which leaves the image its size
        self.shortcut = None
        if halves:
            self.shortcut = conv_norm(w / "conv_down", d, D, KERNEL, None, stride=2, padding=KERNEL // 2)
        self.first = conv_norm(w / "conv_start", d, D, KERNEL, stride=stride, padding=wide, dilation=dilation)
        norm = BatchNorm(w / "conv_final.normalization", D)
        last = w / "conv_final.convolution"
        self.last = Conv2d(last, D, D, KERNEL, padding=wide, dilation=dilation, norm=norm, post="relu")

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        return self.last(self.first(x), x if self.shortcut is None else self.shortcut(x))


class ResNet(Module):
    def __init__(self, w: Weights, cfg: UVDocBackboneConfig):
        head, wide = enumerate(cfg.resnet_head), KERNEL // 2
        self.head = [
            conv_norm(w / "resnet_head" / i, d, D, KERNEL, stride=2, padding=wide, bias=False) for i, (d, D) in head
        ]
        self.blocks = [
            ResidualBlock(w / "resnet_down" / i / "layers" / j, *row)
            for i, stage in enumerate(cfg.resnet_configs)
            for j, row in enumerate(stage)
        ]

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, C) -> (B, y, x, D)."""
        for layer in (*self.head, *self.blocks):
            x = layer(x)
        return x


class Bridge(Module):
    """Convolutions whose dilation lets a place see far."""

    def __init__(self, w: Weights, stage: Any):
        self.convs = [
            conv_norm(w / "blocks" / i, D, D, 3, padding=dilation, dilation=dilation, bias=False)
            for i, (D, dilation) in enumerate(stage)
        ]

    def __call__(self, x: Array) -> Array:
        """x (B, y, x, D) -> (B, y, x, D)."""
        for conv in self.convs:
            x = conv(x)
        return x


def reflect(x: Array, count: int) -> Array:
    """x (B, y, x, D) -> (B, y + 2 count, x + 2 count, D): the image mirrored at its outermost pixels."""
    before = [x[:, i : i + 1] for i in range(count, 0, -1)]
    x = ops.cat([*before, x, *(x[:, x.shape[1] - 1 - i : x.shape[1] - i] for i in range(1, count + 1))], 1)
    before = [x[:, :, i : i + 1] for i in range(count, 0, -1)]
    return ops.cat([*before, x, *(x[:, :, x.shape[2] - 1 - i : x.shape[2] - i] for i in range(1, count + 1))], 2)


class Points(Module):
    def __init__(self, w: Weights, cfg: UVDocConfig):
        (d, D), (_, last), k = *cfg.out_point_positions2D, cfg.kernel_size
        self.margin = k // 2
        self.down = conv_norm(w / "conv_down", d, D, k, None, bias=False)
        self.slope = w.get("conv_down.activation.weight", (1,))
        self.up = Conv2d(w / "conv_up", D, last, k)

    def __call__(self, x: Array) -> Array:
        """x (B, y, x, d) -> (B, y, x, 2)."""
        x = self.down(reflect(x, self.margin))
        above = ops.activate(x, "relu")
        return self.up(reflect(above + self.slope * (x - above), self.margin))


class UVDocModel(ImageModel):
    config_class = UVDocConfig
    name_map = NAME_MAP
    is_base_model = True
    any_size = True
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training

    def __init__(self, w: Weights, cfg: UVDocConfig):
        network, (d, D) = cfg.network, cfg.bridge_connector
        if len(network.outputs) != len(network.stage_configs):
            raise ConfigError(f"backbone_config: out_features = {network.out_features}, expected one of each bridge")
        self.config, self.outputs = cfg, network.outputs
        self.backbone = ResNet(w / "backbone.resnet", network)
        bridges = w / "backbone.bridge.bridge"
        self.layers = [Bridge(bridges / i, stage) for i, stage in enumerate(network.stage_configs)]
        self.merge = conv_norm(w / "head.bridge_connector", d * len(self.layers), D, 1, bias=False)
        self.points = Points(w / "head.out_point_positions2D", cfg)

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """So large that the features can be mirrored at their edges."""
        least = self.config.kernel_size // 2 + 1
        return max(size[0], least * self.patch[0]), max(size[1], least * self.patch[1])

    def forward(self, p: ImageInputs) -> UVDocModelOutput:
        x = self.backbone(p.pixel_values)
        seen = select_states((x, *(bridge(x) for bridge in self.layers)), self.outputs)
        return UVDocModelOutput(self.points(self.merge(ops.cat(seen, 3))))
