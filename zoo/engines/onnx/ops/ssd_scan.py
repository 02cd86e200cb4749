"""Mamba2's state space as a graph: after a cache by products of all new tokens, else by blocks and their states.

Shapes: B rows, T tokens, S tokens before them, H heads, G groups of R heads that share keys, N and P features of keys
and values; Z blocks of BLOCK tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import arange, exp, where
from .symbol import Symbol

BLOCK = 64


def ssd_scan(q: Symbol, k: Symbol, v: Symbol, decay: Symbol, past: Any) -> Symbol:
    return _scan_blocks(q, k, v, decay) if past is None else _continue_scan(q, k, v, decay, past)


def _continue_scan(q: Symbol, k: Symbol, v: Symbol, decay: Symbol, past: Any) -> Symbol:
    (B, T, H, P), G, S = v.shape, k.shape[2], past.keys.shape[1]
    R, q, k = H // G, q.transpose(0, 2, 1, 3), k.transpose(0, 2, 1, 3)
    decay = _heads_first(decay, G)  # (B, G, R, T)
    own = _product(q, k.transpose(0, 1, 3, 2), (B, G, T, T))[:, :, None] * _pairs(decay, T)
    out = _product(own, _by_groups(v, G), (B, G, R, T, P))
    there, zero = past.there[:, None, None], decay.constant(np.float32(0))
    before = where(there, _heads_first(past.decay, G), zero)
    left = where(there, exp(_sums(before, 3, reverse=1, exclusive=1)), zero)  # of each token's part of the state
    seen = _product(q, past.keys.transpose(0, 2, 3, 1), (B, G, T, S))[:, :, None] * left[:, :, :, None]
    out = out + _product(seen, _by_groups(past.values, G), (B, G, R, T, P)) * exp(_sums(decay, 3))[..., None]
    return out.transpose(0, 3, 1, 2, 4).reshape(B, T, H, P)


def _scan_blocks(q: Symbol, k: Symbol, v: Symbol, decay: Symbol) -> Symbol:
    (B, T, H, P), (G, N) = v.shape, k.shape[2:]
    Z, R = (T + BLOCK - 1) // BLOCK, H // G
    q, k, v, decay = (_pad_to_blocks(x, Z * BLOCK - T, Z) for x in (q, k, v, decay))
    q, k = (x.transpose(0, 1, 3, 2, 4) for x in (q, k))  # (B, Z, G, BLOCK, N)
    v = v.reshape(B, Z, BLOCK, G, R, P).transpose(0, 1, 3, 4, 2, 5)  # (B, Z, G, R, BLOCK, P)
    decay = decay.reshape(B, Z, BLOCK, G, R).transpose(0, 1, 3, 4, 2)  # (B, Z, G, R, BLOCK)
    pairs, sums = _pairs(decay, BLOCK), _sums(decay, 4)
    turned = k.transpose(0, 1, 2, 4, 3)
    own = _product(q, turned, (B, Z, G, BLOCK, BLOCK))[:, :, :, None] * pairs
    out = _product(own, v, (B, Z, G, R, BLOCK, P))
    weighed = (v * pairs[:, :, :, :, BLOCK - 1][..., None]).transpose(0, 1, 2, 4, 3, 5).reshape(B, Z, G, BLOCK, R * P)
    added = _product(turned, weighed, (B, Z, G, N, R * P)).reshape(B, Z, G, N, R, P)
    # The state before each block is a sum over the blocks before it, each decayed by those between.
    at, whole = arange(Z, v), sums[..., BLOCK - 1].transpose(0, 2, 3, 1)[:, :, :, None]
    zero, later = v.constant(np.float32(0)), at > at[:, None]
    between = _sums(where(later, whole, zero), 4, exclusive=1)  # (B, G, R, Z, Z): of those after a row's block
    between = where(later, exp(between), zero).transpose(0, 1, 2, 4, 3)
    flat = added.transpose(0, 2, 4, 1, 3, 5).reshape(B, G, R, Z, N * P)
    states = _product(between, flat, (B, G, R, Z, N * P)).reshape(B, G, R, Z, N, P)
    states = states.transpose(0, 3, 1, 4, 2, 5).reshape(B, Z, G, N, R * P)
    seen = _product(q, states, (B, Z, G, BLOCK, R * P)).reshape(B, Z, G, BLOCK, R, P)
    out = out + seen.transpose(0, 1, 2, 4, 3, 5) * exp(sums)[..., None]
    return out.transpose(0, 1, 4, 2, 3, 5).reshape(B, Z * BLOCK, H, P)[:, :T]


def _pad_to_blocks(x: Symbol, count: int, blocks: int) -> Symbol:
    """(B, T, ...) with `count` more zeros, in blocks: (B, Z, BLOCK, ...)."""
    B, _, *rest = x.shape
    added = x.graph.lengths((*[0] * (x.ndim + 1), count, *[0] * (x.ndim - 2)))
    return x.new("Pad", [x, added], (B, blocks * BLOCK, *rest)).reshape(B, blocks, BLOCK, *rest)


def _pairs(decay: Symbol, count: int) -> Symbol:
    """(..., T) -> (..., T, T): what is left at a token of what an earlier one, or itself, added to the state.

    Each is a sum of its own: differences of sums from the first token on would lose digits.
    """
    at, zero = arange(count, decay), decay.constant(np.float32(0))
    between = _sums(where(at[:, None] > at, decay[..., None], zero), decay.ndim - 1)
    return where(at[:, None] >= at, exp(between), zero)


def _heads_first(x: Symbol, groups: int) -> Symbol:
    """(B, T, H) -> (B, G, R, T)."""
    B, T, H = x.shape
    return x.reshape(B, T, groups, H // groups).transpose(0, 2, 3, 1)


def _by_groups(x: Symbol, groups: int) -> Symbol:
    """(B, T, H, P) -> (B, G, R, T, P)."""
    B, T, H, P = x.shape
    return x.reshape(B, T, groups, H // groups, P).transpose(0, 2, 3, 1, 4)


def _sums(x: Symbol, axis: int, **how: int) -> Symbol:
    return x.new("CumSum", [x, np.array(axis, np.int64)], x.shape, **how)


def _product(a: Symbol, b: Symbol, shape: tuple[int, ...]) -> Symbol:
    return a.new("MatMul", [a, b], shape)
