"""Rotary positions."""

from __future__ import annotations

import numpy as np

from .arrays import arange, cat, write_
from .dims import text_of
from .graph import MICROSOFT
from .symbol import FLOAT, INT, Symbol

BASE, DIGITS = 128, 3  # positions below 2,097,152


class Half:
    """A precision: what runs the graph rounds every floating-point number to 16 bits, but no integer."""

    def linear(self, x: Symbol, weight: Symbol, bias: Symbol | None) -> None: ...

    def embedding(self, ids: Symbol, table: Symbol) -> None: ...


def rotary(positions: Symbol, frequencies: tuple[float, ...], scale: float, like: Symbol) -> tuple[Symbol, Symbol]:
    if isinstance(positions.graph.precision, Half) and positions.dtype == INT:
        cos, sin = _rotary_by_digits(positions, np.array(frequencies))
        return cos * float(scale), sin * float(scale)
    angle = positions.to(FLOAT)[..., None] * np.array(frequencies, np.float32)
    cos, sin = (angle.new(op, [angle], angle.shape) for op in ("Cos", "Sin"))
    return cos * float(scale), sin * float(scale)


def _rotary_by_digits(positions: Symbol, frequencies: np.ndarray) -> tuple[Symbol, Symbol]:
    """The cosines and sines of positions (B, T) times frequencies, without the angles: of 1,001 radians 16 bits keep
    1,000.  Each digit has a table, and an angle is the sum of its digits' angles.
    """
    cos = sin = positions  # replaced by the first digit
    for digit in range(DIGITS):
        at = positions // BASE**digit % BASE
        angles = np.arange(BASE)[:, None] * (BASE**digit * frequencies)
        shape = (*at.shape, len(frequencies))
        c, s = (at.new("Gather", [np.float32(f(angles)), at], shape, FLOAT, axis=0) for f in (np.cos, np.sin))
        cos, sin = (cos * c - sin * s, sin * c + cos * s) if digit else (c, s)
    return cos, sin


def rope(x: Symbol, cos: Symbol, sin: Symbol) -> Symbol:
    graph, (B, T, H, K) = x.graph, x.shape
    if graph.standard:
        a, b = x[..., : K // 2], x[..., K // 2 :]
        cos, sin = cos[:, :, None], sin[:, :, None]
        return cat([a * cos - b * sin, b * cos + a * sin], -1)
    memo, key = graph.memo, ("angles", cos.name, text_of(B), text_of(T))
    if key not in memo:  # one row of the operator's table for each token, or for each place if all rows share them
        rows = cos.shape[0]
        places = arange(rows * T, cos).reshape(rows, T).expand((B, T))
        memo[key] = [*(one.reshape(rows * T, K // 2) for one in (cos, sin)), places]
    cos, sin, places = memo[key]
    flat = x.reshape(B, T, H * K)
    inputs = [flat, places, cos, sin]
    y = x.new("RotaryEmbedding", inputs, flat.shape, domain=MICROSOFT, num_heads=H, rotary_embedding_dim=0)
    return y.reshape(B, T, H, K)


def rope_write_(q, k, v, cos, sin, keys, values, start):
    return write_(keys, k, start)
