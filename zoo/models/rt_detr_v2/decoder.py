"""The decoder of RT-DETR (https://arxiv.org/abs/2304.08069) and its second version (https://arxiv.org/abs/2407.17140):
the places that look most like an object become queries, which attend to a few points of each size of features.

Shapes: B batch, h and w of one size of features, N = the sum of h w, D d_model, Q num_queries, H heads, P points of a
head in each size, L labels.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from ... import ops
from ...errors import InputError
from ...nn import CacheLast, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..detr.model import Attention
from .config import RTDetrV2Config

Grid = tuple[int, int]  # h, w

BOX, MARGIN = 0.05, 0.01  # size of a first guess, doubled from size to size; places so close to the edge are no guess
MASKED_LOGIT = 3.4028234663852886e38  # the logits of such a place
MAX_ANCHOR_LOGIT = 100.0  # all but those at the edge are below it
EPS = 1e-5


class Mlp(Module):
    """Linear layers with relu between them."""

    def __init__(self, w: Weights, *sizes: int):
        last, pairs = len(sizes) - 2, enumerate(pairwise(sizes))
        self.steps = [Linear(w / "layers" / i, a, b, act=None if i == last else "relu") for i, (a, b) in pairs]

    def __call__(self, x: Array) -> Array:
        """x (..., sizes[0]) -> (..., sizes[-1])."""
        for step in self.steps:
            x = step(x)
        return x


class DecoderContext(NamedTuple):
    """The arguments of every layer of the decoder besides its input and boxes."""

    memory: Array  # (B, N, D): the features of all sizes
    grids: tuple[Grid, ...]  # h, w of each size


class PointAttention(Module):
    """Each head of a query reads a few points of each size, whose distances from the centre of its box are parts of the
    box (Zhu et al. 2020, https://arxiv.org/abs/2010.04159).
    """

    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, self.heads, self.points = cfg.d_model, cfg.decoder_attention_heads, cfg.decoder_n_points
        count = self.heads * cfg.num_feature_levels * self.points
        # Files of the second version have 1 / P, which one of bfloat16 has rounded.
        name, size, is_second = "n_points_scale", cfg.num_feature_levels * self.points, cfg.model_type == "rt_detr_v2"
        self.share = w.get(name, (size,)) if is_second and name in w else None
        self.reach = cfg.decoder_offset_scale / (1 if self.share is not None else self.points)
        self.offsets, self.shares = (
            Linear(w / "sampling_offsets", D, 2 * count),
            Linear(w / "attention_weights", D, count),
        )
        self.value, self.out = Linear(w / "value_proj", D, D), Linear(w / "output_proj", D, D, dropout=cfg.dropout)

    def __call__(self, x: Array, boxes: Array, c: DecoderContext) -> Array:
        """x (B, Q, D), boxes (B, Q, 4) -> (B, Q, D)."""
        (B, Q, D), H, P = x.shape, self.heads, self.points
        boxes = boxes[:, :, None, None]
        offsets = self.offsets(x).reshape(B, Q, H, -1, 2)
        if self.share is not None:
            offsets = offsets * self.share[:, None]
        points = boxes[..., :2] + offsets * (boxes[..., 2:] * self.reach)
        shares = ops.softmax(self.shares(x).reshape(B, Q, H, -1))
        values, start, parts = self.value(c.memory), 0, []
        for i, (h, w) in enumerate(c.grids):
            image, own = values[:, start : start + h * w].reshape(B, h, w, H, D // H), slice(i * P, (i + 1) * P)
            parts.append(ops.sample(image, points[:, :, :, own], shares[..., own]))
            start += h * w
        return self.out(sum(parts[1:], parts[0]).reshape(B, Q, D))


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, F, eps = cfg.d_model, cfg.decoder_ffn_dim, cfg.layer_norm_eps
        self.attention = Attention(w / "self_attn", D, cfg.decoder_attention_heads, cfg)
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, eps)
        self.cross_attention = PointAttention(w / "encoder_attn", cfg)
        self.cross_norm = LayerNorm(w / "encoder_attn_layer_norm", D, eps)
        self.up = Linear(w / "fc1", D, F, act=cfg.decoder_activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, eps)

    def __call__(self, x: Array, places: Array, boxes: Array, c: DecoderContext) -> Array:
        """x (B, Q, D), places (B, Q, D) made of boxes (B, Q, 4) -> (B, Q, D)."""
        placed = x + places
        x = self.norm(self.attention(placed, placed, x), residual=x)
        x = self.cross_norm(self.cross_attention(x + places, boxes, c), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


class Proposals(Module):
    """The places of the features that look most like an object, and a first box for each."""

    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, Q = cfg.d_model, cfg.num_queries
        self.count = Q
        self.project, self.norm = Linear(w / "enc_output.0", D, D), LayerNorm(w / "enc_output.1", D, cfg.layer_norm_eps)
        self.score, self.box = Linear(w / "enc_score_head", D, cfg.num_labels), Mlp(w / "enc_bbox_head", D, D, D, 4)
        self.queries = w.get("weight_embedding.weight", (Q, D)) if cfg.learn_initial_query else None
        self._anchors = CacheLast()

    def __call__(self, memory: Array, grids: tuple[Grid, ...]) -> tuple[Array, Array, Array]:
        """memory (B, N, D) -> queries (B, Q, D), boxes before the sigmoid (B, Q, 4), logits (B, Q, L)."""
        if memory.shape[1] < self.count:
            raise InputError(f"the image has {memory.shape[1]} places, too few for num_queries = {self.count}")
        anchors = self._anchors(grids, lambda: self.anchors(grids, memory))
        seen = ops.where(anchors[None, :, :1] < MAX_ANCHOR_LOGIT, memory, ops.zeros((1, 1, 1), memory))
        x = self.norm(self.project(seen))
        scores = self.score(x)
        best = ops.top_rows(scores, self.count)
        boxes = ops.take_rows(self.box(x) + anchors[None], best)
        queries = ops.take_rows(x, best) if self.queries is None else ops.cat([self.queries[None]] * x.shape[0], 0)
        return queries, boxes, ops.take_rows(scores, best)

    def anchors(self, grids: tuple[Grid, ...], like: Array) -> Array:
        """The logits of a box around each place; NOWHERE for those at the edge.  -> (N, 4)."""
        found = []
        for level, grid in enumerate(grids):
            centres = ops.centres(grid, like)
            inside = (centres > MARGIN) & (centres < 1 - MARGIN)
            boxes = ops.logit(ops.cat([centres, centres * 0 + BOX * 2**level], 1), EPS)
            found.append(ops.where(inside[:, :1] & inside[:, 1:], boxes, boxes * 0 + MASKED_LOGIT))
        return ops.cat(found, 0)
