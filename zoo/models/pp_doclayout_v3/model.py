"""PP-DocLayoutV3 (https://github.com/PaddlePaddle/PaddleX): RT-DETR over an HGNetV2, for the regions of a page.  Each
query also has a mask of its region, from which its first box is made, and a place in the order of reading.

Shapes: B batch, Y and X height and width in pixels, y and x a quarter of them, h and w those of one size of features, d
encoder_hidden_dim, D d_model, Q num_queries, P num_prototypes, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs
from ...nn import BatchNorm, Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..hgnet_v2.model import HGNetV2
from ..rt_detr_v2.decoder import EPS, Mlp
from ..rt_detr_v2.model import NAME_MAP as RT_DETR_NAME_MAP
from ..rt_detr_v2.model import RTDetrV2Model, RTDetrV2ModelOutput, RTDetrV2Pretrained
from .config import PPDocLayoutV3Config

PARTS = ("mask_query_head", "decoder_norm", "decoder_order_head", "decoder_global_pointer")
# Boxes and labels of the decoder are those of the proposals: files may have them twice.
NAME_MAP = replace(
    RT_DETR_NAME_MAP,
    base=(*RT_DETR_NAME_MAP.base, *PARTS),
    ignored=(*RT_DETR_NAME_MAP.ignored, r"(^|\.)decoder\.(class|bbox)_embed\."),
)
NOT_AFTER = -1e4  # the logit of a pair of queries in which the first is not before the second


class PPDocLayoutV3ObjectDetectionOutput(NamedTuple):
    logits: Array  # (B, Q, L)
    pred_boxes: Array  # (B, Q, 4): centre x and y, width and height, as parts of the image
    order_logits: Array  # (B, Q, Q): above the diagonal, that the second is read after the first
    out_masks: Array  # (B, Q, y, x): logits
    last_hidden_state: Array  # (B, Q, D)
    enc_topk_logits: Array  # (B, Q, L): of the places that became queries
    enc_topk_bboxes: Array  # (B, Q, 4)


def conv_layer(w: Weights, d_in: int, d_out: int) -> Conv2d:
    """silu(norm(convolution of 3 x 3))."""
    norm = BatchNorm(w / "normalization", d_out)
    return Conv2d(w / "convolution", d_in, d_out, 3, padding=1, bias=False, act="silu", norm=norm)


def enlarge(x: Array) -> Array:
    """x (B, h, w, d) -> (B, 2 h, 2 w, d)."""
    return ops.interpolate(x, (2 * x.shape[1], 2 * x.shape[2]))


class MaskFeatures(Module):
    """Features of all sizes as prototypes of masks, of which each query's mask is a sum."""

    def __init__(self, w: Weights, cfg: PPDocLayoutV3Config):
        d, (c, C), heads = cfg.encoder_hidden_dim, cfg.mask_feature_channels, w / "mask_feature_head.scale_heads"
        # The second size is enlarged once, the third twice, each time after a convolution; the first only has one.
        self.heads = [
            [conv_layer(heads / i / "layers" / (2 * k), c if k else d, c) for k in range(max(1, i))]
            for i in range(len(cfg.feat_strides))
        ]
        self.merge = conv_layer(w / "mask_feature_head.output_conv", c, C)
        self.lateral = conv_layer(w / "encoder_mask_lateral", cfg.x4_feat_dim, C)
        self.base = conv_layer(w / "encoder_mask_output.base_conv", C, C)
        self.out = Conv2d(w / "encoder_mask_output.conv", C, cfg.num_prototypes, 1)

    def __call__(self, maps: Sequence[Array], quarter: Array) -> Array:
        """maps (B, h, w, d), the largest first, quarter (B, y, x, C) -> (B, y x, P)."""
        total, size = self.heads[0][0](maps[0]), maps[0].shape[1:3]
        for head, x in zip(self.heads[1:], maps[1:], strict=True):
            for conv in head:
                x = enlarge(conv(x))
            total = total + ops.interpolate(x, size)
        y = ops.interpolate(self.merge(total), quarter.shape[1:3]) + self.lateral(quarter)
        y = self.out(self.base(y))
        return y.reshape(y.shape[0], -1, y.shape[3])


class GlobalPointer(Module):
    """For each pair of queries, whether the second is read after the first.  D: width of a query; size: of the head."""

    def __init__(self, w: Weights, D: int, size: int, dropout: float):
        self.size, self.dense, self.dropout = size, Linear(w / "dense", D, 2 * size), Dropout(dropout)

    def __call__(self, x: Array) -> Array:
        """x (B, Q, D) -> (B, Q, Q)."""
        B, Q, _ = x.shape
        both = self.dropout(self.dense(x)).reshape(B, Q, 2, self.size)
        logits = ops.scores(both[:, :, :1], both[:, :, 1:])[..., 0] * self.size**-0.5
        at = ops.arange(Q, logits)
        return ops.where((at[:, None] >= at[None])[None], logits * 0 + NOT_AFTER, logits)


class PPDocLayoutV3Pretrained(RTDetrV2Pretrained):
    config_class = PPDocLayoutV3Config
    name_map = NAME_MAP
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Multiples of a place of the last stage, so that each stage is twice as large as the next."""
        (Y, X), (y, x) = size, self.config.network.patch
        return max(round(Y / y), 2) * y, max(round(X / x), 2) * x


class PPDocLayoutV3Model(PPDocLayoutV3Pretrained, RTDetrV2Model):
    """The layers: a page to the state of each query."""

    is_base_model = True
    backbone_class = HGNetV2

    def __init__(self, w: Weights, cfg: PPDocLayoutV3Config):
        super().__init__(w, cfg)
        D, layers = cfg.d_model, range(cfg.decoder_layers)
        self.masks, self.mask_query = (
            MaskFeatures(w / "encoder", cfg),
            Mlp(w / "mask_query_head", D, D, D, cfg.num_prototypes),
        )
        self.norm = LayerNorm(w / "decoder_norm", D, cfg.layer_norm_eps)
        self.order_heads = [Linear(w / "decoder_order_head" / i, D, D) for i in layers]  # all but the last for training
        size, dropout = cfg.global_pointer_head_size, cfg.gp_dropout_value
        self.order = GlobalPointer(w / "decoder_global_pointer", D, size, dropout)

    def detect(self, p: ImageInputs) -> PPDocLayoutV3ObjectDetectionOutput:
        quarter, *features = self.backbone(p.pixel_values)
        maps = self.encode(features)
        prototypes, grid, c = self.masks(maps, quarter), quarter.shape[1:3], self.memory(maps)
        x, boxes, proposed = self.proposals(c.memory, c.grids)
        boxes = first = ops.activate(boxes, "sigmoid")
        if self.config.mask_enhanced:
            boxes = ops.boxes_of_masks(self.masks_of(self.norm(x), prototypes, grid))
            boxes = ops.activate(ops.logit(boxes, EPS), "sigmoid")
        for layer in self.decoder_layers:
            x = layer(x, self.places(boxes), boxes, c)
            boxes = ops.activate(self.proposals.box(x) + ops.logit(boxes, EPS), "sigmoid")
        query = self.norm(x)
        order, masks = self.order(self.order_heads[-1](query)), self.masks_of(query, prototypes, grid)
        return PPDocLayoutV3ObjectDetectionOutput(self.proposals.score(query), boxes, order, masks, x, proposed, first)

    def masks_of(self, query: Array, prototypes: Array, grid: Sequence[int]) -> Array:
        """query (B, Q, D), prototypes (B, y x, P), grid (y, x) -> (B, Q, y, x)."""
        masks = ops.scores(self.mask_query(query)[:, :, None], prototypes[:, :, None])
        return masks.reshape(query.shape[0], query.shape[1], *grid)

    def forward(self, p: ImageInputs) -> RTDetrV2ModelOutput:
        return RTDetrV2ModelOutput(*self.detect(p)[-3:])


class PPDocLayoutV3ForObjectDetection(PPDocLayoutV3Pretrained):
    def __init__(self, w: Weights, cfg: PPDocLayoutV3Config):
        self.config, self.base_model = cfg, PPDocLayoutV3Model(w / "model", cfg)

    def forward(self, p: ImageInputs) -> PPDocLayoutV3ObjectDetectionOutput:
        """-> one region for each query."""
        return self.base_model.detect(p)
