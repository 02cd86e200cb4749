"""The gated delta rule, BLOCK tokens at a time by products of matrices.

Shapes: B rows, T tokens, S tokens before them, H heads, G heads of keys, K and V their features; here heads come first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCK = 64  # tokens whose changes of the state are found at once, from a system of that many equations


def delta_rule(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    decay: np.ndarray,
    rate: np.ndarray,
    past: Any,
) -> tuple[np.ndarray, np.ndarray]:
    H, T = v.shape[2], v.shape[1]
    q, k, v = (_heads_first(x, H) for x in (q, k, v))
    decay, rate = decay.transpose(0, 2, 1), rate.transpose(0, 2, 1)[..., None]
    state = keys = values = left = None
    if past is not None and past.keys.shape[1]:
        before = np.where(past.there[:, None], past.decay.transpose(0, 2, 1), 0)
        after = before[..., ::-1].cumsum(-1)[..., ::-1]  # a token's own decay and those after it
        left = np.where(past.there[:, None], np.exp(after - before), 0)
        keys, values = (_heads_first(x, H) for x in (past.keys, past.values))
        keys, left = keys.swapaxes(2, 3), left[:, :, None]
        if T > BLOCK:
            state, keys = keys * left @ values, None
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for begin in range(0, T, BLOCK):
        own = np.s_[:, :, begin : begin + BLOCK]
        some_q, some_k = q[own], k[own]
        sums = decay[own].cumsum(-1)
        kept = np.exp(sums)[..., None]

        def read(x: np.ndarray, kept: np.ndarray = kept, state: np.ndarray | None = state) -> np.ndarray | int:
            """What the state before the block has for x, decayed until each of its tokens."""
            if state is not None:
                return x @ state * kept
            return 0 if keys is None else x @ keys * left @ values * kept

        n = sums.shape[-1]
        lower = np.tri(n, dtype=bool)
        pairs = np.exp(np.where(lower, sums[..., None] - sums[..., None, :], -np.inf))
        changes = rate[own] * (v[own] - read(some_k))
        if n > 1:
            system = some_k @ some_k.swapaxes(2, 3) * pairs * rate[own]
            system[..., np.arange(n), np.arange(n)] = 1
            changes = np.linalg.solve(system, changes)
        found.append((read(some_q) + some_q @ some_k.swapaxes(2, 3) * pairs @ changes, changes))
        if begin + BLOCK < T:
            last = np.exp(sums[..., -1:] - sums)[..., None]
            added = (some_k * last).swapaxes(2, 3) @ changes
            state = added if state is None else state * kept[..., -1:, :] + added
    out, changes = (np.concatenate(parts, 2).transpose(0, 2, 1, 3) for parts in zip(*found, strict=True))
    return out, changes


def _heads_first(x: np.ndarray, heads: int) -> np.ndarray:
    """(B, T, G, K) -> (B, H, T, K)."""
    x = x.transpose(0, 2, 1, 3)
    return x if x.shape[1] == heads else np.repeat(x, heads // x.shape[1], axis=1)
