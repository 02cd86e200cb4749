"""RF-DETR (Robinson et al. 2025, https://arxiv.org/abs/2511.09554): LW-DETR (https://arxiv.org/abs/2406.03459) over a
DINOv2.  The places of its features that look most like an object give the first boxes of learned queries, which attend
to a few points near these.

Shapes: B batch, h and w of the features, N = h w, Q num_queries, G group_detr (groups of queries; all but the first are
for training), D d_model, L labels.  Boxes are centre x and y, width and height, as parts of the image.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ... import ops
from ...errors import InputError
from ...inputs import ImageInputs, ImageModel
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..deformable_detr.encoder import Levels, PointAttention, part_of, resize_mask
from ..rt_detr_v2.decoder import BOX, MARGIN, MASKED_LOGIT, Mlp
from .backbone import Backbone
from .config import RfDetrConfig

# Files have Roboflow's names, without a prefix.
NAME_MAP = NameMap(prefix="model", base=("backbone", "transformer", "refpoint_embed", "query_feat"))
BASE_NAME_MAP = NameMap(prefix="model", base=NAME_MAP.base, ignored=(r"^(class_embed|bbox_embed|segmentation_head)\.",))
EPS = 1e-5


class RfDetrModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, Q, D)


class RfDetrObjectDetectionOutput(NamedTuple):
    logits: Array  # (B, Q, L)
    pred_boxes: Array  # (B, Q, 4)
    last_hidden_state: Array  # (B, Q, D)


class Found(NamedTuple):
    """All that a head reads."""

    features: Array  # (B, h, w, D)
    boxes: Array  # (B, Q, 4) where the queries looked
    states: list[Array]  # (B, Q, D) of each layer


class DecoderContext(NamedTuple):
    """The arguments of every layer of the decoder besides its input."""

    places: Array  # (B, Q, D) made of boxes
    boxes: Array  # (B, Q, 4)
    memory: Array  # (B, N, D): the features
    levels: Levels


class SelfAttention(Module):
    def __init__(self, w: Weights, cfg: RfDetrConfig):
        D, bias, self.heads = cfg.d_model, cfg.attention_bias, cfg.decoder_self_attention_heads
        self.weight = w.linear(["in_proj_weight"], [3 * D], D)
        self.bias = w.get("in_proj_bias", (3 * D,)) if bias else None
        self.dropout, self.out = Dropout(cfg.attention_dropout), Linear(w / "out_proj", D, D, bias, dropout=cfg.dropout)

    def __call__(self, x: Array, places: Array) -> Array:
        """x, places (B, Q, D) -> (B, Q, D); values are without places."""
        Q = x.shape[1]
        both = ops.split_heads(ops.linear(ops.cat([x + places, x], 1), self.weight, self.bias), self.heads)
        q, k, v = both[0][:, :Q], both[1][:, :Q], both[2][:, Q:]
        return self.out(ops.attention(q, k, v, dropout=self.dropout.rate).reshape(x.shape))


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: RfDetrConfig):
        D, F = cfg.d_model, cfg.decoder_ffn_dim
        self.attention, self.norm = SelfAttention(w / "self_attn", cfg), LayerNorm(w / "norm1", D, EPS)
        self.cross_attention = PointAttention(
            w / "cross_attn", cfg, cfg.decoder_cross_attention_heads, cfg.decoder_n_points
        )
        self.cross_norm, self.final_norm = LayerNorm(w / "norm2", D, EPS), LayerNorm(w / "norm3", D, EPS)
        self.up = Linear(w / "linear1", D, F, act=cfg.decoder_activation_function, dropout=cfg.dropout)
        self.down = Linear(w / "linear2", F, D, dropout=cfg.dropout)

    def __call__(self, x: Array, c: DecoderContext) -> Array:
        """x (B, Q, D) -> (B, Q, D)."""
        x = self.norm(self.attention(x, c.places), residual=x)
        x = self.cross_norm(self.cross_attention(x + c.places, c.boxes, c.memory, c.levels), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


class Proposals(Module):
    """Boxes around the places that look most like an object, by one group's heads."""

    def __init__(self, w: Weights, cfg: RfDetrConfig, group: int):
        D, self.count = cfg.d_model, cfg.num_queries
        self.project, self.norm = (
            Linear(w / "enc_output" / group, D, D),
            LayerNorm(w / "enc_output_norm" / group, D, EPS),
        )
        self.score = Linear(w / "enc_out_class_embed" / group, D, cfg.num_labels)
        self.box = Mlp(w / "enc_out_bbox_embed" / group, D, D, D, 4)

    def __call__(self, memory: Array, places: Array, mask: Array | None) -> Array:
        """memory (B, N, D), places (1 or B, N, 2), mask (B, N) -> boxes (B, Q, 4)."""
        if self.count > memory.shape[1]:
            raise InputError(f"the image has {memory.shape[1]} places, too few for num_queries = {self.count}")
        none = ops.zeros((1, 1, 1), memory)
        inside = (places > MARGIN) & (places < 1 - MARGIN)
        is_seen = inside[..., :1] & inside[..., 1:]
        is_seen = is_seen if mask is None else is_seen & mask[:, :, None]
        x = self.norm(self.project(ops.where(is_seen, memory, none)))
        best = ops.top_rows(ops.where(is_seen, self.score(x), none - MASKED_LOGIT), self.count)
        first = ops.where(is_seen, ops.cat([places, places * 0 + BOX], 2), none)
        return ops.take_rows(correct_boxes(first, self.box(x)), best)


class RfDetrPretrained(ImageModel):
    config_class = RfDetrConfig
    name_map = NAME_MAP
    inputs = ("pixel_mask",)
    only_saved = (r"embeddings\.mask_token$",)
    any_size = True

    @property
    def like(self) -> Array:
        return self.base_model.queries

    @property
    def channels(self) -> int:
        return self.config.network.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        return self.config.network.patch

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Images are squares of whole windows."""
        unit = self.patch[0] * self.config.network.num_windows
        side = max(1, round(max(size) / unit)) * unit
        return side, side


class RfDetrModel(RfDetrPretrained):
    """The layers: an image to the state of each query."""

    is_base_model = True
    name_map = BASE_NAME_MAP

    def __init__(self, w: Weights, cfg: RfDetrConfig):
        D, rows, self.config = cfg.d_model, cfg.num_queries * cfg.group_detr, cfg
        self.backbone = Backbone(w / "backbone.0", cfg)
        self.boxes = w.get("refpoint_embed.weight", (rows, 4))
        self.queries = w.get("query_feat.weight", (rows, D))
        w = w / "transformer"
        self.propose = [Proposals(w, cfg, i) for i in range(cfg.group_detr)]  # all but one for training
        w = w / "decoder"
        self.decoder_layers = [DecoderLayer(w / "layers" / i, cfg) for i in range(cfg.decoder_layers)]
        self.norm, self.places = LayerNorm(w / "norm", D, EPS), Mlp(w / "ref_point_head", 2 * D, D, D)

    def find(self, p: ImageInputs) -> Found:
        features = self.backbone(p)
        B, h, w, D = features.shape
        memory, Q = features.reshape(B, h * w, D), self.config.num_queries
        mask = None if p.pixel_mask is None else resize_mask(p.pixel_mask, (h, w))
        part = None if mask is None or ops.all_true(mask) else part_of(mask, memory)
        levels = Levels(((h, w),), None if part is None or mask is None else mask.reshape(B, h * w), part)
        places = ops.centres((h, w), memory)[None]
        places = places if part is None else places / part
        boxes = correct_boxes(self.propose[0](memory, places, levels.mask), self.boxes[:Q][None])

        at = boxes if part is None else boxes * ops.cat([part, part], 2)
        waves = [ops.sinusoids(at[..., i] * (2 * math.pi), D // 2, memory) for i in (1, 0, 2, 3)]
        c = DecoderContext(self.places(ops.cat(waves, 2)), boxes, memory, levels)
        x, states = ops.cat([self.queries[:Q][None]] * B, 0), []
        for layer in self.decoder_layers:
            x = layer(x, c)
            states.append(x)
        return Found(features, boxes, [self.norm(x) for x in states])

    def forward(self, p: ImageInputs) -> RfDetrModelOutput:
        found = self.find(p)
        return RfDetrModelOutput(found.states[-1])


def correct_boxes(boxes: Array, change: Array) -> Array:
    """Boxes (B, Q, 4), moved by parts of their size and scaled by exponents (B or 1, Q, 4) -> (B, Q, 4)."""
    sizes = boxes[..., 2:]
    return ops.cat([change[..., :2] * sizes + boxes[..., :2], ops.exp(change[..., 2:]) * sizes], 2)


class RfDetrForObjectDetection(RfDetrPretrained):
    def __init__(self, w: Weights, cfg: RfDetrConfig):
        D, self.config, self.base_model = cfg.d_model, cfg, RfDetrModel(w / "model", cfg)
        self.class_embed, self.bbox_embed = (
            Linear(w / "class_embed", D, cfg.num_labels),
            Mlp(w / "bbox_embed", D, D, D, 4),
        )

    def forward(self, p: ImageInputs) -> RfDetrObjectDetectionOutput:
        """-> one object for each query."""
        found = self.base_model.find(p)
        x = found.states[-1]
        boxes = correct_boxes(found.boxes, self.bbox_embed(x))
        return RfDetrObjectDetectionOutput(self.class_embed(x), boxes, x)
