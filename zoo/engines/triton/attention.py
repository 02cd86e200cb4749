"""Attention in one kernel: scores are made, exponentiated and multiplied by values a tile at a time, and never stored.

FlashAttention-2 (Dao 2023, https://arxiv.org/abs/2307.08691).  A program holds a tile of queries of one head and goes
through the keys that they may see.  Only the tiles at the edge of those keys are masked.
Shapes: B rows, T queries, S keys, H query heads, G key heads, K head size.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from ...errors import InputError, UnsupportedError
from . import on_device, unit_last
from .configs import AttentionConfig, attention_config

LOG2E = tl.constexpr(1.4426950408889634)
MAX_HEAD_SIZE = 256  # head size: the accumulator of a larger one does not fit in registers


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    start: Tensor | None,
    mask: Tensor | None,
    bias: Tensor | None,
    scale: float,
    window: int | None = None,
    *,
    config: AttentionConfig | None = None,
) -> Tensor:
    """`zoo.ops.attention`: q (B, T, H, K), k and v (B, S, G, K) -> (B, T, H, K), contiguous.

    k and v may be a whole cache: nothing past start + T is read, nor the keys that mask hides before the first
    visible one and after the last.
    A key whose score times log2(e) is under -1e30, which only a bias can cause, counts as hidden.
    The loads of bias are wide if its storage is padded to a multiple of 16 columns.
    """
    check(q, k, v, scale)
    B, T, H, K = q.shape
    S, G = k.shape[1:3]
    out = torch.empty((B, T, H, K), dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    q, k, v = (unit_last(x) for x in (q, k, v))
    start, mask = row_starts(start, B), as_bytes(mask, B, S)
    bias = None if bias is None else _pad_bias(bias.expand(B, H, T, S))
    config = config or attention_config(q, k, start is not None, bias is not None)
    tiles = -(-T // config.block_m)
    described: tuple[Any, Any] = (None, None)
    if config.tma and _describable(k) and _describable(v):
        tile = [1, config.block_n, 1, padded_size(K)]
        described = TensorDescriptor.from_tensor(k, tile), TensorDescriptor.from_tensor(v, tile)
    kernel: Any = _attention
    with on_device(q):
        kernel[(tiles * B * H,)](
            q, k, v, *described, out, start, mask, bias,
            *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *((0, 0) if mask is None else mask.stride()),
            *((0, 0, 0, 0) if bias is None else bias.stride()),
            T, S, H, H // G, tiles, S if bias is None else bias.shape[-1], window or 0, scale * LOG2E.value,
            CAUSAL=start is not None, LOCAL=window is not None, K=K, KP=padded_size(K),
            BM=config.block_m, BN=config.block_n, PRECISION=precision(q),
            num_warps=config.warps, num_stages=config.stages,
        )  # fmt: skip
    return out


def check(q: Tensor, k: Tensor, v: Tensor, scale: float) -> None:
    """Raise for arguments that the attention kernels do not take."""
    of_q, of_k, of_v = (tuple(x.shape) for x in (q, k, v))
    if of_k != of_v or of_q[::3] != of_k[::3] or of_q[2] % of_k[2]:
        found = f"q {of_q}, k {of_k} and v {of_v}"
        raise InputError(f"attention of {found}: expected (B, T, H, K) and twice (B, S, G, K), H a multiple of G")
    if not q.dtype == k.dtype == v.dtype:
        raise InputError(f"attention of {q.dtype}, {k.dtype} and {v.dtype}: q, k and v must have one dtype")
    if q.shape[-1] > MAX_HEAD_SIZE:
        raise UnsupportedError(f"the attention kernels take head sizes up to {MAX_HEAD_SIZE}, found {q.shape[-1]}")
    if scale <= 0:
        raise InputError(f"the scale of attention must be positive, found {scale}")


def row_starts(start: Tensor | None, B: int) -> Tensor | None:
    """start (B,), contiguous."""
    return None if start is None else start.expand(B).contiguous()


def as_bytes(mask: Tensor | None, B: int, S: int) -> Tensor | None:
    """mask (B, S) as bytes that are 0 or 1, without a copy."""
    return None if mask is None else mask.to(torch.bool).expand(B, S).view(torch.uint8)


def padded_size(K: int) -> int:
    """The head size in tiles: a power of two, at least 16, which tensor cores need."""
    return max(16, 1 << (K - 1).bit_length())


def precision(q: Tensor) -> str:
    """The precision of float32 products: exact, unless the user lets torch round their factors to TF32."""
    return "tf32" if q.dtype == torch.float32 and torch.backends.cuda.matmul.fp32_precision == "tf32" else "ieee"


def _pad_bias(bias: Tensor) -> Tensor:
    """bias (B, H, T, S), widened to a multiple of 16 columns if its storage has them."""
    width = -(-bias.shape[-1] // 16) * 16
    if width == bias.shape[-1] or bias.stride(-1) != 1:
        return bias
    last = sum((n - 1) * step for n, step in zip(bias.shape[:3], bias.stride(), strict=False))
    if (bias.storage_offset() + last + width) * bias.element_size() > bias.untyped_storage().nbytes():
        return bias
    return bias.as_strided((*bias.shape[:3], width), bias.stride())


def _describable(x: Tensor) -> bool:
    """True if the tensor memory accelerator takes x: its address and its strides are multiples of 16 bytes."""
    steps = [step * x.element_size() for step in x.stride()[:3]]
    return x.numel() > 0 and x.data_ptr() % 16 == 0 and all(step > 0 and step % 16 == 0 for step in steps)


@triton.jit
def visible(mask, stride, lo, hi, BLOCK: tl.constexpr):
    """The first of keys lo to hi that a row's mask shows, one past the last, and their count."""
    first = tl.full((BLOCK,), 0x7FFFFFFF, tl.int32)
    last = tl.full((BLOCK,), -1, tl.int32)
    count = tl.zeros((BLOCK,), tl.int32)
    for n0 in range(lo, hi, BLOCK):
        n = n0 + tl.arange(0, BLOCK)
        shown = tl.load(mask + n.to(tl.int64) * stride, mask=n < hi, other=0) != 0
        first = tl.minimum(first, tl.where(shown, n, 0x7FFFFFFF))
        last = tl.maximum(last, tl.where(shown, n, -1))
        count += shown.to(tl.int32)
    return tl.min(first, 0), tl.max(last, 0) + 1, tl.sum(count, 0)


@triton.jit
def tile_of_rows(pointers, inside, MASKED: tl.constexpr, K: tl.constexpr, KP: tl.constexpr):
    """Load rows of K elements, padded to KP; rows that are not inside are zeros."""
    columns = tl.arange(0, KP)
    if MASKED and K == KP:
        x = tl.load(pointers, mask=inside[:, None], other=0.0)
    elif MASKED:
        x = tl.load(pointers, mask=inside[:, None] & (columns < K)[None, :], other=0.0)
    elif K == KP:
        x = tl.load(pointers)
    else:
        x = tl.load(pointers, mask=(columns < K)[None, :], other=0.0)
    return x


@triton.jit
def _go_through(
    acc, total, top, q, k, v,
    described_k, described_v,
    mask, bias, b, g, rows, at,
    k_s, v_s, mask_s, bias_t, bias_s,
    T, width, window, scale, lo, hi,
    EDGE: tl.constexpr, CAUSAL: tl.constexpr, LOCAL: tl.constexpr, K: tl.constexpr, KP: tl.constexpr, BN: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Keys lo to hi of row b and key head g, a tile at a time; those of an EDGE may be hidden, or end within a tile.

    acc (BM, KP), total (BM,): sums of exp2(score - top) times values, and alone; top (BM,) the largest score so far.
    Scores are in units of ln 2.  In the interior without a bias they are scaled within the exponent's own product.
    """
    columns = tl.arange(0, KP)
    keys = tl.arange(0, BN)
    k_tile = keys.to(tl.int64)[:, None] * k_s + columns[None, :]
    v_tile = keys.to(tl.int64)[:, None] * v_s + columns[None, :]
    for n0 in range(lo, hi, BN):
        n = n0 + keys
        n64 = tl.cast(n0, tl.int64)
        if EDGE or described_k is None:
            k_rows = tile_of_rows(k + n64 * k_s + k_tile, n < hi, EDGE, K, KP)
        else:
            k_rows = described_k.load([b, n0, g, 0]).reshape(BN, KP)
        s = tl.dot(q, tl.trans(k_rows), input_precision=PRECISION)
        if EDGE or bias is not None:
            s = s * scale
        if bias is not None:
            pointers = bias + n64 * bias_s + (rows.to(tl.int64)[:, None] * bias_t + keys.to(tl.int64)[None, :] * bias_s)
            if EDGE:  # masked by the width, known at launch, and not by hi, which may be loaded: the loads stay wide
                added = tl.load(pointers, mask=(rows < T)[:, None] & (n < width)[None, :], other=0.0)
            else:
                added = tl.load(pointers, mask=(rows < T)[:, None], other=0.0)
            s += added.to(tl.float32) * LOG2E
        if EDGE:
            seen = (n < hi)[None, :]
            if CAUSAL:
                seen = seen & (n[None, :] <= (at + rows)[:, None])
            if LOCAL:
                seen = seen & (tl.abs(n[None, :] - (at + rows)[:, None]) <= window)
            if mask is not None:
                shown = tl.load(mask + n.to(tl.int64) * mask_s, mask=n < hi, other=0)
                seen = seen & (shown != 0)[None, :]
            s = tl.where(seen, s, float("-inf"))
        if EDGE or bias is not None:
            highest = tl.maximum(top, tl.max(s, 1))
            p = tl.exp2(s - highest[:, None])
        else:
            highest = tl.maximum(top, tl.max(s, 1) * scale)
            p = tl.exp2(s * scale - highest[:, None])
        shrink = tl.exp2(top - highest)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None]
        if EDGE or described_v is None:
            v_rows = tile_of_rows(v + n64 * v_s + v_tile, n < hi, EDGE, K, KP)
        else:
            v_rows = described_v.load([b, n0, g, 0]).reshape(BN, KP)
        acc = tl.dot(p.to(v_rows.dtype), v_rows, acc, input_precision=PRECISION)
        top = highest
    return acc, total, top


@triton.jit(do_not_specialize=["T", "S", "H", "R", "tiles", "window"])
def _attention(
    q, k, v,
    described_k, described_v,
    out, start, mask, bias,
    q_b, q_t, q_h, k_b, k_s, k_g, v_b, v_s, v_g, mask_b, mask_s, bias_b, bias_h, bias_t, bias_s,
    T, S, H, R, tiles, width, window, scale,
    CAUSAL: tl.constexpr, LOCAL: tl.constexpr, K: tl.constexpr, KP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """One program for each tile of BM queries of each head, all on the grid's first axis: the others are short."""
    tile = tl.program_id(0) % tiles
    if CAUSAL:
        tile = tiles - 1 - tile  # those with the most keys first, so that none is left alone at the end
    bh = tl.program_id(0) // tiles
    b = (bh // H).to(tl.int64)
    h = (bh % H).to(tl.int64)
    g = h // R
    rows = tile * BM + tl.arange(0, BM)
    columns = tl.arange(0, KP)
    rows64 = rows.to(tl.int64)[:, None]
    q_rows = tile_of_rows(q + b * q_b + h * q_h + rows64 * q_t + columns[None, :], rows < T, True, K, KP)

    at = 0
    lo = 0
    hi = S
    sure = S  # keys before this one are seen by the whole tile
    if CAUSAL:
        at = tl.load(start + b).to(tl.int32)
        hi = tl.minimum(S, at + tl.minimum(T, (tile + 1) * BM))
        sure = tl.minimum(hi, at + tile * BM + 1)
    if LOCAL:  # every tile is an edge: rows begin and end at different keys
        lo = tl.maximum(at + tile * BM - window, 0)
        hi = tl.minimum(hi, at + tl.minimum(T, (tile + 1) * BM) + window)
        lo = tl.minimum(lo, hi)
        sure = 0
    if mask is not None:
        mask += b * mask_b
        first, past, count = visible(mask, mask_s, lo, hi, 1024)
        hi = tl.minimum(hi, past)
        lo = tl.minimum(tl.maximum(first, lo), hi)
        sure = tl.where(count == past - first, tl.minimum(sure, hi), 0)
    if bias is not None:
        bias += b * bias_b + h * bias_h
        if (
            mask is not None or LOCAL
        ):  # tiles begin where loads of bias are aligned: the first of them may have hidden keys
            sure = tl.where(lo % BN == 0, sure, 0)
            lo = lo // BN * BN
    interior = lo + tl.maximum(sure - lo, 0) // BN * BN

    k += b * k_b + g * k_g
    v += b * v_b + g * v_g
    top = tl.full((BM,), -1.0e30, tl.float32)  # finite: without a key exp2(-inf - top) is 0, and so is the result
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, KP), tl.float32)
    end = interior
    for EDGE in tl.static_range(2):  # the interior, and then the edge
        acc, total, top = _go_through(
            acc, total, top, q_rows, k, v, described_k, described_v, mask, bias, bh // H, bh % H // R, rows, at, k_s,
            v_s, mask_s, bias_t, bias_s, T, width, window, scale, lo, end, EDGE, CAUSAL, LOCAL, K, KP, BN, PRECISION,
        )  # fmt: skip
        lo = interior
        end = hi
    acc = acc / tl.where(total == 0, 1.0, total)[:, None]
    pointers = out + ((b * T + rows64) * H + h) * K + columns[None, :]
    inside = (rows < T)[:, None]
    if K != KP:
        inside = inside & (columns < K)[None, :]
    tl.store(pointers, acc.to(out.dtype.element_ty), mask=inside)
