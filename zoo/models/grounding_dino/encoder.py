"""The encoder of Grounding DINO (Liu et al. 2023, https://arxiv.org/abs/2303.05499): in each layer the features of the
image and the tokens of the text attend to each other, then tokens to those of their phrase, and features to a few
points of each level.

Shapes: B batch, N features of all levels, T tokens, D d_model, F encoder_ffn_dim, H heads.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..deformable_detr.encoder import Levels, PointAttention
from .config import GroundingDinoConfig

# [CLS], [SEP], the full stop and the question mark: in BERT's vocabulary, and in the code of transformers.
DELIMITERS = (101, 102, 1012, 1029)


class EncoderContext(NamedTuple):
    """The arguments of every layer of the encoder besides its two inputs."""

    positions: Array  # (1 or B, N, D) of the features
    places: Array  # (1 or B, N, 2) of the features
    levels: Levels
    text_positions: Array  # (B, T, D)
    text_bias: Array  # (B, 1, T, T): it hides tokens of other phrases
    text_mask: Array | None  # (B, T): false for padding


def find_phrases(ids: Array) -> tuple[Array, Array]:
    """ids (B, T) -> the number of each token's phrase and its position there, both (B, T).

    A phrase ends with its delimiter.  Tokens after the last delimiter but the one at the text's end are each a phrase.
    """
    is_end = (ids == DELIMITERS[0]) | (ids == DELIMITERS[1]) | (ids == DELIMITERS[2]) | (ids == DELIMITERS[3])
    number, at = ops.cumsum(is_end, 1) - is_end * 1, ops.arange(ids.shape[1], ids)
    before = (number[:, :, None] == number[:, None]) & (at[:, None] > at[None])
    is_whole = number != number[:, -1:]
    position = ops.cumsum(before, 2)[:, :, -1] * is_whole
    return ops.where(is_whole, number, -1 - at), position


class Attention(Module):
    def __init__(self, w: Weights, cfg: GroundingDinoConfig, heads: int, dropout: float):
        D, self.heads = cfg.d_model, heads
        self.q, self.k, self.v = (Linear(w / part, D, D) for part in ("query", "key", "value"))
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "out_proj", D, D, dropout=dropout)

    def __call__(
        self, queries: Array, keys: Array, values: Array, mask: Array | None = None, bias: Array | None = None
    ) -> Array:
        """queries (B, Q, D), keys and values (B, S, D), mask (B, S), bias (B, 1, Q, S) -> (B, Q, D)."""
        q, k, v = (y.reshape(*y.shape[:2], self.heads, -1) for y in (self.q(queries), self.k(keys), self.v(values)))
        found = ops.attention(q, k, v, mask=mask, bias=bias, dropout=self.dropout.rate)
        return self.out(found.reshape(queries.shape))


class Fusion(Module):
    """Attention of features to tokens and of tokens to features, by the same products."""

    def __init__(self, w: Weights, cfg: GroundingDinoConfig):
        D, F, eps = cfg.d_model, cfg.encoder_ffn_dim // 2, cfg.layer_norm_eps
        self.heads, own = cfg.encoder_attention_heads // 2, w / "attn"
        self.norm, self.text_norm = LayerNorm(w / "layer_norm_vision", D, eps), LayerNorm(w / "layer_norm_text", D, eps)
        self.key, self.text_key = Linear(own / "vision_proj", D, F), Linear(own / "text_proj", D, F)
        self.value, self.text_value = Linear(own / "values_vision_proj", D, F), Linear(own / "values_text_proj", D, F)
        self.out, self.text_out = Linear(own / "out_vision_proj", F, D), Linear(own / "out_text_proj", F, D)
        self.scale, self.text_scale = w.get("vision_param", (D,)), w.get("text_param", (D,))
        self.dropout, self.drop_path = Dropout(cfg.fusion_dropout), Dropout(cfg.fusion_droppath, of_rows=True)

    def __call__(self, x: Array, text: Array, c: EncoderContext) -> tuple[Array, Array]:
        """x (B, N, D), text (B, T, D) -> the same."""
        x, text, H, rate = self.norm(x), self.text_norm(text), self.heads, self.dropout.rate
        k, v = (y.reshape(*y.shape[:2], H, -1) for y in (self.key(x), self.value(x)))
        of_text = self.text_key(text), self.text_value(text)
        text_k, text_v = (y.reshape(*y.shape[:2], H, -1) for y in of_text)
        seen = ops.attention(k, text_k, text_v, mask=c.text_mask, dropout=rate)
        shown = ops.attention(text_k, k, v, mask=c.levels.mask, dropout=rate)
        seen, shown = self.out(seen.reshape(*x.shape[:2], -1)), self.text_out(shown.reshape(*text.shape[:2], -1))
        x = ops.add_scaled(x, self.drop_path(seen), self.scale)
        return x, ops.add_scaled(text, self.drop_path(shown), self.text_scale)


class TextLayer(Module):
    def __init__(self, w: Weights, cfg: GroundingDinoConfig):
        D, F, rate = cfg.d_model, cfg.encoder_ffn_dim // 2, cfg.text_enhancer_dropout
        self.attention = Attention(w / "self_attn", cfg, cfg.encoder_attention_heads // 2, rate)
        self.norm = LayerNorm(w / "layer_norm_before", D, cfg.layer_norm_eps)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=rate)
        self.down = Linear(w / "fc2", F, D, dropout=rate)
        self.final_norm = LayerNorm(w / "layer_norm_after", D, cfg.layer_norm_eps)

    def __call__(self, text: Array, c: EncoderContext) -> Array:
        """text (B, T, D) -> (B, T, D)."""
        placed = text + c.text_positions
        text = self.norm(self.attention(placed, placed, text, bias=c.text_bias), residual=text)
        return self.final_norm(self.down(self.up(text)), residual=text)


class PointLayer(Module):
    def __init__(self, w: Weights, cfg: GroundingDinoConfig):
        D, F, eps = cfg.d_model, cfg.encoder_ffn_dim, cfg.layer_norm_eps
        self.attention = PointAttention(w / "self_attn", cfg, cfg.encoder_attention_heads, cfg.encoder_n_points)
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, eps)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, eps)

    def __call__(self, x: Array, c: EncoderContext) -> Array:
        """x (B, N, D) -> (B, N, D)."""
        x = self.norm(self.attention(x + c.positions, c.places, x, c.levels), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


class EncoderLayer(Module):
    def __init__(self, w: Weights, cfg: GroundingDinoConfig):
        self.fusion = Fusion(w / "fusion_layer", cfg)
        self.text_layer = TextLayer(w / "text_enhancer_layer", cfg)
        self.point_layer = PointLayer(w / "deformable_layer", cfg)

    def __call__(self, x: Array, text: Array, c: EncoderContext) -> tuple[Array, Array]:
        """x (B, N, D), text (B, T, D) -> the same."""
        x, text = self.fusion(x, text, c)
        return self.point_layer(x, c), self.text_layer(text, c)
