"""PP-DocLayoutV2 (https://github.com/PaddlePaddle/PaddleX): RT-DETR over an HGNetV2, for the regions of a page, and a
network after LayoutLMv3's that reads the regions' boxes and labels and says in which order to read them.

Shapes: B batch, Q num_queries, S = Q + 2 with a token before and after them, L labels; of the network for the order D
hidden_size, H heads, E relation_bias_embed_dim.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from ... import ops
from ...inputs import ImageInputs
from ...nn import Linear, Module
from ...typing import Array
from ...weights import Weights
from ..hgnet_v2.model import HGNetV2
from ..layoutlmv3.model import Embeddings, Layer
from ..pp_doclayout_v3.model import GlobalPointer
from ..rt_detr_v2.model import NAME_MAP as RT_DETR_NAME_MAP
from ..rt_detr_v2.model import (
    RTDetrV2ForObjectDetection,
    RTDetrV2Model,
    RTDetrV2ObjectDetectionOutput,
    RTDetrV2Pretrained,
)
from .config import EDGE, PPDocLayoutV2Config, ReadingOrderConfig

NAME_MAP = replace(
    RT_DETR_NAME_MAP,
    renames={**RT_DETR_NAME_MAP.renames, r"^(reading_order\..+)\.norm\.": r"\1.LayerNorm."},
    # LayoutLMv3's biases, which nothing computes with.
    ignored=(*RT_DETR_NAME_MAP.ignored, r"\.rel_pos_[xy]_bias\.weight$"),
)
MIN_SIDE = 1e-3  # width and height of a region, in thousandths of the page
EPS = 1e-5


class PPDocLayoutV2ObjectDetectionOutput(NamedTuple):
    logits: Array  # (B, Q, L), of those above their label's threshold first
    pred_boxes: Array  # (B, Q, 4), in the same order: centre x and y, width and height, as parts of the image
    order_logits: Array  # (B, Q, Q), in the same order: above the diagonal, that the second is read after the first
    last_hidden_state: Array  # (B, Q, D), in the order of the queries, like the rest
    enc_topk_logits: Array  # (B, Q, L): of the places that became queries
    enc_topk_bboxes: Array  # (B, Q, 4)


class Relations(Module):
    """A bias for attention from how far two regions are apart, and how much larger one is, both as logarithms."""

    def __init__(self, w: Weights, cfg: ReadingOrderConfig):
        H, E = cfg.num_attention_heads, cfg.relation_bias_embed_dim
        self.size, self.base, self.scale = E, float(cfg.relation_bias_theta) ** 2, float(cfg.relation_bias_scale)
        self.weight, self.bias = w.get("pos_proj.weight", (H, 4 * E, 1, 1)), w.get("pos_proj.bias", (H,))

    def __call__(self, corners: Array) -> Array:
        """corners (B, S, 4) -> (B, H, S, S)."""
        (B, S, _), H, E = corners.shape, self.weight.shape[0], self.size
        low, high = corners[..., :2], corners[..., 2:]
        centre, side = (low + high) * 0.5, ops.clip(high - low, MIN_SIDE, EDGE) + EPS
        apart = centre[:, :, None] - centre[:, None]
        apart = ops.where(apart > 0, apart, apart * -1)
        logs = ops.cat([ops.log(apart / side[:, :, None] + 1.0), ops.log(side[:, :, None] / side[:, None])], 3)
        waves = ops.sinusoids(logs * self.scale, E, logs, self.base).reshape(B, S * S, 1, 4 * E)
        weight = self.weight.reshape(H, 4, 2, E // 2)  # the sines' before the cosines', which alternate in waves
        weight = ops.cat([weight[:, :, i, :, None] for i in (0, 1)], 3).reshape(1, H, 1, 4 * E)
        return ops.scores(ops.cat([weight] * B, 0), waves).reshape(B, H, S, S) + self.bias[None, :, None, None]


class RegionEmbeddings(Embeddings):
    """LayoutLMv3's of tokens and boxes, and those of labels."""

    def __init__(self, w: Weights, cfg: ReadingOrderConfig):
        boxed: Any = cfg  # which has LayoutLMv3's fields
        super().__init__(w, boxed)
        self.project = Linear(w / "spatial_proj", 4 * cfg.coordinate_size + 2 * cfg.shape_size, cfg.hidden_size)

    def of_regions(self, ids: Array, boxes: Array, labels: Array) -> Array:
        """ids (B, S), boxes (B, S, 4) whole numbers, labels (B, S, D) -> (B, S, D)."""
        token = ids != self.pad
        at = ops.cumsum(token, 1) * token + self.pad
        x = ops.embedding(ids, self.word, "input_ids", self.padding) + self.token_type[0]
        x = x + ops.embedding(at, self.position, "position_ids", self.position_padding)
        return self.dropout(self.norm(x + self.project(self.boxes(boxes)) + labels))


class ReadingOrder(Module):
    """Tokens for the start, the regions, and the end; those after the end are padding."""

    def __init__(self, w: Weights, cfg: ReadingOrderConfig):
        D, inner = cfg.hidden_size, w / "encoder"
        self.config, self.regions = cfg, RegionEmbeddings(w / "embeddings", cfg)
        self.labels = w.get("label_embeddings.weight", (cfg.num_classes, D))
        self.project_labels = Linear(w / "label_features_projection", D, D)
        self.relations = Relations(inner / "rel_bias_module", cfg)
        self.layers = [Layer(inner / "layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.pointer = GlobalPointer(w / "relative_head", D, cfg.global_pointer_head_size, cfg.gp_dropout_value)

    def __call__(self, corners: Array, labels: Array, count: Array) -> Array:
        """corners (B, Q, 4) in thousandths of the page, labels (B, Q), count (B, 1) of the regions -> (B, Q, Q)."""
        cfg, at = self.config, ops.arange(corners.shape[1] + 2, corners)[None]
        zero = at * 0
        ids = ops.where(at <= count, zero + cfg.pred_token_id, zero + cfg.pad_token_id)
        ids = ops.where(at == count + 1, zero + cfg.end_token_id, ops.where(at == 0, zero + cfg.start_token_id, ids))
        corners = ends(corners)
        whole = ops.bucket(corners, tuple(range(1, EDGE + 1)))
        named = ends(self.project_labels(ops.embedding(labels, self.labels, "labels")))
        x, bias = self.regions.of_regions(ids, whole, named), self.relations(corners)
        for layer in self.layers:
            x = layer(x, at <= count + 1, bias)
        return self.pointer(x[:, 1:-1])


def ends(x: Array) -> Array:
    """x (B, Q, D) -> (B, Q + 2, D), with zeros before and after."""
    zero = x[:, :1] * 0
    return ops.cat([zero, x, zero], 1)


class PPDocLayoutV2Pretrained(RTDetrV2Pretrained):
    config_class = PPDocLayoutV2Config
    name_map = NAME_MAP
    only_saved = (r"\.num_batches_tracked$", r"\.rel_pos_[xy]_bias\.weight$")


class PPDocLayoutV2Model(PPDocLayoutV2Pretrained, RTDetrV2Model):
    is_base_model = True
    backbone_class = HGNetV2


class PPDocLayoutV2ForObjectDetection(PPDocLayoutV2Pretrained, RTDetrV2ForObjectDetection):
    base_class = PPDocLayoutV2Model

    def __init__(self, w: Weights, cfg: PPDocLayoutV2Config):
        super().__init__(w, cfg)
        self.reading_order = ReadingOrder(w / "reading_order", cfg.reading_order_config)
        like, L = self.reading_order.labels, cfg.num_labels
        limits, classes = cfg.class_thresholds or (), cfg.class_order or ()
        self._thresholds = ops.as_hidden_states([[[float(n)] for n in limits]], like, "class_thresholds", 1)[0]
        self._classes = ops.as_ids([classes], like, "class_order", like.shape[0]).reshape(L, 1)

    def forward(self, p: ImageInputs) -> PPDocLayoutV2ObjectDetectionOutput:  # type: ignore[override]
        """One region for each query."""
        return self.in_order(super().forward(p))

    def in_order(self, out: RTDetrV2ObjectDetectionOutput) -> PPDocLayoutV2ObjectDetectionOutput:
        """The regions above their label's threshold first, and the order of reading of these."""
        logits, boxes = out.logits, out.pred_boxes
        B, Q, L = logits.shape
        best = ops.top_rows(logits.reshape(B * Q, L, 1), 1)
        score = ops.activate(ops.take_rows(logits.reshape(B * Q, L, 1), best), "sigmoid").reshape(B, Q)
        found = score >= ops.embedding(best.reshape(B, Q), self._thresholds, "labels")[..., 0]
        order = ops.top_rows(
            (found * Q - ops.arange(Q, logits)[None])[..., None], Q
        )  # as they were, but the found first
        logits, boxes = ops.take_rows(logits, order), ops.take_rows(boxes, order)
        labels = ops.take_rows(best.reshape(B, Q, 1), order)[..., 0]
        count = ops.cumsum(found, 1)[:, -1:]
        is_found = ops.arange(Q, logits)[None] < count
        corners = ops.cat([boxes[..., :2] - boxes[..., 2:] * 0.5, boxes[..., :2] + boxes[..., 2:] * 0.5], 2) * EDGE
        corners = ops.clip(corners, 0, EDGE) * is_found[..., None]
        classes = ops.embedding(labels * is_found, self._classes, "labels")[..., 0]
        return PPDocLayoutV2ObjectDetectionOutput(logits, boxes, self.reading_order(corners, classes, count), *out[2:])
