"""The layers of Parakeet, a Conformer's (Gulati et al. 2020, https://arxiv.org/abs/2005.08100).

Shapes: B recordings, T states, H heads, K = D / H, D hidden_size, F intermediate_size.
"""

from __future__ import annotations

from ... import ops
from ...nn import BatchNorm, Dropout, FoldedModule, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from .config import ParakeetEncoderConfig

EPS = 1e-5
HIDDEN_SCORE = -30000.0  # the score of a state that is not seen, in the range of float16


def silence(x: Array, mask: Array | None) -> Array:
    """x (B, T, D), mask (B, T) -> x with zeros where the mask is false."""
    return x if mask is None else ops.where(mask[:, :, None], x, ops.zeros((1,), x))


class FeedForward(Module):
    def __init__(self, w: Weights, cfg: ParakeetEncoderConfig):
        D, F, has_bias = cfg.hidden_size, cfg.intermediate_size, cfg.attention_bias
        self.up = Linear(w / "linear1", D, F, has_bias, act=cfg.hidden_act, dropout=cfg.activation_dropout)
        self.down = Linear(w / "linear2", F, D, has_bias)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        return self.down(self.up(x))


class Attention(Module):
    """Attention with scores of distances, and a bias of each head on its queries (Dai et al. 2019,
    https://arxiv.org/abs/1901.02860).
    """

    def __init__(self, w: Weights, cfg: ParakeetEncoderConfig):
        D, H, has_bias = cfg.hidden_size, cfg.num_attention_heads, cfg.attention_bias
        self.shape = H, D // H
        self.qkv = Linear.fuse(w, ["q_proj", "k_proj", "v_proj"], D, [D, D, D], has_bias)
        self.out, self.dropout = Linear(w / "o_proj", D, D, has_bias), Dropout(cfg.attention_dropout)
        self.distances = Linear(w / "relative_k_proj", D, D, bias=False)
        self.of_keys, self.of_distances = w.get("bias_u", self.shape), w.get("bias_v", self.shape)

    def __call__(self, x: Array, positions: Array, mask: Array | None) -> Array:
        """x (B, T, D), positions (2 T, D) of keys after their query, from -T, mask (B, T) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.shape[0])
        table = self.distances(positions).reshape(-1, *self.shape)
        bias = ops.relative_scores(q + self.of_distances, table) * self.shape[1] ** -0.5
        q = q + self.of_keys
        if mask is not None:  # a state after the end sees all states alike, as in transformers
            q = ops.where(mask[:, :, None, None], q, ops.zeros((1,), q))
            bias = ops.where((mask[:, :, None] & mask[:, None])[:, None], bias, ops.zeros((1,), q) + HIDDEN_SCORE)
        return self.out(ops.attention(q, k, v, bias=bias, dropout=self.dropout.rate).reshape(x.shape))


class OverTime(FoldedModule):
    """act(norm(a convolution over time of each channel by itself))."""

    def __init__(self, w: Weights, cfg: ParakeetEncoderConfig):
        D = cfg.hidden_size
        self.weight = w.get("depthwise_conv.weight", (D, 1, cfg.conv_kernel_size))
        self.bias = w.get("depthwise_conv.bias", (D,)) if cfg.convolution_bias else None
        self.norm, self.act = BatchNorm(w / "norm", D), ops.activation(cfg.hidden_act)
        self._folded = self.norm.fold(self.weight, self.bias)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        weight, bias = self._folded or (self.weight, self.bias)
        x = ops.depthwise_conv2d(x[:, :, None], weight[..., None], bias)
        return ops.activate(x if self._folded else self.norm(x), self.act)[:, :, 0]


class Convolution(Module):
    """A convolution over time of each channel by itself, between two of each state by itself."""

    def __init__(self, w: Weights, cfg: ParakeetEncoderConfig):
        D, has_bias = cfg.hidden_size, cfg.convolution_bias
        self.first, self.last = (w.get(f"pointwise_conv{i}.weight", (n * D, D, 1)) for i, n in ((1, 2), (2, 1)))
        self.first_bias = w.get("pointwise_conv1.bias", (2 * D,)) if has_bias else None
        self.last_bias = w.get("pointwise_conv2.bias", (D,)) if has_bias else None
        self.over_time = OverTime(w, cfg)

    def __call__(self, x: Array, mask: Array | None) -> Array:
        """x (B, T, D), mask (B, T) -> (B, T, D)."""
        D = x.shape[2]
        x = ops.linear(x, self.first.reshape(*self.first.shape[:2]), self.first_bias)
        x = self.over_time(silence(x[..., :D] * ops.activate(x[..., D:], "sigmoid"), mask))
        return ops.linear(x, self.last.reshape(*self.last.shape[:2]), self.last_bias)


class Layer(Module):
    def __init__(self, w: Weights, cfg: ParakeetEncoderConfig):
        names = ("feed_forward1", "self_att", "conv", "feed_forward2", "out")
        self.norms = [LayerNorm(w / f"norm_{name}", cfg.hidden_size, EPS) for name in names]
        self.first, self.second = (FeedForward(w / f"feed_forward{i}", cfg) for i in (1, 2))
        self.attention, self.convolution = Attention(w / "self_attn", cfg), Convolution(w / "conv", cfg)

    def __call__(self, x: Array, positions: Array, mask: Array | None) -> Array:
        """x (B, T, D), positions (2 T, D), mask (B, T) -> (B, T, D)."""
        x = x + self.first(self.norms[0](x)) * 0.5
        x = x + self.attention(self.norms[1](x), positions, mask)
        x = x + self.convolution(self.norms[2](x), mask)
        return self.norms[4](x + self.second(self.norms[3](x)) * 0.5)
