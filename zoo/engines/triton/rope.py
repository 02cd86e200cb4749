"""Rotary positions (Su et al. 2021, https://arxiv.org/abs/2104.09864), alone and with the write to the cache.

Shapes: B rows, T tokens, S places in the cache, H query heads, G key heads, K head size.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import unit_last
from .configs import table
from .rows import ceil_div, launch


class RopeConfig(NamedTuple):
    """A program rotates `heads` heads of one token."""

    heads: int
    warps: int


# By head size, up to the number: eight elements a lane, which are 128 bits of the narrow types.
_EIGHT = {64: RopeConfig(8, 1), 128: RopeConfig(8, 2), 256: RopeConfig(8, 4)}
_WIDE_WAVES = {64: RopeConfig(16, 1), 128: RopeConfig(8, 1), 256: RopeConfig(8, 2)}  # 64 lanes a warp


def rope_config(x: Tensor) -> RopeConfig:
    """The config for x (B, T, H, K)."""
    sizes = _WIDE_WAVES if table(x) == "gfx942" else _EIGHT
    config = next((sizes[most] for most in sizes if x.shape[3] <= most), sizes[max(sizes)])
    return config._replace(heads=min(config.heads, triton.next_power_of_2(x.shape[2])))


def rope_candidates(x: Tensor) -> list[RopeConfig]:
    """Configs that may be fastest for x (B, T, H, K), `rope_config` first."""
    others = (RopeConfig(*c) for c in product((1, 2, 4, 8, 16, 32), (1, 2, 4, 8)) if c[0] >= c[1])
    return list(dict.fromkeys((rope_config(x), *others)))


def rope(x: Tensor, cos: Tensor, sin: Tensor, *, config: RopeConfig | None = None) -> Tensor:
    """`zoo.ops.rope`: x (B, T, H, K), cos and sin (B or 1, T, K / 2) in float32 -> (B, T, H, K), rounded once."""
    B, T, H, K = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    x = unit_last(x)
    cos, sin = cos.contiguous(), sin.contiguous()
    config = config or rope_config(x)
    blocks = ceil_div(H, config.heads)
    launch(
        _rope_kernel, B * T * blocks, x, cos, sin, out,
        *x.stride()[:3],
        _row_stride(cos), T, H, blocks,
        HALF=K // 2, PADDED=triton.next_power_of_2(K // 2), HEADS=config.heads, warps=config.warps,
    )  # fmt: skip
    return out


def rope_write_(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cos: Tensor,
    sin: Tensor,
    keys: Tensor,
    values: Tensor,
    start: Tensor,
    *,
    config: RopeConfig | None = None,
) -> Tensor:
    """Rotate q and k; the rotated k, and v, go to places start[b], start[b] + 1, ... of the cache's row b.

    q (B, T, H, K), k and v (B, T, G, K): views of one array or arrays of their own; cos and sin (B or 1, T, K / 2) in
    float32; keys and values (B, S, G, K), written to; start (B,) integers -> the rotated q (B, T, H, K).
    Tokens beyond the S places are not written.
    """
    B, T, H, K = q.shape
    S, G = keys.shape[1:3]
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    q, k, v = (unit_last(x) for x in (q, k, v))
    cos, sin = cos.contiguous(), sin.contiguous()
    config = config or rope_config(q)
    q_blocks, k_blocks = ceil_div(H, config.heads), ceil_div(G, config.heads)
    launch(
        _rope_write_kernel, B * T * (q_blocks + 2 * k_blocks), q, k, v, cos, sin, out, keys, values, start,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *keys.stride()[:3], *values.stride()[:3],
        _row_stride(cos), T, S, H, G, q_blocks, k_blocks,
        HALF=K // 2, PADDED=triton.next_power_of_2(K // 2), HEADS=config.heads, warps=config.warps,
    )  # fmt: skip
    return out


def _row_stride(cos: Tensor) -> int:
    """The stride from the angles of one row to those of the next; 0 if all rows share them."""
    return 0 if len(cos) == 1 else cos.stride(0)


@triton.jit(do_not_specialize=["T", "H", "blocks"])
def _rope_kernel(
    x, cos, sin, out,
    x_b, x_t, x_h, cos_b,
    T, H, blocks,
    HALF: tl.constexpr, PADDED: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0) // blocks
    b = (token // T).to(tl.int64)
    t = (token % T).to(tl.int64)
    first = tl.program_id(0) % blocks * HEADS
    angles = b * cos_b + t * HALF
    _rotate(
        x + b * x_b + t * x_t, x_h, out + token.to(tl.int64) * (H * 2 * HALF), 2 * HALF, cos + angles, sin + angles,
        first, H, HALF, PADDED, HEADS,
    )  # fmt: skip


@triton.jit(do_not_specialize=["T", "S", "H", "G", "q_blocks", "k_blocks"])
def _rope_write_kernel(
    q, k, v, cos, sin, out, keys, values, start,
    q_b, q_t, q_h, k_b, k_t, k_g, v_b, v_t, v_g, keys_b, keys_s, keys_g, values_b, values_s, values_g, cos_b,
    T, S, H, G, q_blocks, k_blocks,
    HALF: tl.constexpr, PADDED: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    """A token's first q_blocks programs rotate q, the next k_blocks rotate k, the last k_blocks copy v."""
    blocks = q_blocks + 2 * k_blocks
    token = tl.program_id(0) // blocks
    b = (token // T).to(tl.int64)
    t = (token % T).to(tl.int64)
    block = tl.program_id(0) % blocks
    angles = b * cos_b + t * HALF
    if block < q_blocks:
        _rotate(
            q + b * q_b + t * q_t, q_h, out + token.to(tl.int64) * (H * 2 * HALF), 2 * HALF, cos + angles,
            sin + angles, block * HEADS, H, HALF, PADDED, HEADS,
        )  # fmt: skip
    else:
        place = tl.load(start + b).to(tl.int64) + t
        if (place >= 0) & (place < S):
            if block < q_blocks + k_blocks:
                _rotate(
                    k + b * k_b + t * k_t, k_g, keys + b * keys_b + place * keys_s, keys_g, cos + angles,
                    sin + angles, (block - q_blocks) * HEADS, G, HALF, PADDED, HEADS,
                )  # fmt: skip
            else:
                _copy(
                    v + b * v_b + t * v_t, v_g, values + b * values_b + place * values_s, values_g,
                    (block - q_blocks - k_blocks) * HEADS, G, HALF, PADDED, HEADS,
                )  # fmt: skip


@triton.jit
def _rotate(
    source,
    source_h,
    target,
    target_h,
    cos, sin, first, heads,
    HALF: tl.constexpr, PADDED: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    """Rotate HEADS heads of one token, from `first`: features i and i + HALF by the i-th angle."""
    h = first + tl.arange(0, HEADS)[:, None]
    i = tl.arange(0, PADDED)[None, :]
    inside = (h < heads) & (i < HALF)
    c = tl.load(cos + i, mask=i < HALF, other=0.0).to(tl.float32)
    s = tl.load(sin + i, mask=i < HALF, other=0.0).to(tl.float32)
    source += h * source_h + i
    target += h * target_h + i
    x = tl.load(source, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(source + HALF, mask=inside, other=0.0).to(tl.float32)
    tl.store(target, (x * c - y * s).to(target.dtype.element_ty), mask=inside)
    tl.store(target + HALF, (y * c + x * s).to(target.dtype.element_ty), mask=inside)


@triton.jit
def _copy(
    source, source_h, target, target_h, first, heads, HALF: tl.constexpr, PADDED: tl.constexpr, HEADS: tl.constexpr
):
    """Copy HEADS heads of one token, from `first`."""
    h = first + tl.arange(0, HEADS)[:, None]
    i = tl.arange(0, PADDED)[None, :]
    inside = (h < heads) & (i < HALF)
    source += h * source_h + i
    target += h * target_h + i
    tl.store(target, tl.load(source, mask=inside, other=0.0).to(target.dtype.element_ty), mask=inside)
    tl.store(target + HALF, tl.load(source + HALF, mask=inside, other=0.0).to(target.dtype.element_ty), mask=inside)
