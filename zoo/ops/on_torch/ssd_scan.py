"""Mamba2's state space as products of matrices, BLOCK tokens at a time, in float32.

Shapes: B rows, T tokens, S tokens before them, H heads, G groups of R heads that share keys, N and P features of keys
and values; here groups come first.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

BLOCK = 64  # tokens whose scores are computed; those before them are in a state


def ssd_scan(q: Tensor, k: Tensor, v: Tensor, decay: Tensor, past: Any) -> Tensor:
    (B, T, H, P), (G, N), dtype = v.shape, k.shape[2:], v.dtype
    q, k, v, decay = (x if x.dtype == torch.float64 else x.float() for x in (q, k, v, decay))
    q, k = q.transpose(1, 2), k.transpose(1, 2)  # (B, G, T, N)
    v, decay = _by_groups(v, G), decay.transpose(1, 2).reshape(B, G, H // G, T)
    state = keys = left = None  # state: (B, G, N, R, P)
    values = v  # replaced where there are tokens before
    if past is not None and past.keys.shape[1]:
        keys, values = past.keys.to(v.dtype).permute(0, 2, 3, 1), _by_groups(past.values.to(v.dtype), G)
        left = _remainders(past, G, v.dtype)
        if T > BLOCK:
            state = _state(keys, values, left)
    found: list[Tensor] = []
    for begin in range(0, T, BLOCK):
        own = slice(begin, begin + BLOCK)
        some_q, some_k, some_v = q[:, :, own], k[:, :, own], v[:, :, :, own]
        some = decay[..., own]
        n, kept = some.shape[-1], some.cumsum(-1).exp()[..., None]
        upper = torch.ones(n, n, dtype=torch.bool, device=q.device).triu()
        # Sums of their own for each pair: differences of sums from the block's first token on would lose digits.
        between = some[..., None].expand(*some.shape, n).masked_fill(upper, 0).cumsum(-2)
        pairs = between.exp().masked_fill(upper.triu(1), 0)
        out = (some_q @ some_k.transpose(2, 3))[:, :, None] * pairs @ some_v
        if state is not None:
            seen = (some_q @ state.reshape(B, G, N, -1)).reshape(B, G, n, H // G, P)
            out = out + seen.transpose(2, 3) * kept
        elif keys is not None and left is not None:
            out = out + (some_q @ keys)[:, :, None] * left @ values * kept
        found.append(out)
        if begin + BLOCK < T:
            added = _state(some_k.transpose(2, 3), some_v, pairs[..., -1:, :])
            state = added if state is None else state * kept[:, :, None, :, -1] + added
    return torch.cat(found, 3).reshape(B, H, T, P).transpose(1, 2).to(dtype)


def ssd_state(past: Any) -> Tensor:
    (B, _, G, N), (H, P), dtype = past.keys.shape, past.values.shape[2:], past.values.dtype
    keys, values = (x if x.dtype == torch.float64 else x.float() for x in (past.keys, past.values))
    state = _state(keys.permute(0, 2, 3, 1), _by_groups(values, G), _remainders(past, G, values.dtype))
    return state.transpose(1, 2).reshape(B, N, H, P).to(dtype)


def _by_groups(x: Tensor, groups: int) -> Tensor:
    """(B, T, H, P) -> (B, G, R, T, P)."""
    B, T, H, P = x.shape
    return x.reshape(B, T, groups, H // groups, P).permute(0, 2, 3, 1, 4)


def _remainders(past: Any, groups: int, dtype: torch.dtype) -> Tensor:
    """What is left of each token's part of the state after the last of them: (B, G, R, 1, S)."""
    (B, S, H), there = past.decay.shape, past.there[:, None]
    decay = past.decay.to(dtype).transpose(1, 2).masked_fill(~there, 0)
    after = decay.flip(-1).cumsum(-1).flip(-1) - decay
    return after.exp().masked_fill(~there, 0).reshape(B, groups, H // groups, 1, S)


def _state(keys: Tensor, values: Tensor, left: Tensor) -> Tensor:
    """keys (B, G, N, S), values (B, G, R, S, P), left (B, G, R, 1, S) -> (B, G, N, R, P)."""
    B, G, R, S, P = values.shape
    weighed = (values * left.transpose(3, 4)).transpose(2, 3).reshape(B, G, S, R * P)
    return (keys @ weighed).reshape(B, G, keys.shape[2], R, P)
