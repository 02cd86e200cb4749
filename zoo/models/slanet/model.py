"""SLANet (Li et al. 2022, https://arxiv.org/abs/2210.05391): PP-LCNet, a pyramid of its stages down and up again
(CSP-PAN), and a GRU with attention over the smallest level that writes a table's structure, token by token of HTML.

Images may have any size.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, C channels, y and x those of a level, N post_conv_out_channels,
S places of the last level, T tokens, V out_channels, H hidden_size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, DepthwiseConv2d, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..pp_lcnet.model import PPLCNet, convolution
from .config import SLANetConfig

NAME_MAP = NameMap(prefix="backbone", base=(), ignored=(r"\.num_batches_tracked$",))


class TableStructureOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, V), probabilities
    loc_preds: Array | None = None  # (B, T, loc_reg_num): x0, y0, x1, y1 in 0 ... 1 of the table


class SeparableConv(Module):
    """Pixels are mixed in each channel by itself, then channels in each pixel."""

    def __init__(self, w: Weights, cfg: SLANetConfig, d: int, stride: int):
        act, own = cfg.hidden_act, w / "depthwise_convolution"
        norm = BatchNorm(own / "normalization", d)
        self.depthwise = DepthwiseConv2d(own / "convolution", d, cfg.csp_kernel_size, stride, False, act, norm)
        self.pointwise = convolution(w / "pointwise_convolution", d, d, 1, act=act)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, d)."""
        return self.pointwise(self.depthwise(x))


class Bottleneck(Module):
    def __init__(self, w: Weights, cfg: SLANetConfig, d: int):
        self.first = convolution(w / "conv1", d, d, 1, act=cfg.hidden_act)
        self.second = SeparableConv(w / "conv2", cfg, d, 1)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, Y, X, d)."""
        return self.second(self.first(x))


class CspLayer(Module):
    """Half of the channels go through convolutions, half past them (Wang et al. 2019, https://arxiv.org/abs/1911.11929)."""

    def __init__(self, w: Weights, cfg: SLANetConfig):
        N, act = cfg.post_conv_out_channels, cfg.hidden_act
        self.shortcut = convolution(w / "conv1", 2 * N, N // 2, 1, act=act)
        self.enter = convolution(w / "conv2", 2 * N, N // 2, 1, act=act)
        self.blocks = [Bottleneck(w / "bottlenecks" / i, cfg, N // 2) for i in range(cfg.csp_num_blocks)]
        self.merge = convolution(w / "conv3", N, N, 1, act=act)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, 2 N) -> (B, Y, X, N)."""
        y = self.enter(x)
        for block in self.blocks:
            y = block(y)
        return self.merge(ops.cat([y, self.shortcut(x)], 3))


class Pyramid(Module):
    """Levels down to the largest, and from there up to the smallest."""

    def __init__(self, w: Weights, cfg: SLANetConfig):
        N, widths, steps = cfg.post_conv_out_channels, cfg.network.widths[2:], range(3)
        self.project = [
            convolution(w / "channel_projector" / i, d, N, 1, act=cfg.hidden_act) for i, d in enumerate(widths)
        ]
        self.down = [CspLayer(w / "top_down_blocks" / i, cfg) for i in steps]
        self.reduce = [SeparableConv(w / "downsamples" / i, cfg, N, 2) for i in steps]
        self.up = [CspLayer(w / "bottom_up_blocks" / i, cfg) for i in steps]

    def __call__(self, features: list[Array]) -> Array:
        """features of the stages, the largest first -> (B, y, x, N) of the smallest."""
        *larger, x = [project(one) for project, one in zip(self.project, features, strict=True)]
        levels = [x]
        for layer, level in zip(self.down, larger[::-1], strict=True):
            x = layer(ops.cat([ops.interpolate(x, level.shape[1:3], "nearest"), level], 3))
            levels.append(x)
        for reduce, layer, level in zip(self.reduce, self.up, levels[-2::-1], strict=True):
            x = layer(ops.cat([reduce(x), level], 3))
        return x


class StructureHead(Module):
    """A GRU that looks at the image with attention before each token that it writes."""

    def __init__(self, w: Weights, cfg: Any):
        C, H, V = cfg.post_conv_out_channels, cfg.hidden_size, cfg.out_channels
        cell, write = w / "structure_attention_cell", w / "structure_generator"
        self.max_tokens = cfg.max_text_length + 1
        self.keys = Linear(cell / "input_to_hidden", C, H, bias=False)
        self.query, self.query_bias = (
            cell.get("hidden_to_hidden.weight", (H, H)),
            cell.get("hidden_to_hidden.bias", (H,)),
        )
        self.score = cell.get("score.weight", (1, H))
        self.inputs, self.inputs_bias = cell.get("rnn.weight_ih", (3 * H, C + V)), cell.get("rnn.bias_ih", (3 * H,))
        self.state, self.state_bias = cell.get("rnn.weight_hh", (3 * H, H)), cell.get("rnn.bias_hh", (3 * H,))
        self.first, self.first_bias = write.get("fc1.weight", (H, H)), write.get("fc1.bias", (H,))
        self.last, self.last_bias = write.get("fc2.weight", (V, H)), write.get("fc2.bias", (V,))

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """x (B, S, C) -> probabilities (B, T, V), states (B, T, H)."""
        weights = ops.GruWeights(**{name: getattr(self, name) for name in ops.GruWeights._fields})
        logits, states = ops.write_symbols(x, self.keys(x), weights, self.max_tokens)
        return ops.softmax(logits), states


class SLANetForTableRecognition(ImageModel):
    config_class = SLANetConfig
    name_map = NAME_MAP
    any_size = True
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training
    graphs = False  # a CUDA graph has a fixed number of steps

    def __init__(self, w: Weights, cfg: SLANetConfig):
        self.config, H = cfg, cfg.hidden_size
        self.net = PPLCNet(w / "backbone.vision_backbone.encoder", cfg.network)
        self.neck = Pyramid(w / "backbone.post_csp_pan", cfg)
        self.head = StructureHead(w / "head", cfg)
        self.boxes = None
        if cfg.loc_reg_num:
            boxes = w / "head.loc_generator"
            self.boxes = Linear(boxes / "fc1", H, H), Linear(boxes / "fc2", H, cfg.loc_reg_num, act="sigmoid")

    @property
    def embeddings(self) -> Module:
        return self.net.embeddings

    @property
    def layers(self) -> list[Module]:
        return [*self.net.layers]

    def features(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, S, N)."""
        x = self.neck(self.net(pixels))
        return x.reshape(x.shape[0], x.shape[1] * x.shape[2], x.shape[3])

    def forward(self, p: ImageInputs) -> TableStructureOutput:
        found, states = self.head(self.features(p.pixel_values))
        if self.boxes is None:
            return TableStructureOutput(found)
        first, last = self.boxes
        return TableStructureOutput(found, last(first(states)))
