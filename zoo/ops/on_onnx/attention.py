"""Attention of plain operators.

What may not be seen is said once for all layers, by an array that is added to the scores: a large negative number, and
not -inf, of which softmax would make NaN where nothing can be seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arrays import arange
from .dims import text_of
from .symbol import Symbol

LOWEST = np.array(np.finfo(np.float32).min, np.float32)
NOWHERE = 1 << 40  # a position that no query reaches


class Keys(Symbol):
    """Keys that a cache gives, those of the past before the new ones, and where each of them stands."""

    positions: Symbol  # (B, S)


class Hidden(NamedTuple):
    """What attention leaves out."""

    added: Symbol  # to the scores: broadcasts to (B, H, T, S)
    seen: Symbol | None  # 1 for a query that sees a key, else 0: broadcasts to (B, H, T, 1); None: all do


def attention(
    q: Symbol,
    k: Symbol,
    v: Symbol,
    start: Symbol | None,
    mask: Symbol | None,
    bias: Symbol | None,
    scale: float,
) -> Symbol:
    B, T, H, K = q.shape
    S, G = k.shape[1:3]
    R = H // G
    hidden = _hidden(k, T, start, mask, bias)
    if R == 1:
        rows = q.transpose(0, 2, 1, 3)
    else:  # the queries that share a head of keys are as many more rows of one product
        rows = q.reshape(B, T, G, R, K).transpose(0, 2, 3, 1, 4).reshape(B, G, R * T, K)
    rows = rows * scale
    scores = q.new("MatMul", [rows, k.transpose(0, 2, 3, 1)], (B, G, R * T, S))
    if hidden is not None:
        scores = scores.reshape(B, H, T, S) + hidden.added
    shares = q.new("Softmax", [scores], scores.shape, axis=-1).reshape(B, G, R * T, S)
    y = q.new("MatMul", [shares, v.transpose(0, 2, 1, 3)], (B, G, R * T, K)).reshape(B, H, T, K)
    if hidden is not None and hidden.seen is not None:
        y = y * hidden.seen
    return y.transpose(0, 2, 1, 3)


def _hidden(k: Symbol, T: int, start: Symbol | None, mask: Symbol | None, bias: Symbol | None) -> Hidden | None:
    if start is None and mask is None and bias is None:
        return None
    given = tuple(None if x is None else x.name for x in (getattr(k, "positions", None), start, mask, bias))
    key = ("hidden", *given, text_of(T), text_of(k.shape[1]))
    memo = k.graph.memo
    if key not in memo:
        memo[key] = _combined(k, T, start, mask, bias)
    return memo[key]


def _combined(k: Symbol, T: int, start: Symbol | None, mask: Symbol | None, bias: Symbol | None) -> Hidden:
    visible = None
    if start is not None:
        at = getattr(k, "positions", None)
        at = arange(k.shape[1], k)[None] if at is None else at  # (B or 1, S)
        query = start[:, None] + arange(T, k)  # (B or 1, T)
        visible = (at[:, None] <= query[:, :, None])[:, None]  # (B or 1, 1, T, S)
    if mask is not None:
        keys = mask[:, None, None]
        visible = keys if visible is None else visible & keys
    added = None
    if visible is not None:
        added = k.new("Where", [visible, np.zeros((), np.float32), LOWEST], visible.shape)
    if bias is not None:
        finite = bias.is_constant and np.isfinite(bias.value).all()
        bias = bias if finite else bias.new("Max", [bias, LOWEST], bias.shape)
        added = bias if added is None else added + bias
        if finite and visible is None:
            return Hidden(added, None)
    assert added is not None
    if mask is None and bias is None:  # causal: at least the first key is seen
        return Hidden(added, None)
    top = added.new("ReduceMax", [added, np.array([-1])], (*added.shape[:-1], 1), keepdims=1)
    return Hidden(added, (top > float(LOWEST) / 2).to(added.dtype))
