"""Swin v2 (Liu et al. 2021, https://arxiv.org/abs/2111.09883): Swin with norms after the parts of each layer, attention
by the cosine of queries and keys, and a bias of distances that a small network computes.

Shapes: B batch, N = h w patches of a stage, D its width, n windows of T = s s patches, H heads, K = D / H,
R = (2 s - 1)^2 distances, L labels.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ... import ops
from ...inputs import ImageInputs
from ...nn import CacheLast, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..swin import model as swin
from .config import Swinv2Config

NAME_MAP = NameMap(
    prefix="swinv2",
    base=("embeddings", "encoder", "layernorm"),
    # Tables that follow from the sizes.
    ignored=(r"\.relative_(position_index|coords_table)$", r"(^|\.)embeddings\.mask_token$"),
)

WIDTH = 512  # the hidden layer of the network of distances
HIGHEST_SCALE = math.log(100)  # the logarithm of a factor of cosines
EPS = 1e-24  # added to the square of a length


class Attention(swin.Attention):
    """Attention within windows of a fixed size; shift: in patches."""

    # transformers adds it twice: cosines are scaled by up to 100.
    mask_bias = 2 * swin.MASK_BIAS

    def __init__(self, w: Weights, cfg: Swinv2Config, D: int, stage: int, shift: int):
        self.heads, self.always = cfg.num_heads[stage], True
        self.size, self.shift = cfg.window(stage, shift)
        self.query = Linear(w / "self.query", D, D, bias=cfg.qkv_bias)
        self.key = Linear(w / "self.key", D, D, bias=False)
        self.value = Linear(w / "self.value", D, D, bias=cfg.qkv_bias)
        self.logit_scale = w.get("self.logit_scale", (self.heads, 1, 1))
        self.distances = Distances(w / "self.continuous_position_bias_mlp", cfg, stage, self.size, self.logit_scale)
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "output.dense", D, D, dropout=cfg.attention_probs_dropout_prob)
        K = D // self.heads
        self._unit = ops.zeros((K,), self.logit_scale) + K**-0.5  # a row of that length after rms_norm has length 1
        self._bias = CacheLast(swin.CACHED_BIAS)

    def bias_table(self) -> Array:
        return self.distances()

    def attend(self, x: Array, bias: Array) -> Array:
        """x (B n, T, D), bias (1 or B n, H, T, T) -> (B n, T, D)."""
        split = *x.shape[:2], self.heads, -1
        q, k, v = (part(x).reshape(split) for part in (self.query, self.key, self.value))
        q, k = (ops.rms_norm(y, self._unit, EPS) for y in (q, k))
        s = self.logit_scale
        s = ops.exp(ops.where(s > HIGHEST_SCALE, s * 0 + HIGHEST_SCALE, s)).reshape(self.heads, 1)
        return ops.attention(q * s, k, v, bias=bias, scale=1.0, dropout=self.dropout.rate).reshape(x.shape)


class Distances(Module):
    """A network from how far two patches are apart to the bias of each head."""

    def __init__(self, w: Weights, cfg: Swinv2Config, stage: int, size: int, like: Array):
        self.up = Linear(w / 0, 2, WIDTH, act="relu")
        self.down = Linear(w / 2, WIDTH, cfg.num_heads[stage], bias=False, act="sigmoid")
        far = (cfg.pretrained_window_sizes[stage] or size) - 1 or 1
        steps = [8 * step / far for step in range(1 - size, size)]
        logs = [math.copysign(math.log2(abs(step) + 1) / math.log2(8), step) for step in steps]
        pairs = [[[y, x] for y in logs for x in logs]]
        self._pairs = ops.as_hidden_states(pairs, like, "distances", 2)[0]

    def __call__(self) -> Array:
        """-> (R, H)."""
        return self.down(self.up(self._pairs)) * 16


class Layer(Module):
    """drop_path: the share of images for which training skips the layer's parts."""

    def __init__(self, w: Weights, cfg: Swinv2Config, D: int, stage: int, shift: int, drop_path: float):
        F, eps = int(cfg.mlp_ratio * D), cfg.layer_norm_eps
        self.attention = Attention(w / "attention", cfg, D, stage, shift)
        self.attention_norm = LayerNorm(w / "layernorm_before", D, eps)
        self.drop_path = Dropout(drop_path, of_rows=True)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=cfg.hidden_dropout_prob)
        self.mlp_norm = LayerNorm(w / "layernorm_after", D, eps)

    def __call__(self, x: Array, grid: swin.Grid) -> Array:
        """x (B, N, D) -> (B, N, D)."""
        x = x + self.drop_path(self.attention_norm(self.attention(x, grid)))
        return x + self.drop_path(self.mlp_norm(self.down(self.up(x))))


class Merging(swin.Merging):
    """Four patches become one, of twice the width."""

    def __init__(self, w: Weights, D: int):
        self.reduction = Linear(w / "reduction", 4 * D, 2 * D, bias=False)
        self.norm = LayerNorm(w / "norm", 2 * D, swin.EPS)

    def reduce(self, x: Array) -> Array:
        return self.norm(self.reduction(x))


class Stage(swin.Stage):
    def __init__(self, w: Weights, cfg: Swinv2Config, i: int):
        D, before = cfg.embed_dim * 2**i, sum(cfg.depths[:i])
        step, shift = cfg.drop_path_rate / max(sum(cfg.depths) - 1, 1), cfg.window_size // 2
        self.blocks = [
            Layer(w / "blocks" / j, cfg, D, i, j % 2 * shift, step * (before + j)) for j in range(cfg.depths[i])
        ]
        self.downsample = Merging(w / "downsample", D) if i + 1 < len(cfg.depths) else None


class Swinv2Model(swin.SwinModel):
    config_class, stage_class = Swinv2Config, Stage
    name_map = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^classifier\.", r"^decoder\."))


class Swinv2ForImageClassification(swin.SwinPretrained):
    config_class, name_map = Swinv2Config, NAME_MAP

    def __init__(self, w: Weights, cfg: Swinv2Config):
        self.config = cfg
        self.base_model = Swinv2Model(w / "swinv2", cfg)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(ops.mean(self.base_model.encode(p), 1))
