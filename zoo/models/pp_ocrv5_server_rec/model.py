"""PP-OCRv5's large reader of lines: HGNetV2, two layers of SVTR's attention (Du et al. 2022,
https://arxiv.org/abs/2205.00159) along the line between convolutions, and the probabilities of each place's character,
for CTC.

Shapes: B batch, Y and X height and width in pixels, C channels, T places in the text, D hidden_size, d the backbone's
width, V characters, the first of which is none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..hgnet_v2.model import HGNetV2
from .config import PPOCRV5ServerRecConfig

NAME_MAP = NameMap(prefix="model", base=("backbone",), ignored=(r"\.num_batches_tracked$", r"^head\."))


class PPOCRV5RecModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, 1, T, d)


class PPOCRV5RecOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, V), probabilities


class Layer(Module):
    """A pre-norm layer of attention."""

    def __init__(self, w: Weights, cfg: PPOCRV5ServerRecConfig):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size, cfg.layer_norm_eps
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


def convolution(w: Weights, d_in: int, d_out: int, kernel: tuple[int, ...] = (1, 1)) -> Conv2d:
    """silu(norm(convolution)), whatever hidden_act says; the image keeps its size."""
    (y, x), norm = kernel, BatchNorm(w / "normalization", d_out)
    return Conv2d(w / "convolution", d_in, d_out, (y, x), 1, (y // 2, x // 2), bias=False, act="silu", norm=norm)


class Encoder(Module):
    def __init__(self, w: Weights, cfg: PPOCRV5ServerRecConfig):
        d, D, convs = cfg.network.hidden_size, cfg.hidden_size, w / "conv_block"
        self.local = convolution(convs / 0, d, d // 8, cfg.kernel)
        self.reduce = convolution(convs / 1, d // 8, D)
        self.layers = [Layer(w / "svtr_block" / i, cfg) for i in range(cfg.depth)]
        self.norm = LayerNorm(w / "norm", D, cfg.layer_norm_eps)
        self.widen = convolution(convs / 2, D, d)
        self.merge = convolution(convs / 3, 2 * d, d // 8, cfg.kernel)
        self.last = convolution(convs / 4, d // 8, D)

    def __call__(self, features: Array) -> Array:
        """features (B, 1, T, d) -> (B, T, D)."""
        x = self.reduce(self.local(features))[:, 0]
        for layer in self.layers:
            x = layer(x)
        x = self.widen(self.norm(x)[:, None])
        return self.last(self.merge(ops.cat([features, x], 3)))[:, 0]


class PPOCRV5ServerRecPretrained(ImageModel):
    config_class = PPOCRV5ServerRecConfig
    name_map = NAME_MAP
    any_size = True
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training


class PPOCRV5ServerRecModel(PPOCRV5ServerRecPretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: Any):
        self.config, self.net = cfg, self.make_net(w / "backbone", cfg)

    @staticmethod
    def make_net(w: Weights, cfg: Any) -> Any:
        """The backbone, from pixels to a list of its hidden states."""
        return HGNetV2(w, cfg.network)

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

    def forward(self, p: ImageInputs) -> PPOCRV5RecModelOutput:
        return PPOCRV5RecModelOutput(self.features(p.pixel_values))


class PPOCRV5ServerRecForTextRecognition(PPOCRV5ServerRecPretrained):
    base_class = PPOCRV5ServerRecModel
    encoder_class: Any = Encoder

    def __init__(self, w: Weights, cfg: PPOCRV5ServerRecConfig):
        self.config, self.base_model = cfg, self.base_class(w / "model", cfg)
        self.encoder = self.encoder_class(w / "head.encoder", cfg)
        self.head = Linear(w / "head.head", cfg.hidden_size, cfg.head_out_channels)

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Lines have one height, and any width of a place or more."""
        return self.patch[0], max(size[1], self.patch[1])

    def forward(self, p: ImageInputs) -> PPOCRV5RecOutput:
        return PPOCRV5RecOutput(ops.softmax(self.head(self.encoder(self.base_model.features(p.pixel_values)))))
