"""The layers of Wav2Vec2-BERT, a Conformer's (Gulati et al. 2020, https://arxiv.org/abs/2005.08100).

Shapes: B recordings, T states, H heads, K = D / H, D hidden_size, F intermediate_size, P distances.
"""

from __future__ import annotations

from ... import ops
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from .config import Wav2Vec2BertConfig


def silence(x: Array, mask: Array | None) -> Array:
    """x (B, T, D), mask (B, T) -> x with zeros where the mask is false."""
    return x if mask is None else ops.where(mask[:, :, None], x, ops.zeros((1,), x))


class FeedForward(Module):
    def __init__(self, w: Weights, cfg: Wav2Vec2BertConfig, D: int, act: str):
        F = cfg.intermediate_size
        self.up = Linear(w / "intermediate_dense", D, F, act=act, dropout=cfg.activation_dropout)
        self.down = Linear(w / "output_dense", F, D, dropout=cfg.hidden_dropout)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        return self.down(self.up(x))


class Attention(Module):
    """Attention; of a layer with scores of distances (Shaw et al. 2018, https://arxiv.org/abs/1803.02155)."""

    def __init__(self, w: Weights, cfg: Wav2Vec2BertConfig, D: int, is_placed: bool):
        self.heads, K = cfg.num_attention_heads, D // cfg.num_attention_heads
        self.qkv = Linear.fuse(w, ["linear_q", "linear_k", "linear_v"], D, [D, D, D])
        self.out, self.dropout = Linear(w / "linear_out", D, D), Dropout(cfg.attention_dropout)
        self.before, self.after = cfg.left_max_position_embeddings, cfg.right_max_position_embeddings
        shape = self.before + self.after + 1, K
        self.table = w.get("distance_embedding.weight", shape) if is_placed else None

    def bias(self, q: Array, table: Array) -> Array:
        """q (B, T, H, K), table (P, K): the vectors of distances of keys after queries, from -before to after
        -> (B, H, T, T).
        """
        T, K = q.shape[1], q.shape[3]
        at = ops.arange(2 * T, q) - T
        at = ops.where(at < -self.before, at * 0 - self.before, at)
        at = ops.where(at > self.after, at * 0 + self.after, at)
        rows = ops.embedding(at + self.before, table)
        return ops.relative_scores(q, rows[:, None] + ops.zeros((self.heads, 1), rows)) * K**-0.5

    def __call__(self, x: Array, mask: Array | None) -> Array:
        """x (B, T, D), mask (B, T) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        bias = None if self.table is None else self.bias(q, self.table)
        return self.out(ops.attention(q, k, v, mask=mask, bias=bias, dropout=self.dropout.rate).reshape(x.shape))


def gate(x: Array) -> Array:
    """The first half of the numbers, weighted by the second.  x (..., 2 D) -> (..., D)."""
    D = x.shape[-1] // 2
    return x[..., :D] * ops.activate(x[..., D:], "sigmoid")


class Convolution(Module):
    """A convolution over time of each channel by itself, between two of each state by itself."""

    def __init__(self, w: Weights, cfg: Wav2Vec2BertConfig):
        D, self.kernel, eps = cfg.hidden_size, cfg.conv_depthwise_kernel_size, cfg.layer_norm_eps
        self.norm, self.inner_norm = LayerNorm(w / "layer_norm", D, eps), LayerNorm(w / "depthwise_layer_norm", D, eps)
        self.first = w.get("pointwise_conv1.weight", (2 * D, D, 1))
        self.over_time = w.get("depthwise_conv.weight", (D, 1, self.kernel))
        self.last = w.get("pointwise_conv2.weight", (D, D, 1))
        self.act, self.dropout = ops.activation(cfg.hidden_act), Dropout(cfg.conformer_conv_dropout)

    def __call__(self, x: Array, mask: Array | None) -> Array:
        """x (B, T, D), mask (B, T) -> (B, T, D)."""
        x = silence(self.norm(x), mask)
        x = gate(ops.linear(x, self.first.reshape(*self.first.shape[:2])))
        x = ops.pad_images(x[:, :, None], (self.kernel - 1, 0), (0, 0))
        x = ops.depthwise_conv2d(x, self.over_time[..., None], padding=0)[:, :, 0]
        x = ops.activate(self.inner_norm(x), self.act)
        return self.dropout(ops.linear(x, self.last.reshape(*self.last.shape[:2])))


class Layer(Module):
    def __init__(self, w: Weights, cfg: Wav2Vec2BertConfig):
        D, eps = cfg.hidden_size, cfg.layer_norm_eps
        self.norms = [LayerNorm(w / f"{name}_layer_norm", D, eps) for name in ("ffn1", "self_attn", "ffn2", "final")]
        self.first, self.second = (FeedForward(w / name, cfg, D, cfg.hidden_act) for name in ("ffn1", "ffn2"))
        self.attention = Attention(w / "self_attn", cfg, D, cfg.position_embeddings_type is not None)
        self.convolution, self.dropout = Convolution(w / "conv_module", cfg), Dropout(cfg.attention_dropout)

    def __call__(self, x: Array, mask: Array | None) -> Array:
        """x (B, T, D), mask (B, T) -> (B, T, D)."""
        x = x + self.first(self.norms[0](x)) * 0.5
        x = x + self.dropout(self.attention(self.norms[1](x), mask))
        x = x + self.convolution(x, mask)
        return self.norms[3](x + self.second(self.norms[2](x)) * 0.5)
