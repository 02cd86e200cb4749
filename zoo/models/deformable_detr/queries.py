"""The queries of Deformable DETR (Zhu et al. 2020, https://arxiv.org/abs/2010.04159): learned, or in two stages those
features that look most like an object.

Shapes: B batch, N features, Q queries, D d_model.  Places are x and y, and boxes centre x and y, width and height, as
parts of the image without its padding.
"""

from __future__ import annotations

import math

from ... import ops
from ...errors import InputError
from ...nn import LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..detr.model import EPS
from ..rt_detr_v2.decoder import BOX, MARGIN, MASKED_LOGIT, Mlp
from .config import DeformableDetrConfig
from .encoder import Levels


class Queries(Module):
    """Learned queries; a place follows from each."""

    def __init__(self, w: Weights, cfg: DeformableDetrConfig):
        self.table = w.get("query_position_embeddings.weight", (cfg.num_queries, 2 * cfg.d_model))
        self.place = Linear(w / "reference_points", cfg.d_model, 2, act="sigmoid")

    def __call__(self, memory: Array, places: Array, levels: Levels) -> tuple[Array, Array, Array]:
        """memory (B, N, D) -> x (B, Q, D), queries (1, Q, D), places (1, Q, 2)."""
        D, table = memory.shape[2], self.table[None]
        queries = table[..., :D]
        return ops.cat([table[..., D:]] * memory.shape[0], 0), queries, self.place(queries)


class Proposals(Module):
    """The features that look most like an object become queries, each with a first box."""

    def __init__(self, w: Weights, cfg: DeformableDetrConfig):
        D, own, self.count = cfg.d_model, cfg.decoder_layers, cfg.two_stage_num_proposals
        self.project, self.norm = Linear(w / "enc_output", D, D), LayerNorm(w / "enc_output_norm", D, EPS)
        self.score, self.box = (
            Linear(w / "decoder.class_embed" / own, D, cfg.num_labels),
            Mlp(w / "decoder.bbox_embed" / own, D, D, D, 4),
        )
        self.query, self.query_norm = Linear(w / "pos_trans", 2 * D, 2 * D), LayerNorm(w / "pos_trans_norm", 2 * D, EPS)

    def __call__(self, memory: Array, places: Array, levels: Levels) -> tuple[Array, Array, Array]:
        """memory (B, N, D), places (1 or B, N, 2) -> x and queries (B, Q, D), boxes (B, Q, 4)."""
        B, N, D = memory.shape
        if self.count > N:
            raise InputError(f"the image has {N} places, too few for two_stage_num_proposals = {self.count}")
        boxes, is_inside = anchors(places, levels)
        x = self.norm(self.project(ops.where(is_inside, memory, ops.zeros((1, 1, 1), memory))))
        best = ops.top_rows(self.score(x)[..., :1], self.count)
        boxes = ops.activate(ops.take_rows(self.box(x) + boxes, best), "sigmoid")
        waves = ops.sinusoids(boxes * (2 * math.pi), D // 2, memory).reshape(B, self.count, 2 * D)
        found = self.query_norm(self.query(waves))
        return found[..., D:], found[..., :D], boxes


def anchors(places: Array, levels: Levels) -> tuple[Array, Array]:
    """-> the logits of a box around each place (1 or B, N, 4), and where it may be an object (1 or B, N, 1)."""
    sizes = ops.cat([ops.zeros((1, h * w, 2), places) + BOX * 2.0**i for i, (h, w) in enumerate(levels.grids)], 1)
    boxes = ops.cat([places, sizes + places * 0], 2)
    inside = (boxes > MARGIN) & (boxes < 1 - MARGIN)
    is_inside = inside[..., :1] & inside[..., 1:2] & inside[..., 2:3]
    is_inside = is_inside if levels.mask is None else is_inside & levels.mask[:, :, None]
    return ops.where(is_inside, ops.logit(boxes, EPS), ops.zeros((1, 1, 1), places) + MASKED_LOGIT), is_inside
