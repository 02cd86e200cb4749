"""Table Transformer (Smock et al. 2021, https://arxiv.org/abs/2110.00061): DETR with pre-norm layers, trained to find
tables, and in them rows, columns and cells.

Shapes: B batch, N features of an image, Q num_queries, D d_model.
"""

from __future__ import annotations

from dataclasses import replace

from ...nn import LayerNorm
from ...typing import Array
from ...weights import Weights
from ..detr import model as detr
from ..detr.config import TIMM_NAMES
from .config import TableTransformerConfig

NAME_MAP = replace(detr.NAME_MAP, renames=TIMM_NAMES)


class EncoderLayer(detr.EncoderLayer):
    def __call__(self, x: Array, positions: Array, mask: Array | None) -> Array:
        """x (B, N, D), positions (1 or B, N, D), mask (B, N) -> (B, N, D)."""
        y = self.norm(x)
        placed = y + positions
        y, x = self.final_norm.add(self.attention(placed, placed, y, mask), x)
        return self.down(self.up(y), residual=x)


class DecoderLayer(detr.DecoderLayer):
    def __call__(self, x: Array, c: detr.DecoderContext) -> Array:
        """x (B, Q, D) -> (B, Q, D)."""
        y = self.norm(x)
        placed = y + c.queries
        y, x = self.cross_norm.add(self.attention(placed, placed, y), x)
        y, x = self.final_norm.add(self.cross_attention(y + c.queries, c.placed_memory, c.memory, c.mask), x)
        return self.down(self.up(y), residual=x)


class TableTransformerModel(detr.DetrModel):
    config_class = TableTransformerConfig
    name_map = replace(detr.BASE_NAME_MAP, renames=TIMM_NAMES)
    encoder_layer, decoder_layer = EncoderLayer, DecoderLayer

    def __init__(self, w: Weights, cfg: TableTransformerConfig):
        super().__init__(w, cfg)
        self.encoder_norm = LayerNorm(w / "encoder.layernorm", cfg.d_model, detr.EPS)

    def encode(self, x: Array, positions: Array, mask: Array | None) -> Array:
        """x (B, N, D), positions (1 or B, N, D), mask (B, N) -> (B, N, D)."""
        return self.encoder_norm(super().encode(x, positions, mask))


class TableTransformerForObjectDetection(detr.DetrForObjectDetection):
    config_class = TableTransformerConfig
    name_map = NAME_MAP
    base_class = TableTransformerModel
