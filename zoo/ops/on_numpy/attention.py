"""Attention in blocks of heads whose scores stay in cache."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import threads
from .layout import MAX_UNPACKED_MNK, ROW_MAJOR_TOKENS, multipliable
from .scratch import result, scratch

SCORES = 1 << 18  # scores of a thread at a time
CHUNKS = 4096  # queries of attention within a window whose keys are copied at a time
# A sum of exponentials in this range is exact and has not overflowed, even if no maximum was subtracted.
MIN_EXP_SUM, MAX_EXP_SUM = 1e-28, 1e25


class Block(NamedTuple):
    """Rows b0 to b1 of the batch, key heads g0 to g1, queries t0 to t1, against the keys from `first` to `keys`."""

    b0: int
    b1: int
    g0: int
    g1: int
    t0: int
    t1: int
    first: int
    keys: int


def attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    start: np.ndarray | None,
    mask: np.ndarray | None,
    bias: np.ndarray | None,
    window: int | None,
    scale: float,
    blocks: np.ndarray | None = None,
    softcap: float | None = None,
    sinks: np.ndarray | None = None,
) -> np.ndarray:
    """sinks: (H,), or (G, H / G, T) for each query."""
    B, T, H, K = q.shape
    S, G = k.shape[1:3]
    r, dtype, few = H // G, q.dtype, B * T <= ROW_MAJOR_TOKENS
    if T == 1 < r and bias is None:  # heads that share keys become queries: the keys are read once
        if start is not None:
            at = np.asarray(start)[:, None]
            seen = np.arange(S) <= at
            if window is not None:
                seen &= np.arange(S) >= at - window
            mask = seen if mask is None else mask & seen
        elif window is not None:
            k, v, mask = k[:, : window + 1], v[:, : window + 1], None if mask is None else mask[:, : window + 1]
        more = {"softcap": softcap, "sinks": None if sinks is None else sinks.reshape(G, 1, r)}
        each = attention(q.reshape(B, G, r, K).swapaxes(1, 2), k, v, None, mask, None, None, scale, **more)
        return each.swapaxes(1, 2).reshape(B, 1, H, K)
    # Heads as (group, member): queries (B, G, r, K, T), keys (B, G, 1, S, K), values (B, G, 1, K, S).
    Q = q.reshape(B, T, G, r, K).transpose(0, 2, 3, 4, 1)
    KT = _matrices(k.transpose(0, 2, 1, 3))[:, :, None]
    V = _matrices(v.transpose(0, 2, 3, 1))[:, :, None]
    if few:
        out = result((B, T, H, K), dtype)
        Y = out.reshape(B, T, G, r, K).transpose(0, 2, 3, 1, 4)
    else:
        flat = result((H * K, B * T), dtype)
        out = flat.reshape(H, K, B, T).transpose(2, 3, 0, 1)
        Y = flat.reshape(G, r, K, B, T).transpose(3, 0, 1, 2, 4)
    if not out.size or not S:
        out[...] = 0
        return out
    lengths, mask = _lengths(B, S, T, start, mask)
    if sinks is not None:
        sinks = np.broadcast_to(sinks if sinks.ndim == 3 else sinks.reshape(G, r, 1), (G, r, T)).astype(dtype)
    start = start if T > 1 or window is not None else None
    plain = bias is None and mask is None and start is None and window is None
    cost = B * H * T * S * (2 + K / 20)
    ends = _ends(B, T, start, blocks)
    parts = _parts(B, G, r, T, S, K, lengths, start, ends, window, plain, threads.count(cost))
    # Heads that share keys become more queries: the keys are read once for all of them.
    folds = r > 1 and bias is None and not few

    def job(i: int) -> None:
        b0, b1, g0, g1, t0, t1, first, keys = block = parts[i]
        y = Y[b0:b1, g0:g1, :, t0:t1] if few else Y[b0:b1, g0:g1, :, :, t0:t1]
        keys -= first
        if keys <= 0:
            y[...] = 0
            return
        kt, vs = KT[b0:b1, g0:g1, :, first : first + keys], V[b0:b1, g0:g1, ..., first : first + keys]
        heads, queries = (1, r * (t1 - t0)) if folds else (r, t1 - t0)
        qs = scratch("work", (b1 - b0, g1 - g0, heads, K, queries), dtype)
        p = scratch("work 2", (b1 - b0, g1 - g0, heads, keys, queries), dtype)
        np.multiply(Q[b0:b1, g0:g1, ..., t0:t1], scale, out=_unfold(qs, r) if folds else qs)
        extra = None if plain else _extra(block, r, G, start, ends, mask, bias, window, dtype)
        if extra is not None and folds and extra.shape[-1] > 1:
            extra = np.tile(extra, r)
        ragged = (
            []
            if lengths is None
            else [(b - b0, max(lengths[b] - first, 0)) for b in range(b0, b1) if lengths[b] < first + keys]
        )
        ones = np.ones((1, keys), dtype)
        sink = None if sinks is None else sinks[g0:g1, :, t0:t1].reshape(g1 - g0, heads, 1, queries)

        _multiply(kt, qs, p, softcap)
        if extra is not None:
            np.add(p, extra, out=p)
        np.exp(p, out=p)
        for b, n in ragged:
            p[b, :, :, n:] = 0
        z = np.matmul(ones, p)
        if sink is not None:
            with np.errstate(over="ignore"):
                z += np.exp(sink)
        if z.min() > MIN_EXP_SUM and z.max() < MAX_EXP_SUM:
            np.reciprocal(z, out=z)
        else:
            _multiply(kt, qs, p, softcap)
            if extra is not None:
                np.add(p, extra, out=p)
            for b, n in ragged:
                p[b, :, :, n:] = -np.inf
            top = p.max(-2, keepdims=True)
            top = top if sink is None else np.maximum(top, sink)
            top = np.where(top == -np.inf, 0, top).astype(dtype)
            np.subtract(p, top, out=p)
            np.exp(p, out=p)
            z = np.matmul(ones, p)
            z = z if sink is None else z + np.exp(sink - top)
            z = np.where(z == 0, 0, 1 / z).astype(dtype)
        if few:
            np.matmul(p.swapaxes(-1, -2), vs.swapaxes(-1, -2), out=y)
            np.multiply(y, z.swapaxes(-1, -2), out=y)
        elif folds:
            each = np.matmul(vs, p, out=scratch("block", qs.shape, dtype))
            np.multiply(_unfold(each, r), _unfold(z, r), out=y)
        else:
            np.matmul(vs, p, out=y)
            np.multiply(y, z, out=y)

    threads.run(job, len(parts), cost)
    return out


def banded_attention(chunks: Any) -> np.ndarray:
    return chunks.attend_in_parts(CHUNKS)


def _multiply(kt: np.ndarray, qs: np.ndarray, out: np.ndarray, softcap: float | None) -> None:
    np.matmul(kt, qs, out=out)
    if softcap is not None:
        np.multiply(out, out.dtype.type(1 / softcap), out=out)
        np.tanh(out, out=out)
        np.multiply(out, out.dtype.type(softcap), out=out)


def _unfold(x: np.ndarray, r: int) -> np.ndarray:
    """(b, g, 1, rows, r t) as (b, g, r, rows, t): a view."""
    b, g, _, rows, columns = x.shape
    return x.reshape(b, g, rows, r, columns // r).transpose(0, 1, 3, 2, 4)


def _matrices(x: np.ndarray) -> np.ndarray:
    return x if multipliable(x) else np.ascontiguousarray(x)


def _lengths(
    B: int, S: int, T: int, start: np.ndarray | None, mask: np.ndarray | None
) -> tuple[list[int] | None, np.ndarray | None]:
    """The number of keys that each row sees at most (None: all), and the mask if that is not all it hides."""
    if mask is not None and mask.all():
        mask = None
    if mask is None and start is None:
        return None, None
    most = np.full(B, S)
    if start is not None:
        most = np.clip(np.asarray(start) + T, 0, S)
    if mask is not None:
        keys = np.arange(1, S + 1)
        last = (mask * keys).max(1)
        if (mask.sum(1) == last).all():  # padding on the right, the usual case
            mask = None
        most = np.minimum(most, last)
    return most.tolist(), mask


def _ends(B: int, T: int, start: np.ndarray | None, blocks: np.ndarray | None) -> np.ndarray | None:
    """The position (B, T) of the last key that each query of a causal row may see; None: they see all keys."""
    if start is None:
        return None
    own = np.arange(T)[None]
    if blocks is not None:
        own = np.stack([np.searchsorted(row, row, side="right") - 1 for row in np.broadcast_to(blocks, (B, T))])
    return np.asarray(start)[:, None] + own


def _parts(
    B: int,
    G: int,
    r: int,
    T: int,
    S: int,
    K: int,
    lengths: list[int] | None,
    start: np.ndarray | None,
    ends: np.ndarray | None,
    window: int | None,
    plain: bool,
    threads: int,
) -> list[Block]:
    """All scores in blocks of at most SCORES, enough of them to keep all threads busy."""
    queries = T
    if 64 * S * K <= MAX_UNPACKED_MNK < T * S * K:
        queries = -(-T // -(-T * S * K // MAX_UNPACKED_MNK))
    room = min(SCORES, -(-B * G * r * T * S // threads))
    rows = room // (G * r * T * S) if plain and queries == T else 0
    if rows:
        return [
            Block(b, min(b + rows, B), 0, G, 0, T, 0, S if lengths is None else max(lengths[b : b + rows]))
            for b in range(0, B, rows)
        ]
    if window is not None:  # a block of queries reads its own window alone
        queries = min(queries, max(window, 64))
    queries = max(1, min(queries, room // (r * S)))
    heads = max(1, min(G, room // (r * queries * S)))
    found = []
    for b in range(B):
        for t in range(0, T, queries):
            end = min(t + queries, T)
            keys = S if lengths is None else lengths[b]
            at, first = 0 if start is None else int(start[b]), 0
            if ends is not None:
                keys = min(keys, int(ends[b, end - 1]) + 1)
            if window is not None:
                first = max(at + t - window, 0)
                keys = keys if ends is not None else min(keys, at + end + window)
            found += [Block(b, b + 1, g, min(g + heads, G), t, end, first, keys) for g in range(0, G, heads)]
    return found


def _extra(
    block: Block,
    r: int,
    G: int,
    start: np.ndarray | None,
    ends: np.ndarray | None,
    mask: np.ndarray | None,
    bias: np.ndarray | None,
    window: int | None,
    dtype: np.dtype,
) -> np.ndarray:
    """The array added to the scores of a block of one row: (1 or g, 1 or r, keys, 1 or t)."""
    b, _, g0, g1, t0, t1, first, keys = block
    extra = np.zeros((1, 1, 1, 1), dtype)
    if bias is not None:
        bias = bias.reshape((1,) * (4 - bias.ndim) + bias.shape)
        one = bias[b if len(bias) > 1 else 0]  # (1 or H, 1 or T, 1 or S)
        if len(one) > 1:
            one = one[g0 * r : g1 * r]
        if one.shape[1] > 1:
            one = one[:, t0:t1]
        one = one[..., first:keys].swapaxes(1, 2)
        extra = one.reshape(-1, r, *one.shape[1:]) if len(one) > 1 else one[None]
    if mask is not None:
        extra = np.where(mask[b, first:keys, None], extra, -np.inf)
    if start is not None or window is not None:
        at, keys = np.arange(t0, t1) + (0 if start is None else int(start[b])), np.arange(first, keys)[:, None]
        seen = np.ones((keys.size, at.size), bool) if ends is None else keys <= ends[b, t0:t1]
        if window is not None:
            seen &= keys >= at - window
            if ends is None:
                seen &= keys <= at + window
        extra = np.where(seen, extra, -np.inf)
    return extra.astype(dtype, copy=False)
