"""Longformer's self-attention (https://arxiv.org/abs/2004.05150, section 3.1), which LED's encoder has too.

Shapes: B batch, T tokens, N global tokens of the row with the most, D hidden_size, H heads, K = D / H.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...inputs import TextInputs
from ...nn import Dropout, Linear, Module
from ...typing import Array
from ...weights import Weights


class Global(NamedTuple):
    """The global tokens of a batch."""

    mask: Array  # (B, T)
    places: Array  # (B, N): where they are
    there: Array  # (B, N): False beyond a row's own
    number: Array  # (B, T): which of them a token is


class WindowContext(NamedTuple):
    """The arguments of every layer besides its input."""

    mask: Array | None  # (B, T)
    others: Array | None  # (B, T): tokens that are not global
    of_all: Global | None


def window_context(t: TextInputs, count: int | None = None) -> WindowContext:
    """count: the largest number of global tokens of a row, if it is known."""
    mask, marked = t.context.mask, t.global_attention_mask
    if marked is None:
        return WindowContext(mask, mask, None)
    marked = marked != 0
    marked = marked if mask is None else marked & mask  # padding is not global
    number = (ops.cumsum(marked, 1) - 1) * marked
    of_all = Global(marked, *ops.true_indices(marked, count), number)
    return WindowContext(mask, ~marked if mask is None else mask & ~marked, of_all)


class WindowAttention(Module):
    """Attention of each token to those around it and to global tokens, and of global tokens to all, with weights of
    their own.
    """

    def __init__(self, w: Weights, D: int, heads: int, side: int, dropout: float):
        self.heads, self.side, self.dropout = heads, side, Dropout(dropout)
        self.qkv = Linear.fuse(w, ["query", "key", "value"], D, [D, D, D])
        self.query_global = Linear(w / "query_global", D, D)
        self.key_value_global = Linear.fuse(w, ["key_global", "value_global"], D, [D, D])

    def __call__(self, x: Array, c: WindowContext) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        (q, k, v), g, shared = ops.split_heads(self.qkv(x), self.heads), c.of_all, None
        if g is not None:
            shared = ops.SharedKeys(self._rows(k, g.places), self._rows(v, g.places), g.there)
        a = ops.banded_attention(q, k, v, self.side, mask=c.others, shared=shared, dropout=self.dropout.rate)
        a = a.reshape(x.shape)
        if g is not None:
            own = ops.take_rows(self.attend_to_all(x, c.mask, g), g.number)
            a = ops.where(g.mask[:, :, None], own, a)
        # Padding sees nothing, as in transformers.
        return a if c.mask is None else ops.where(c.mask[:, :, None], a, ops.zeros((1, 1, 1), a))

    def attend_to_all(self, x: Array, mask: Array | None, g: Global) -> Array:
        """x (B, T, D) -> (B, N, D), of the global tokens."""
        B, T, D = x.shape
        N, H = g.places.shape[1], self.heads
        q = self.query_global(ops.take_rows(x, g.places)).reshape(B, N, H, D // H)
        k_v = self.key_value_global(x).reshape(B, T, 2 * H, D // H)
        a = ops.attention(q, k_v[:, :, :H], k_v[:, :, H:], mask=mask, dropout=self.dropout.rate)
        return a.reshape(B, N, D)

    @staticmethod
    def _rows(x: Array, index: Array) -> Array:
        """x (B, T, H, K), index (B, N) -> (B, N, H, K)."""
        B, T, H, K = x.shape
        return ops.take_rows(x.reshape(B, T, H * K), index).reshape(B, index.shape[1], H, K)
