"""Rotary positions."""

from __future__ import annotations

import numpy as np

from .arrays import arange, cat, write_
from .dims import text_of
from .graph import MICROSOFT
from .symbol import FLOAT, Symbol


def rotary(positions: Symbol, frequencies: tuple[float, ...], scale: float, like: Symbol) -> tuple[Symbol, Symbol]:
    angle = positions.to(FLOAT)[..., None] * np.array(frequencies, np.float32)
    cos, sin = (angle.new(op, [angle], angle.shape) for op in ("Cos", "Sin"))
    return cos * float(scale), sin * float(scale)


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
