"""Attention: zoo's kernels where they run, torch's own elsewhere."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .kernels import kernel, usable

CHUNKS = 1 << 14  # queries of attention within a window whose keys are copied at a time


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    start: Tensor | None,
    mask: Tensor | None,
    bias: Tensor | None,
    window: int | None,
    scale: float,
    dropout: float = 0.0,
    blocks: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    if not dropout and blocks is None and softcap is None and sinks is None and usable(q, k, v, bias):
        tiled = kernel("attention")
        decode = kernel("decode")
        if q.shape[-1] <= tiled.MAX_HEAD_SIZE:
            if bias is None and decode.suits(q, k):
                return decode.decode_attention(q, k, v, start, mask, scale, window=window)
            return tiled.attention(q, k, v, start, mask, bias, scale, window=window)
    return _eager(q, k, v, start, mask, bias, window, scale, dropout, blocks, softcap, sinks)


def banded_attention(chunks: Any) -> Tensor:
    return chunks.attend_in_parts(CHUNKS)


def accepts_full_cache(like: Tensor) -> bool:
    return usable(like)


def _eager(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    start: Tensor | None,
    mask: Tensor | None,
    bias: Tensor | None,
    window: int | None,
    scale: float,
    dropout: float,
    blocks: Tensor | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    B, T, H, _ = q.shape
    S, G = k.shape[1:3]
    q, k, v = (a.transpose(1, 2) for a in (q, k, v))
    allowed = None
    if mask is not None:
        allowed = mask[:, None, None, :].expand(B, 1, T, S)
    if start is not None or window is not None:
        at, keys = torch.arange(T, device=q.device)[None], torch.arange(S, device=q.device)
        ends = at if blocks is None else torch.searchsorted(blocks.contiguous(), blocks.contiguous(), right=True) - 1
        at, ends = (x if start is None else start[:, None] + x for x in (at, ends))
        at, ends = at[:, None, :, None], ends[:, None, :, None]
        seen = torch.ones_like(keys, dtype=torch.bool) if start is None else keys <= ends
        if window is not None:
            seen = seen & (keys >= at - window)
            if start is None:
                seen = seen & (keys <= at + window)
        allowed = seen if allowed is None else allowed & seen
    if bias is not None:
        bias = bias.to(q.dtype)
        bias = bias[(None,) * (4 - bias.ndim)]
        allowed = bias if allowed is None else torch.where(allowed, bias, float("-inf"))  # no larger than both
        allowed = allowed.expand(B, -1, T, S)
    if softcap is None and sinks is None:
        o = F.scaled_dot_product_attention(
            q, k, v, attn_mask=allowed, dropout_p=dropout, scale=scale, enable_gqa=H != G
        )
    else:
        o = _attend_by_products(q, k, v, allowed, scale, dropout, softcap, sinks)
    if allowed is not None:  # torch's kernels differ for a query without keys: make it zeros
        seen = allowed if allowed.dtype == torch.bool else allowed > float("-inf")
        o = o.masked_fill(~seen.any(-1, keepdim=True), 0.0)
    return o.transpose(1, 2)


def _attend_by_products(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    allowed: Tensor | None,
    scale: float,
    dropout: float,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    """Attention with a cap or sinks, which torch's own has not; a row without keys has some numbers."""
    (B, H, T, K), G = q.shape, k.shape[1]
    scores = (q.reshape(B, G, H // G * T, K) @ k.mT).reshape(B, H, T, -1).float() * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if allowed is not None:
        seen = allowed if allowed.dtype == torch.bool else allowed > float("-inf")
        scores = scores if allowed is seen else scores + torch.where(seen, allowed, 0.0)
        scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)  # -inf would make gradients NaN
    if sinks is not None:
        scores = torch.cat([scores, sinks.to(scores.dtype)[:, None, None].expand(B, H, T, 1)], -1)
    shares = torch.softmax(scores, -1)
    shares = F.dropout((shares if sinks is None else shares[..., :-1]).to(v.dtype), dropout)
    return (shares.reshape(B, G, H // G * T, -1) @ v).reshape(B, H, T, -1)


def relative_bias(table: Tensor, T: int, k: Tensor, start: Tensor | None) -> Tensor:
    S, M = k.shape[1], table.shape[0] // 2
    at = torch.arange(T, device=k.device)[None]
    at = (at if start is None else start[:, None] + at)[:, :, None]
    index = (torch.arange(S, device=k.device) - at).clamp(-M, M) + M  # (b, T, S)
    out = table.new_zeros(len(index), table.shape[1], T, -(-S // 16) * 16)[..., :S]
    return out + table.T[:, index].swapaxes(0, 1)


def gather_bias(table: Tensor, index: Tensor) -> Tensor:
    # Rows begin at multiples of 16 elements, so that kernels read them in whole vectors.
    index = index if index.ndim == 3 else index[None]
    (B, T, S), H = index.shape, table.shape[1]
    out = table.new_zeros(B, H, T, -(-S // 16) * 16)[..., :S]
    out[:] = table.T[:, index].movedim(1, 0)
    return out
