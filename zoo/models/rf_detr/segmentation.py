"""RF-DETR's segmentation (https://arxiv.org/abs/2511.09554): a mask is the product of a query and of features that as
many blocks of convolutions as there are layers of the decoder have enlarged.

Shapes: as in model.py; y and x height and width of a mask.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs
from ...nn import Conv2d, DepthwiseConv2d, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..rt_detr_v2.decoder import Mlp
from .config import RfDetrConfig
from .model import EPS, RfDetrModel, RfDetrPretrained, correct_boxes


class RfDetrInstanceSegmentationOutput(NamedTuple):
    logits: Array  # (B, Q, L)
    pred_boxes: Array  # (B, Q, 4)
    pred_masks: Array  # (B, Q, y, x): logits of the object of each query
    last_hidden_state: Array  # (B, Q, D)


class Block(Module):
    def __init__(self, w: Weights, cfg: RfDetrConfig):
        D = cfg.d_model
        self.conv, self.norm = DepthwiseConv2d(w / "dwconv", D, 3), LayerNorm(w / "norm", D, 1e-6)
        self.mix = Linear(w / "pwconv1", D, D, act=cfg.segmentation_head_activation_function)

    def __call__(self, x: Array) -> Array:
        """x (B, y, x, D) -> (B, y, x, D)."""
        return self.mix(self.norm(self.conv(x)), residual=x)


class RfDetrForInstanceSegmentation(RfDetrPretrained):
    def __init__(self, w: Weights, cfg: RfDetrConfig):
        D, F, self.config, self.base_model = cfg.d_model, cfg.intermediate_size, cfg, RfDetrModel(w / "model", cfg)
        self.class_embed, self.bbox_embed = (
            Linear(w / "class_embed", D, cfg.num_labels),
            Mlp(w / "bbox_embed", D, D, D, 4),
        )
        w = w / "segmentation_head"
        self.blocks = [Block(w / "blocks" / i, cfg) for i in range(cfg.decoder_layers)]
        self.project, self.bias = Conv2d(w / "spatial_features_proj", D, D, 1), w.get("bias", (1,))
        own = w / "query_features_block"
        self.norm, self.down = LayerNorm(own / "norm_in", D, EPS), Linear(own / "layers.2", F, D)
        self.up = Linear(own / "layers.0", D, F, act=cfg.segmentation_head_activation_function)
        self.query = Linear(w / "query_features_proj", D, D)

    def masks(self, features: Array, x: Array, size: tuple[int, int]) -> Array:
        """features (B, h, w, D), x (B, Q, D), size of the image -> (B, Q, y, x)."""
        Y, X = (n // self.config.mask_downsample_ratio for n in size)
        features = ops.interpolate(features, (Y, X))
        for block in self.blocks:
            features = block(features)
        x = self.query(self.down(self.up(self.norm(x)), residual=x))
        keys = self.project(features).reshape(x.shape[0], Y * X, 1, x.shape[2])
        return ops.scores(x[:, :, None], keys).reshape(*x.shape[:2], Y, X) + self.bias

    def forward(self, p: ImageInputs) -> RfDetrInstanceSegmentationOutput:
        """-> one object and its mask for each query."""
        found = self.base_model.find(p)
        x = found.states[-1]
        masks = self.masks(found.features, x, (p.pixel_values.shape[1], p.pixel_values.shape[2]))
        boxes = correct_boxes(found.boxes, self.bbox_embed(x))
        return RfDetrInstanceSegmentationOutput(self.class_embed(x), boxes, masks, x)
