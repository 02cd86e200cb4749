"""The gated delta rule as a graph: after a cache, and in exports, by products of matrices; else by a loop over tokens.

Shapes: B rows, T tokens, S tokens before them, H heads, G heads of keys, K and V their features; here heads come first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import exp, where
from .symbol import FLOAT, INT, Symbol

LEVELS = 8  # the logarithm of the most tokens that products of matrices take
ABOVE, DIAGONAL = -1, -2
LOG_OF_ZERO = -1e9


def delta_rule(q: Symbol, k: Symbol, v: Symbol, decay: Symbol, rate: Symbol, past: Any) -> tuple[Symbol, Symbol]:
    B, T, H, V = v.shape
    q, k, v = (_heads_first(x, H) for x in (q, k, v))
    decay, rate = decay.transpose(0, 2, 1), rate.transpose(0, 2, 1)[..., None]
    if past is None and not q.graph.standard:
        return _by_steps(q, k, v, decay, rate)
    sums = _sums(decay)
    read = None if past is None else _reader(past, exp(sums)[..., None])
    levels = _levels(q, T)
    turned = k.transpose(0, 1, 3, 2)
    pairs = exp(where(levels != ABOVE, sums[..., None] - sums[..., None, :], q.constant(np.float32(LOG_OF_ZERO))))
    system = _product(k, turned, (B, H, T, T)) * pairs * rate
    wanted = v if read is None else v - read(k)
    changes = _product(_inverse(system, levels), rate * wanted, (B, H, T, V))
    out = _product(_product(q, turned, (B, H, T, T)) * pairs, changes, (B, H, T, V))
    out = out if read is None else read(q) + out
    return out.transpose(0, 2, 1, 3), changes.transpose(0, 2, 1, 3)


def _reader(past: Any, kept: Symbol) -> Callable[[Symbol], Symbol]:
    """A function of x (B, H, T, K), what the state of the tokens before has for each, decayed by kept (B, H, T, 1)."""
    (B, S, H, V), T, there = past.values.shape, kept.shape[2], past.there[:, None]
    zero = kept.constant(np.float32(0))
    before = where(there, past.decay.transpose(0, 2, 1), zero)
    left = where(there, exp(_sums(before, reverse=1, exclusive=1)), zero)
    keys, values = _heads_first(past.keys, H).transpose(0, 1, 3, 2), _heads_first(past.values, H)

    def read(x: Symbol) -> Symbol:
        return _product(_product(x, keys, (B, H, T, S)) * left[:, :, None], values, (B, H, T, V)) * kept

    return read


def _inverse(system: Symbol, levels: Symbol) -> Symbol:
    """The inverse of lower triangular matrices (B, H, T, T) with ones on their diagonal, whatever they have there: that
    of blocks of 1, 2, 4, ... rows.
    """
    found = (levels == DIAGONAL).to(FLOAT)
    for level in range(LEVELS):
        between = system * (levels == level).to(FLOAT)
        if level:
            between = _product(_product(found, between, system.shape), found, system.shape)
        found = found - between
    return found


def _levels(like: Symbol, T: int) -> Symbol:
    """(T, T): of a place below the diagonal the number of the highest bit in which its row and its column differ.

    More tokens than the table has places fail, since their products with it have no shape.
    """
    memo, key = like.graph.memo, ("levels", str(T))
    if key not in memo:
        at = np.arange(1 << LEVELS)
        differing = at[:, None] ^ at
        table = np.full(differing.shape, ABOVE, np.int64)
        below = at[:, None] > at
        table[below] = np.log2(differing[below]).astype(np.int64)
        table[at, at] = DIAGONAL
        memo[key] = like.constant(table)[:T, :T]
    return memo[key]


def _by_steps(q: Symbol, k: Symbol, v: Symbol, decay: Symbol, rate: Symbol) -> tuple[Symbol, Symbol]:
    graph, (B, H, T, V), K = q.graph, v.shape, k.shape[-1]
    whole = [x.transpose(2, 0, 1, 3) for x in (q, k, v, exp(decay)[..., None], rate)]

    def step(state: Symbol, at: Symbol) -> tuple[Symbol, list[Symbol], list[Symbol]]:
        some_q, some_k, some_v, left, some_rate = (x.new("Gather", [x, at], x.shape[1:], axis=0) for x in whole)
        state = state * left[..., None]
        seen = _product(some_k[:, :, None], state, (B, H, 1, V)).reshape(B, H, V)
        change = some_rate * (some_v - seen)
        state = state + some_k[..., None] * change[:, :, None]
        out = _product(some_q[:, :, None], state, (B, H, 1, V)).reshape(B, H, V)
        return at + 1 < T, [state, at + 1], [out, change]

    first = q.constant(np.zeros((1, 1, 1, 1), np.float32)).expand((B, H, K, V))
    names = graph.loop(1 << 31, [first, Symbol(graph, graph.store(np.array(0, np.int64)), (), INT)], step)
    out, changes = (Symbol(graph, name, (T, B, H, V), FLOAT).transpose(1, 0, 2, 3) for name in names)
    return out, changes


def _heads_first(x: Symbol, heads: int) -> Symbol:
    """(B, T, G, K) -> (B, H, T, K)."""
    x = x.transpose(0, 2, 1, 3)
    B, G, T, K = x.shape
    return x if heads == G else x[:, :, None].expand((B, G, heads // G, T, K)).reshape(B, heads, T, K)


def _sums(x: Symbol, **how: int) -> Symbol:
    return x.new("CumSum", [x, np.array(2, np.int64)], x.shape, **how)


def _product(a: Symbol, b: Symbol, shape: tuple[int, ...]) -> Symbol:
    return a.new("MatMul", [a, b], shape)
