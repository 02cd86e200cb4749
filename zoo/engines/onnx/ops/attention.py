"""Attention by plain operators, or by ONNX Runtime's own where no key is hidden, which a mask shows in each run.

One array for all layers is added to the scores to hide keys: a large negative number, since -inf would make softmax
return NaN for a query that sees no key.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..session import counts_own_position
from .arrays import arange, cat, embedding
from .dims import text_of
from .graph import MICROSOFT
from .norm import softmax
from .symbol import FLOAT, INT, Symbol

INT32 = np.dtype(np.int32)
MIN_FLOAT = np.array(np.finfo(np.float32).min, np.float32)


class _Cached(Symbol):
    """Cached keys or values (B, G, S, K) and new ones (B, T, G, K), as one (B, S + T, G, K) without a copy.

    in_place: attention also puts the new ones into the cache; `present` is then the cache with them.
    """

    def __init__(self, past: Symbol, recent: Symbol, in_place: bool = False):
        B, T, G, K = recent.shape
        super().__init__(past.graph, f"{past.name} and {recent.name}", (B, past.shape[2] + T, G, K), past.dtype)
        self.stored, self.past, self.recent = past, past.transpose(0, 2, 1, 3), recent
        self.in_place, self.present = in_place, past


class CachedKeys(_Cached): ...


class CachedValues(_Cached): ...


class Hidden(NamedTuple):
    """The keys that attention hides."""

    added: Symbol  # to the scores: broadcasts to (B, H, T, S)
    seen: Symbol | None  # 1 for a query that sees a key, else 0: broadcasts to (B, H, T, 1); None: all see one


def attention(
    q: Symbol,
    k: Symbol,
    v: Symbol,
    start: Symbol | None,
    mask: Symbol | None,
    bias: Symbol | None,
    window: int | None,
    scale: float,
    blocks: Symbol | None = None,
    softcap: float | None = None,
    sinks: Symbol | None = None,
) -> Symbol:
    (B, T, H, _), G = q.shape, k.shape[2]
    R = H // G
    if isinstance(k, CachedKeys) and isinstance(v, CachedValues) and k.in_place:
        assert start is not None
        assert blocks is None
        assert softcap is None
        return _in_place(q, k, v, start, window, scale, sinks)
    hides = not (start is mask is bias is window is None)
    fuses = R == 1 and softcap is sinks is None and not q.graph.standard
    if fuses and not hides:
        return _multi_head_attention([_merge_heads(x) for x in (q, k, v)], H, scale).reshape(B, T, H, v.shape[3])
    if fuses and q.graph.on_cpu and mask is not None and start is bias is window is None:
        return _attend_by_mask(q, k, v, mask, scale)
    if isinstance(k, CachedKeys) and isinstance(v, CachedValues):
        assert start is not None
        assert mask is None
        rows = _rows(q, G) * scale
        before, causal = _of_cache(k, T, start, window, blocks)
        S = k.past.shape[1]
        if bias is not None:  # of finite numbers
            before, causal = bias[..., :S] + before, bias[..., S:] + causal
        parts = [_scores(rows, k.past, T, before, softcap), _scores(rows, k.recent, T, causal, softcap)]
        shares = _softmax(cat(parts, 3), sinks)
        y = _weigh_values(shares[..., :S], v.past) + _weigh_values(shares[..., S:], v.recent)
        return y.transpose(0, 2, 1, 3)
    return _attend_by_operators(q, k, v, _hidden_keys(k, T, start, mask, bias, window, blocks), scale, softcap, sinks)


def _rows(q: Symbol, G: int) -> Symbol:
    """q (B, T, H, K) -> (B, G, H / G T, K): the queries that share a key head are rows of one product."""
    B, T, H, K = q.shape
    if G == H:
        return q.transpose(0, 2, 1, 3)
    return q.reshape(B, T, G, H // G, K).transpose(0, 2, 3, 1, 4).reshape(B, G, H // G * T, K)


def _attend_by_operators(
    q: Symbol,
    k: Symbol,
    v: Symbol,
    hidden: Hidden | None,
    scale: float,
    softcap: float | None = None,
    sinks: Symbol | None = None,
) -> Symbol:
    rows = _rows(q, k.shape[2]) * scale
    scores = _scores(rows, k, q.shape[1], None if hidden is None else hidden.added, softcap)
    y = _weigh_values(_softmax(scores, sinks), v)
    if hidden is not None and hidden.seen is not None:
        y = y * hidden.seen
    return y.transpose(0, 2, 1, 3)


def _hides(mask: Symbol) -> Symbol:
    """True (a scalar) where a mask hides any key; all layers share it."""

    def make() -> Symbol:
        hidden = (~mask).to(INT)
        return hidden.new("ReduceMax", [hidden], (), keepdims=0) > 0

    return _memoise(mask, ("hides", mask.name), make)


def _attend_by_mask(q: Symbol, k: Symbol, v: Symbol, mask: Symbol, scale: float) -> Symbol:
    """Plain operators if the mask hides a key, else MultiHeadAttention.

    Reshapes are outside of the branches, where they copy nothing.
    """
    (B, T, H, _), width = q.shape, v.shape[3]
    plain = partial(_attend_by_operators, q, k, v, _hidden_keys(k, T, None, mask, None, None), scale)
    fused = partial(_multi_head_attention, [_merge_heads(x) for x in (q, k, v)], H, scale)
    y = q.graph.choose(_hides(mask).name, plain, fused)
    return y.new("Reshape", [y, np.array([0, 0, H * width])], (B, T, H * width)).reshape(B, T, H, width)


def _multi_head_attention(flat: list[Symbol], H: int, scale: float) -> Symbol:
    """MultiHeadAttention of q, k and v (B, T or S, H K) -> (B, T, H K).

    It holds no scores of all tokens: 0.94 of plain operators' time without a mask (512 tokens, one thread).
    """
    shape = (*flat[0].shape[:2], flat[2].shape[2])
    return flat[0].new("MultiHeadAttention", flat, shape, domain=MICROSOFT, num_heads=H, scale=float(scale))


def _merge_heads(x: Symbol) -> Symbol:
    return x.reshape(*x.shape[:2], x.shape[2] * x.shape[3])


def relative_bias(table: Symbol, T: int, k: Symbol, start: Symbol | None) -> Symbol:
    at, M = arange(T, k)[None], int(table.shape[0]) // 2
    at = at if start is None else start[:, None] + at
    if isinstance(k, CachedKeys):
        past, own = arange(k.past.shape[1], k)[None], at[:, None]  # (1, S), (B, 1, T)
        parts = [past[None] - at[:, :, None], own - at[:, :, None]]
        distance = cat(parts, 2)
    else:
        distance = arange(k.shape[1], k)[None, None] - at[:, :, None]  # (B or 1, T, S)
    index = distance.new("Clip", [distance, np.array(-M), np.array(M)], distance.shape) + M
    return embedding(index, table, "distances").transpose(0, 3, 1, 2)


def _in_place(
    q: Symbol,
    k: CachedKeys,
    v: CachedValues,
    start: Symbol,
    window: int | None,
    scale: float,
    sinks: Symbol | None,
) -> Symbol:
    """GroupQueryAttention, for one row or one token: it writes new keys and values to the cache if the memory of past
    and present is the same.

    With a sink, of which softmax makes 0, and a scale of 1 it multiplies one row by MLAS's vector kernels, which takes
    0.6 of the time that its flash attention takes (4,096 tokens of context; AVX2).
    """
    B, T, H, K = q.shape
    graph, memo, key = q.graph, q.graph.memo, ("lengths", start.name, text_of(T))
    if key not in memo:
        most = start.new("ReduceMax", [start, np.array([0])], (1,), keepdims=1)
        memo[key] = [x.new("Cast", [x], x.shape, INT32, to=INT32) for x in (start + (T - 1), most + T)]
    queries, *flat = (x.reshape(B, T, x.shape[2] * K) for x in (q, k.recent, v.recent))
    lengths = [x.name for x in memo[key]]
    sink = graph.store(np.full(H, MIN_FLOAT)) if sinks is None else sinks.name
    names = graph.node(
        "GroupQueryAttention",
        [(queries * scale).name, *(x.name for x in flat), k.stored.name, v.stored.name, *lengths, *[""] * 4, sink],
        3,
        MICROSOFT,
        num_heads=H,
        kv_num_heads=k.recent.shape[2],
        scale=1.0,
        local_window_size=-1 if window is None else window + counts_own_position(),
    )
    for one, name in zip((k, v), names[1:], strict=True):
        one.present = Symbol(graph, name, one.stored.shape, one.dtype)
    return Symbol(graph, names[0], (B, T, H * K), q.dtype).reshape(B, T, H, K)


def _scores(rows: Symbol, k: Symbol, T: int, added: Symbol | None, softcap: float | None = None) -> Symbol:
    """rows (B, G, R T, K), k (B, S, G, K) -> (B, H, T, S); softcap holds the products within -softcap ... softcap."""
    (B, G, many, _), S = rows.shape, k.shape[1]
    scores = rows.new("MatMul", [rows, k.transpose(0, 2, 3, 1)], (B, G, many, S)).reshape(B, G * many // T, T, S)
    if softcap is not None:
        scores = scores * (1 / softcap)
        scores = scores.new("Tanh", [scores], scores.shape) * softcap
    return scores if added is None else scores + added


def _softmax(x: Symbol, sinks: Symbol | None = None) -> Symbol:
    """The softmax of scores (B, H, T, S), of which `ops.attention`'s sinks (H,) have a part."""
    if sinks is None:
        return x.new("Softmax", [x], x.shape, axis=-1)
    S = x.shape[3]
    column = x[..., :1] * 0.0 + sinks.reshape(x.shape[1], 1, 1)
    return _softmax(cat([x, column], 3))[..., :S]


def _weigh_values(shares: Symbol, v: Symbol) -> Symbol:
    """shares (B, H, T, S), v (B, S, G, K) -> (B, H, T, K)."""
    (B, H, T, S), (G, K) = shares.shape, v.shape[2:]
    rows = shares.reshape(B, G, H // G * T, S)
    return v.new("MatMul", [rows, v.transpose(0, 2, 1, 3)], (*rows.shape[:3], K)).reshape(B, H, T, K)


def _memoise(k: Symbol, key: tuple[object, ...], make: Callable[[], Symbol | Hidden | tuple[Symbol, Symbol]]):
    """A value that all layers share, made once."""
    memo = k.graph.memo
    if key not in memo:
        memo[key] = make()
    return memo[key]


def _of_cache(k: CachedKeys, T: int, start: Symbol, window: int | None, blocks: Symbol | None) -> tuple[Symbol, Symbol]:
    """The arrays added to the scores of cached keys (B, 1, 1, S) and of new ones (B or 1, 1, T, T)."""

    def make() -> tuple[Symbol, Symbol]:
        at, keys = arange(T, k), arange(k.past.shape[1], k)
        before, causal = (keys[None] < start[:, None])[:, None, None], (at[None] <= at[:, None])[None, None]
        if blocks is not None:
            causal = (blocks[:, None] <= blocks[:, :, None])[:, None]
        if window is not None:
            first = start[:, None] + at - window  # (B, T)
            before = before & (keys >= first[:, :, None])[:, None]
            causal = causal & (at[None] + window >= at[:, None])[None, None]
        return _mask_to_bias(before), _mask_to_bias(causal)

    names = start.name, None if blocks is None else blocks.name
    return _memoise(k, ("cache", *names, window, text_of(T), text_of(k.past.shape[1])), make)


def _mask_to_bias(visible: Symbol) -> Symbol:
    return visible.new("Where", [visible, np.zeros((), np.float32), MIN_FLOAT], visible.shape, FLOAT)


def _hidden_keys(
    k: Symbol,
    T: int,
    start: Symbol | None,
    mask: Symbol | None,
    bias: Symbol | None,
    window: int | None,
    blocks: Symbol | None = None,
) -> Hidden | None:
    if start is None and mask is None and bias is None and window is None:
        return None
    names = tuple(None if x is None else x.name for x in (start, mask, bias, blocks))
    key = ("hidden", *names, window, text_of(T), text_of(k.shape[1]))
    return _memoise(k, key, lambda: _combine_masks(k, T, start, mask, bias, window, blocks))


def _combine_masks(
    k: Symbol,
    T: int,
    start: Symbol | None,
    mask: Symbol | None,
    bias: Symbol | None,
    window: int | None,
    blocks: Symbol | None,
) -> Hidden:
    visible = None
    if start is not None or window is not None:
        query = last = arange(T, k)[None] if start is None else start[:, None] + arange(T, k)
        if start is not None and blocks is not None:
            seen = (blocks[:, None] <= blocks[:, :, None]).to(INT)
            last = start[:, None] + seen.new("ReduceSum", [seen, np.array([-1])], seen.shape[:2], keepdims=0) - 1
        query, last = query[:, None, :, None], last[:, None, :, None]  # (B or 1, 1, T, 1)
        keys = arange(k.shape[1], k)  # (S,)
        visible = keys <= (last if start is not None else query + window)  # (B or 1, 1, T, S)
        if window is not None:
            visible = visible & (keys >= query - window)
    if mask is not None:
        keys = mask[:, None, None]
        visible = keys if visible is None else visible & keys
    added = None if visible is None else _mask_to_bias(visible)
    if bias is not None:
        if bias.is_constant and np.isfinite(bias.value).all():
            if visible is None:
                return Hidden(bias, None)
        else:
            bias = bias.new("Max", [bias, MIN_FLOAT], bias.shape)
        if added is not None:
            bias = added + bias
            bias = bias.new("Max", [bias, MIN_FLOAT], bias.shape)
        added = bias
    assert added is not None
    if mask is None and bias is None and window is None:  # causal: every query sees at least the first key
        return Hidden(added, None)
    top = added.new("ReduceMax", [added, np.array([-1])], (*added.shape[:-1], 1), keepdims=1)
    return Hidden(added, (top > float(MIN_FLOAT) / 2).to(added.dtype))


def channel_attention(q: Symbol, k: Symbol, v: Symbol) -> Symbol:
    B, T, H, K = q.shape
    rows, values = q.transpose(0, 2, 3, 1), v.transpose(0, 2, 1, 3)
    last = arange(T, q)[T - 1 :]  # T - 1, where T may be symbolic
    length = last.new("Cast", [last], (1,), FLOAT, to=FLOAT) + 1.0
    scores = rows.new("MatMul", [rows, k.transpose(0, 2, 1, 3)], (B, H, K, K)) / length.new("Sqrt", [length], (1,))
    weights = softmax(scores).transpose(0, 1, 3, 2)
    return values.new("MatMul", [values, weights], (B, H, T, K)).transpose(0, 2, 1, 3)
