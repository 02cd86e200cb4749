"""The gated delta rule, BLOCK tokens at a time by products of matrices, in float32.

Shapes: B rows, T tokens, S tokens before them, H heads, G heads of keys, K and V their features; here heads come first.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

BLOCK = 64  # tokens whose changes of the state are found at once, from a system of that many equations


def delta_rule(q: Tensor, k: Tensor, v: Tensor, decay: Tensor, rate: Tensor, past: Any) -> tuple[Tensor, Tensor]:
    H, T, dtype = v.shape[2], v.shape[1], v.dtype
    q, k, v = (_heads_first(x, H) for x in (q, k, v))
    decay, rate = decay.float().transpose(1, 2), rate.float().transpose(1, 2)[..., None]
    state: Tensor | None = None
    keys: Tensor | None = None
    values = left = q  # replaced where there are tokens before
    if past is not None and past.keys.shape[1]:
        there = past.there[:, None]
        before = past.decay.float().transpose(1, 2).masked_fill(~there, 0)
        after = before.flip(-1).cumsum(-1).flip(-1)  # a token's own decay and those after it
        left = (after - before).exp().masked_fill(~there, 0)[:, :, None]
        keys, values = (_heads_first(x, H) for x in (past.keys, past.values))
        keys = keys.transpose(2, 3)
        if T > BLOCK:
            state, keys = keys * left @ values, None
    found: list[tuple[Tensor, Tensor]] = []
    for begin in range(0, T, BLOCK):
        some_q, some_k, some_v, own = (x[:, :, begin : begin + BLOCK] for x in (q, k, v, rate))
        sums = decay[:, :, begin : begin + BLOCK].cumsum(-1)
        kept, n = sums.exp()[..., None], sums.shape[-1]
        upper = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
        pairs = (sums[..., None] - sums[..., None, :]).masked_fill(upper, -math.inf).exp()
        wanted, out = some_v, some_q @ some_k.transpose(2, 3) * pairs
        if state is not None:
            wanted = some_v - some_k @ state * kept
        elif keys is not None:
            wanted = some_v - some_k @ keys * left @ values * kept
        system = some_k @ some_k.transpose(2, 3) * pairs * own
        changes = torch.linalg.solve_triangular(system, own * wanted, upper=False, unitriangular=True)
        out = out @ changes
        if state is not None:
            out = out + some_q @ state * kept
        elif keys is not None:
            out = out + some_q @ keys * left @ values * kept
        found.append((out, changes))
        if begin + BLOCK < T:
            last = (sums[..., -1:] - sums).exp()[..., None]
            added = (some_k * last).transpose(2, 3) @ changes
            state = added if state is None else state * kept[..., -1:, :] + added
    out, changes = (torch.cat(parts, 2).transpose(1, 2).to(dtype) for parts in zip(*found, strict=True))
    return out, changes


def _heads_first(x: Tensor, heads: int) -> Tensor:
    """(B, T, G, K) -> (B, H, T, K) float32."""
    x = x.transpose(1, 2).float()
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)
