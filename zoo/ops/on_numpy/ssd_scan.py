"""Mamba2's state space as products of matrices, BLOCK tokens at a time.

Shapes: B rows, T tokens, S tokens before them, H heads, G groups of R heads that share keys, N and P features of keys
and values; here groups come first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCK = 64  # tokens whose scores are computed; those before them are in a state


def ssd_scan(q: np.ndarray, k: np.ndarray, v: np.ndarray, decay: np.ndarray, past: Any) -> np.ndarray:
    (B, T, H, P), (G, N) = v.shape, k.shape[2:]
    q, k = q.transpose(0, 2, 1, 3), k.transpose(0, 2, 1, 3)  # (B, G, T, N)
    v, decay = _by_groups(v, G), decay.transpose(0, 2, 1).reshape(B, G, H // G, T)
    state = keys = values = left = None  # state: (B, G, N, R, P)
    if past is not None and past.keys.shape[1]:
        keys, values = past.keys.transpose(0, 2, 3, 1), _by_groups(past.values, G)
        left = _remainders(past, G)
        if T > BLOCK:
            state = _state(keys, values, left)
    out = np.empty((B, G, H // G, T, P), v.dtype)
    for begin in range(0, T, BLOCK):
        own = slice(begin, begin + BLOCK)
        some_q, some_k, some_v = q[:, :, own], k[:, :, own], v[:, :, :, own]
        some = decay[..., own]
        n, kept = some.shape[-1], np.exp(some.cumsum(-1))[..., None]
        # Sums of their own for each pair: differences of sums from the block's first token on would lose digits.
        between = np.where(np.tri(n, k=-1, dtype=bool), some[..., None], 0).cumsum(-2)
        pairs = np.where(np.tri(n, dtype=bool), np.exp(between), 0)
        scores = some_q @ some_k.swapaxes(2, 3)
        out[..., own, :] = scores[:, :, None] * pairs @ some_v
        if state is not None:
            seen = (some_q @ state.reshape(B, G, N, -1)).reshape(B, G, n, H // G, P)
            out[..., own, :] += seen.swapaxes(2, 3) * kept
        elif left is not None:
            out[..., own, :] += (some_q @ keys)[:, :, None] * left @ values * kept
        if begin + BLOCK < T:
            added = _state(some_k.swapaxes(2, 3), some_v, pairs[..., -1:, :])
            state = added if state is None else state * kept[:, :, None, :, -1] + added
    return out.reshape(B, H, T, P).transpose(0, 2, 1, 3)


def ssd_state(past: Any) -> np.ndarray:
    (B, _, G, N), (H, P) = past.keys.shape, past.values.shape[2:]
    state = _state(past.keys.transpose(0, 2, 3, 1), _by_groups(past.values, G), _remainders(past, G))
    return state.transpose(0, 2, 1, 3, 4).reshape(B, N, H, P)


def _by_groups(x: np.ndarray, groups: int) -> np.ndarray:
    """(B, T, H, P) -> (B, G, R, T, P)."""
    B, T, H, P = x.shape
    return x.reshape(B, T, groups, H // groups, P).transpose(0, 2, 3, 1, 4)


def _remainders(past: Any, groups: int) -> np.ndarray:
    """What is left of each token's part of the state after the last of them: (B, G, R, 1, S)."""
    B, S, H = past.decay.shape
    decay = np.where(past.there[:, None], past.decay.transpose(0, 2, 1), 0)
    after = decay[..., ::-1].cumsum(-1)[..., ::-1] - decay
    return np.where(past.there[:, None], np.exp(after), 0).reshape(B, groups, H // groups, 1, S)


def _state(keys: np.ndarray, values: np.ndarray, left: np.ndarray) -> np.ndarray:
    """keys (B, G, N, S), values (B, G, R, S, P), left (B, G, R, 1, S) -> (B, G, N, R, P)."""
    B, G, R, S, P = values.shape
    weighed = (values * left.swapaxes(3, 4)).transpose(0, 1, 3, 2, 4).reshape(B, G, S, R * P)
    return (keys @ weighed).reshape(B, G, keys.shape[2], R, P)
