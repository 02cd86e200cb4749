"""The decoder of Grounding DINO (Liu et al. 2023, https://arxiv.org/abs/2303.05499): queries attend to each other, to
the tokens of the text, and to a few points of each level.

Shapes: B batch, N features of all levels, T tokens, Q queries, D d_model, F decoder_ffn_dim, H heads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ... import ops
from ...nn import LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..deformable_detr.encoder import Levels, PointAttention
from .config import GroundingDinoConfig
from .encoder import Attention


class Contrast(Module):
    """How well tokens fit a vector: their products, which a descendant may scale."""

    def __init__(self, w: Weights, cfg: GroundingDinoConfig): ...

    def __call__(self, x: Array, text: Array, mask: Array | None) -> Array:
        """x (B, Q, D), text (B, T, D), mask (B, T) -> (B, Q, T), -inf for padding."""
        found = self.scale(ops.scores(x[:, :, None], text[:, :, None])[:, :, :, 0])
        return found if mask is None else ops.where(mask[:, None], found, ops.zeros((1, 1, 1), x) - math.inf)

    def scale(self, products: Array) -> Array:
        """products (B, Q, T) of vectors -> the same."""
        return products


class DecoderContext(NamedTuple):
    """The arguments of every layer of the decoder besides its input, its boxes and their positions."""

    memory: Array  # (B, N, D): the encoder's features
    levels: Levels
    text: Array  # (B, T, D): the encoder's tokens
    text_mask: Array | None  # (B, T): false for padding


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: GroundingDinoConfig):
        D, F, H, eps = cfg.d_model, cfg.decoder_ffn_dim, cfg.decoder_attention_heads, cfg.layer_norm_eps
        self.attention = Attention(w / "self_attn", cfg, H, cfg.dropout)
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, eps)
        self.text_attention = Attention(w / "encoder_attn_text", cfg, H, cfg.dropout)
        self.text_norm = LayerNorm(w / "encoder_attn_text_layer_norm", D, eps)
        self.cross_attention = PointAttention(w / "encoder_attn", cfg, H, cfg.decoder_n_points)
        self.cross_norm = LayerNorm(w / "encoder_attn_layer_norm", D, eps)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, eps)

    def __call__(self, x: Array, at: Array, positions: Array, c: DecoderContext) -> Array:
        """x (B, Q, D), boxes at (B, Q, 4), positions (B, Q, D) of these -> (B, Q, D)."""
        placed = x + positions
        x = self.norm(self.attention(placed, placed, x), residual=x)
        x = self.text_norm(self.text_attention(x + positions, c.text, c.text, c.text_mask), residual=x)
        x = self.cross_norm(self.cross_attention(x + positions, at, c.memory, c.levels), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)
