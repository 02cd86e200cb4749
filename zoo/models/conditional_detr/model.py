"""Conditional DETR (Meng et al. 2021, https://arxiv.org/abs/2108.06152): DETR whose queries look at a place of their
own, and whose labels are judged one by one.

Shapes: B batch, N features of an image, Q num_queries, D d_model, H heads, K = D / H, L labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..detr import model as detr
from .config import ConditionalDetrConfig

# What files call the projections that are part of an attention in the memory of transformers 5.
_PARTS = {
    rf"(decoder\.layers\.\d+\.){part}_attn\.{name}_proj\.": rf"\1{short}_{own}_proj."
    for part, short in (("self", "sa"), ("encoder", "ca"))
    for name, own in (
        *((f"{side}_{kind}", f"{side}{kind}") for side in "qk" for kind in ("content", "pos")),
        *(("v", "v"), ("q_pos_sine", "qpos_sine")),
    )
}
NAME_MAP = replace(detr.NAME_MAP, renames={**detr.NAME_MAP.renames, **_PARTS})
BASE_NAME_MAP = replace(detr.BASE_NAME_MAP, renames=NAME_MAP.renames)
MIN_DISTANCE = 1e-5  # a query's place is no nearer to the edges of the image


class MLP(Module):
    """Linear layers with ReLUs between them."""

    def __init__(self, w: Weights, sizes: Sequence[int]):
        pairs, last = list(pairwise(sizes)), len(sizes) - 2
        self.layers = [
            Linear(w / "layers" / i, *pair, act="relu" if i < last else None) for i, pair in enumerate(pairs)
        ]

    def __call__(self, x: Array) -> Array:
        """x (..., the first size) -> (..., the last)."""
        for layer in self.layers:
            x = layer(x)
        return x


class DecoderContext(NamedTuple):
    """The arguments of every layer of the decoder besides its input."""

    queries: Array  # (Q, D)
    memory: Array  # (B, N, D): the encoder's output
    positions: Array  # (1 or B, N, D) of its features
    mask: Array | None  # (B, N): false for a feature of padding


class SelfAttention(Module):
    """Attention of queries to each other: what they are, and which."""

    def __init__(self, w: Weights, cfg: ConditionalDetrConfig):
        D, self.heads = cfg.d_model, cfg.decoder_attention_heads
        self.q, self.k = (Linear(w / f"sa_{side}content_proj", D, D) for side in "qk")
        self.placed_q, self.placed_k = (Linear(w / f"sa_{side}pos_proj", D, D) for side in "qk")
        self.v, self.dropout = Linear(w / "sa_v_proj", D, D), Dropout(cfg.attention_dropout)
        self.out = Linear(w / "self_attn.out_proj", D, D, dropout=cfg.dropout)

    def __call__(self, x: Array, queries: Array) -> Array:
        """x (B, Q, D), queries (Q, D) -> (B, Q, D)."""
        every = self.q(x) + self.placed_q(queries), self.k(x) + self.placed_k(queries), self.v(x)
        q, k, v = (y.reshape(*x.shape[:2], self.heads, -1) for y in every)
        return self.out(ops.attention(q, k, v, dropout=self.dropout.rate).reshape(x.shape))


class CrossAttention(Module):
    """Attention of queries to features, by what is there beside where it is: twice as many numbers of a head."""

    def __init__(self, w: Weights, cfg: ConditionalDetrConfig, is_first: bool):
        D, self.heads = cfg.d_model, cfg.decoder_attention_heads
        self.q, self.k = (Linear(w / f"ca_{side}content_proj", D, D) for side in "qk")
        self.placed_q = Linear(w / "ca_qpos_proj", D, D) if is_first else None
        self.placed_k, self.sine = Linear(w / "ca_kpos_proj", D, D), Linear(w / "ca_qpos_sine_proj", D, D)
        self.v, self.dropout = Linear(w / "ca_v_proj", D, D), Dropout(cfg.attention_dropout)
        self.out = Linear(w / "encoder_attn.out_proj", D, D, dropout=cfg.dropout)

    def __call__(self, x: Array, sines: Array, c: DecoderContext) -> Array:
        """x (B, Q, D), sines (Q, D) or (B, Q, D) of the queries' places -> (B, Q, D)."""
        q, k, v, where, sines = (
            self.q(x),
            self.k(c.memory),
            self.v(c.memory),
            self.placed_k(c.positions),
            self.sine(sines),
        )
        if self.placed_q is not None:
            q, k = q + self.placed_q(c.queries), k + where
        sines, where = sines + ops.zeros(q.shape, q), where + ops.zeros(k.shape, k)
        q, k, v, sines, where = (y.reshape(*y.shape[:2], self.heads, -1) for y in (q, k, v, sines, where))
        K = v.shape[3]
        v = ops.cat([v, ops.zeros(v.shape, v)], 3)  # as wide as keys
        q, k = ops.cat([q, sines], 3), ops.cat([k, where], 3)
        a = ops.attention(q, k, v, mask=c.mask, dropout=self.dropout.rate)[..., :K]
        return self.out(a.reshape(x.shape))


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: ConditionalDetrConfig, is_first: bool):
        D, F = cfg.d_model, cfg.decoder_ffn_dim
        self.norm, self.attention = LayerNorm(w / "self_attn_layer_norm", D, detr.EPS), SelfAttention(w, cfg)
        self.cross_norm = LayerNorm(w / "encoder_attn_layer_norm", D, detr.EPS)
        self.cross_attention = CrossAttention(w, cfg, is_first)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, detr.EPS)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)

    def __call__(self, x: Array, sines: Array, c: DecoderContext) -> Array:
        """x (B, Q, D), sines (Q, D) or (B, Q, D) -> (B, Q, D)."""
        x = self.norm(self.attention(x, c.queries), residual=x)
        x = self.cross_norm(self.cross_attention(x, sines, c), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


class ConditionalDetrModel(detr.DetrModel):
    config_class = ConditionalDetrConfig
    name_map = BASE_NAME_MAP

    def __init__(self, w: Weights, cfg: ConditionalDetrConfig):
        super().__init__(w, cfg)
        D = cfg.d_model
        self.scale, self.place = MLP(w / "decoder.query_scale", (D, D, D)), MLP(w / "decoder.ref_point_head", (D, D, 2))

    def make_decoder(self, w: Weights, cfg: ConditionalDetrConfig) -> list[DecoderLayer]:
        return [DecoderLayer(w / i, cfg, i == 0) for i in range(cfg.decoder_layers)]

    def places(self) -> Array:
        """The x and y of each query's place, as parts of the image: (Q, 2)."""
        return ops.activate(self.place(self.queries), "sigmoid")

    def decode(self, memory: Array, positions: Array, mask: Array | None) -> tuple[Array, Array | None]:
        """memory (B, N, D), positions (1 or B, N, D), mask (B, N) -> x (B, Q, D), that of each layer or None."""
        c, at = DecoderContext(self.queries, memory, positions, mask), self.places() * (2 * math.pi)
        half = self.queries.shape[1] // 2
        sines = ops.cat([ops.sinusoids(at[:, i], half, self.queries) for i in (1, 0)], 1)
        x = ops.zeros((memory.shape[0], *self.queries.shape), self.queries)
        steps = []
        for i, layer in enumerate(self.decoder_layers):
            x = layer(x, sines if i == 0 else sines * self.scale(x), c)
            if self.config.auxiliary_loss:  # for training; it also changes the next layer's input
                x = self.decoder_norm(x)
                steps.append(x[None])
        return self.decoder_norm(x), ops.cat(steps, 0) if steps else None


class ConditionalDetrForObjectDetection(detr.DetrPretrained):
    config_class = ConditionalDetrConfig
    name_map = NAME_MAP

    def __init__(self, w: Weights, cfg: ConditionalDetrConfig):
        D = cfg.d_model
        self.config, self.base_model = cfg, ConditionalDetrModel(w / "model", cfg)
        self.class_labels_classifier = Linear(w / "class_labels_classifier", D, cfg.num_labels)
        self.bbox_predictor = MLP(w / "bbox_predictor", (D, D, D, 4))

    def forward(self, p: ImageInputs) -> detr.DetrObjectDetectionOutput:
        """-> one object for each query: logits (B, Q, L), without one of no object."""
        found = self.base_model.forward(p)
        x = found.last_hidden_state
        boxes, places = self.bbox_predictor(x), ops.logit(self.base_model.places(), MIN_DISTANCE)
        boxes = ops.activate(ops.cat([boxes[..., :2] + places, boxes[..., 2:]], 2), "sigmoid")
        return detr.DetrObjectDetectionOutput(
            self.class_labels_classifier(x), boxes, x, found.encoder_last_hidden_state
        )
