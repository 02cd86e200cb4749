"""PP-OCRv6's small reader of lines: PP-LCNetV4, two layers of SVTR's attention (Du et al. 2022,
https://arxiv.org/abs/2205.00159) along the line, and the probabilities of each place's character, for CTC.

Shapes: B batch, Y and X height and width in pixels, C channels, T places in the text, D hidden_size, d the backbone's
width, V characters, the first of which is none.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, DepthwiseConv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..pp_lcnet_v4.model import PPLCNetV4
from .config import PPOCRV6SmallRecConfig

NAME_MAP = NameMap(prefix="model", base=("backbone",), ignored=(r"\.num_batches_tracked$", r"^head\."))


class PPOCRV6SmallRecModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, 1, T, d)


class PPOCRV6SmallRecOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, V), probabilities


class Layer(Module):
    """A pre-norm layer of attention."""

    def __init__(self, w: Weights, cfg: PPOCRV6SmallRecConfig):
        D, F, eps = cfg.hidden_size, int(cfg.hidden_size * cfg.mlp_ratio), cfg.layer_norm_eps
        self.heads, self.dropout = cfg.num_attention_heads, Dropout(cfg.attention_dropout)
        self.norm = LayerNorm(w / "layer_norm1", D, eps)
        self.qkv = Linear(w / "self_attn.qkv", D, 3 * D, bias=cfg.qkv_bias)
        self.out = Linear(w / "self_attn.projection", D, D)
        self.final_norm = LayerNorm(w / "layer_norm2", D, eps)
        self.up = Linear(w / "mlp.fc1", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "mlp.fc2", F, D)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(self.norm(x)), self.heads)
        y = self.out(ops.attention(q, k, v, dropout=self.dropout.rate).reshape(x.shape))
        y, x = self.final_norm.add(y, x)
        return self.down(self.up(y), residual=x)


class Encoder(Module):
    def __init__(self, w: Weights, cfg: PPOCRV6SmallRecConfig):
        d, D, act, convs = cfg.network.hidden_size, cfg.hidden_size, cfg.hidden_act, w / "conv_block"
        norms = [BatchNorm(convs / i / "normalization", D) for i in range(3)]
        self.skip = Conv2d(convs / 0 / "convolution", d, D, 1, bias=False, act=act, norm=norms[0])
        self.reduce = Conv2d(convs / 1 / "convolution", d, D, 1, bias=False, act=act, norm=norms[1])
        kernel = cfg.kernel[0], cfg.kernel[1]
        self.local = DepthwiseConv2d(convs / 2 / "convolution", D, kernel, bias=False, act=act, norm=norms[2])
        self.layers = [Layer(w / "svtr_block" / i, cfg) for i in range(cfg.depth)]
        self.norm = LayerNorm(w / "norm", D, cfg.layer_norm_eps)

    def __call__(self, features: Array) -> Array:
        """features (B, 1, T, d) -> (B, T, D)."""
        x = self.reduce(features)
        x = (x + self.local(x))[:, 0]
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) + self.skip(features)[:, 0]


class PPOCRV6SmallRecPretrained(ImageModel):
    config_class = PPOCRV6SmallRecConfig
    name_map = NAME_MAP
    any_size = True
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training


class PPOCRV6SmallRecModel(PPOCRV6SmallRecPretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: PPOCRV6SmallRecConfig):
        self.config, self.net = cfg, PPLCNetV4(w / "backbone.encoder", cfg.network)

    @property
    def embeddings(self) -> Module:
        return self.net.embeddings

    @property
    def layers(self) -> list[Module]:
        return [*self.net.layers]

    def features(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, Y / 48, X / 8, d) with the default strides, rounded down."""
        x = self.net(pixels)[-1]
        y, z = x.shape[1] // 3, x.shape[2] // 2
        return ops.avg_pool2d(x[:, : 3 * y, : 2 * z], (3, 2))

    def forward(self, p: ImageInputs) -> PPOCRV6SmallRecModelOutput:
        return PPOCRV6SmallRecModelOutput(self.features(p.pixel_values))


class PPOCRV6SmallRecForTextRecognition(PPOCRV6SmallRecPretrained):
    def __init__(self, w: Weights, cfg: PPOCRV6SmallRecConfig):
        self.config, self.base_model = cfg, PPOCRV6SmallRecModel(w / "model", cfg)
        self.encoder = Encoder(w / "head.encoder", cfg)
        self.head = Linear(w / "head.head", cfg.hidden_size, cfg.head_out_channels)

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Lines have one height, and any width of a place or more."""
        return self.patch[0], max(size[1], self.patch[1])

    def forward(self, p: ImageInputs) -> PPOCRV6SmallRecOutput:
        x = self.encoder(self.base_model.features(p.pixel_values))
        return PPOCRV6SmallRecOutput(ops.softmax(self.head(x)))
