"""Attention of up to 32 queries to many keys, as a decoder needs it at every step.

Flash-Decoding (Dao et al. 2023, https://crfm.stanford.edu/2023/10/12/flashdecoding.html).  One tile holds the queries
of all heads that share keys, so that these are read once; the keys are split over programs, and a second kernel adds
their results.  The number of programs follows from shapes alone, and the keys that each of them reads from `start`, on
the device: a captured graph replays at any position.
Shapes: B rows, T queries, S keys, H query heads, G key heads, R = H / G, K head size, N splits.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...errors import UnsupportedError
from . import on_device, unit_last
from .attention import (
    LOG2E,
    as_bytes,
    check,
    padded_size,
    precision,
    row_starts,
    tile_of_rows,
    visible,
)
from .configs import DecodeConfig, decode_config, multiprocessors

MAX_QUERIES = 32  # T * R, which are rows of one tile
MAX_SPLITS = 64


def suits(q: Tensor, k: Tensor) -> bool:
    """True if `decode_attention`, not `attention`, is for q (B, T, H, K) and k (B, S, G, K)."""
    return q.shape[1] * (q.shape[2] // k.shape[2]) <= MAX_QUERIES


def splits(q: Tensor, k: Tensor, config: DecodeConfig) -> int:
    """The number of programs that share the keys of a head: two a multiprocessor, with at least two tiles each."""
    B, S, G, _ = k.shape
    wanted = 2 * multiprocessors(q) // (B * G)
    return max(1, min(wanted, -(-S // (2 * config.block_n)), MAX_SPLITS))


def decode_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    start: Tensor | None,
    mask: Tensor | None,
    scale: float,
    window: int | None = None,
    *,
    config: DecodeConfig | None = None,
) -> Tensor:
    """`zoo.ops.attention` without a bias, where T * R is at most 32: q (B, T, H, K), k and v (B, S, G, K) -> as q.

    k and v may be a whole cache: nothing past start + T is read.
    """
    check(q, k, v, scale)
    B, T, H, K = q.shape
    S, G = k.shape[1:3]
    if not suits(q, k):
        raise UnsupportedError(
            f"decode_attention takes up to {MAX_QUERIES} queries for a key head, found {T} x {H // G}"
        )
    out = torch.empty((B, T, H, K), dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    q, k, v = (unit_last(x) for x in (q, k, v))
    start, mask = row_starts(start, B), as_bytes(mask, B, S)
    config = config or decode_config(q, k)
    N = splits(q, k, config)
    partial, sums, tops = out, out, out
    if N > 1:
        partial = torch.empty((B, T, H, N, K), dtype=torch.float32, device=q.device)
        sums, tops = torch.empty((2, B, T, H, N), dtype=torch.float32, device=q.device)
    decode: Any = _decode
    reduce: Any = _reduce
    with on_device(q):
        decode[(B * G, N)](
            q, k, v, partial, sums, tops, start, mask,
            *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *((0, 0) if mask is None else mask.stride()),
            T, S, G, N, window or 0, scale * LOG2E.value,
            LOCAL=window is not None, R=H // G,
            ROWS=max(16, 1 << (T * (H // G) - 1).bit_length()), WHOLE=N == 1, K=K, KP=padded_size(K),
            BN=config.block_n, PRECISION=precision(q), num_warps=config.warps, num_stages=config.stages,
        )  # fmt: skip
        if N > 1:
            reduce[(B * T * H,)](
                partial, sums, tops, out, N, NP=1 << (N - 1).bit_length(), K=K, KP=padded_size(K), num_warps=4
            )
    return out


@triton.jit(do_not_specialize=["T", "S", "G", "N", "window"])
def _decode(
    q, k, v, partial, sums, tops, start, mask,
    q_b, q_t, q_h, k_b, k_s, k_g, v_b, v_s, v_g, mask_b, mask_s,
    T, S, G, N, window, scale,
    LOCAL: tl.constexpr,
    R: tl.constexpr, ROWS: tl.constexpr, WHOLE: tl.constexpr, K: tl.constexpr, KP: tl.constexpr, BN: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """One program for each split of the keys of each key head; WHOLE: there is one split, which writes the result."""
    b = (tl.program_id(0) // G).to(tl.int64)
    g = (tl.program_id(0) % G).to(tl.int64)
    split = tl.program_id(1)
    row = tl.arange(0, ROWS)
    t = row // R
    h = g * R + row % R
    held = row < T * R
    columns = tl.arange(0, KP)
    q_tile = q + b * q_b + (t.to(tl.int64) * q_t + h * q_h)[:, None] + columns[None, :]
    q_rows = tile_of_rows(q_tile, held, True, K, KP)

    at = 0
    hi = S
    if start is not None:
        at = tl.load(start + b).to(tl.int32)
        hi = tl.minimum(S, at + T)
    begin = 0
    if LOCAL:
        begin = tl.minimum(tl.maximum(at - window, 0), hi)
        hi = tl.minimum(hi, at + T + window)
    each = tl.cdiv(tl.cdiv(hi - begin, N), BN) * BN
    lo = tl.minimum(begin + split * each, hi)
    hi = tl.minimum(lo + each, hi)
    if mask is not None:
        mask += b * mask_b
        first, end, _ = visible(mask, mask_s, lo, hi, 1024)
        hi = tl.minimum(hi, end)
        lo = tl.minimum(first, hi)

    keys = tl.arange(0, BN)
    k_tile = k + b * k_b + g * k_g + (keys.to(tl.int64)[:, None] * k_s + columns[None, :])
    v_tile = v + b * v_b + g * v_g + (keys.to(tl.int64)[:, None] * v_s + columns[None, :])
    top = tl.full((ROWS,), -1.0e30, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, KP), tl.float32)
    for n0 in range(lo, hi, BN):
        n = n0 + keys
        n64 = tl.cast(n0, tl.int64)
        k_rows = tile_of_rows(k_tile + n64 * k_s, n < hi, True, K, KP)
        v_rows = tile_of_rows(v_tile + n64 * v_s, n < hi, True, K, KP)
        s = tl.dot(q_rows, tl.trans(k_rows), input_precision=PRECISION) * scale
        seen = (n < hi)[None, :]
        if start is not None:
            seen = seen & (n[None, :] <= (at + t)[:, None])
        if LOCAL:
            seen = seen & (tl.abs(n[None, :] - (at + t)[:, None]) <= window)
        if mask is not None:
            seen = seen & (tl.load(mask + n.to(tl.int64) * mask_s, mask=n < hi, other=0) != 0)[None, :]
        s = tl.where(seen, s, float("-inf"))
        highest = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - highest[:, None])
        shrink = tl.exp2(top - highest)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(v_rows.dtype), v_rows, acc * shrink[:, None], input_precision=PRECISION)
        top = highest

    place = (b * T + t) * (G * R) + h  # in (B, T, H)
    inside = held[:, None] & (columns < K)[None, :]
    if WHOLE:
        acc = acc / tl.where(total == 0, 1.0, total)[:, None]
        tl.store(partial + place[:, None] * K + columns[None, :], acc.to(partial.dtype.element_ty), mask=inside)
    else:
        place = place * N + split
        tl.store(sums + place, total, mask=held)
        tl.store(tops + place, top, mask=held)
        tl.store(partial + place[:, None] * K + columns[None, :], acc, mask=inside & (total > 0)[:, None])


@triton.jit(do_not_specialize=["N"])
def _reduce(partial, sums, tops, out, N, NP: tl.constexpr, K: tl.constexpr, KP: tl.constexpr):
    """One program for each query of each head: adds the N splits' sums, rescaled to the largest score of all."""
    place = tl.program_id(0).to(tl.int64)
    split = tl.arange(0, NP)
    columns = tl.arange(0, KP)
    total = tl.load(sums + place * N + split, mask=split < N, other=0.0)
    top = tl.load(tops + place * N + split, mask=split < N, other=-1.0e30)
    share = tl.exp2(top - tl.max(top, 0))
    written = (total > 0)[:, None] & (columns < K)[None, :]  # a split without keys leaves its part unwritten
    acc = tl.load(partial + (place * N + split)[:, None] * K + columns[None, :], mask=written, other=0.0)
    total = tl.sum(total * share, 0)
    acc = tl.sum(acc * share[:, None], 0) / tl.where(total == 0, 1.0, total)
    tl.store(out + place * K + columns, acc.to(out.dtype.element_ty), mask=columns < K)
