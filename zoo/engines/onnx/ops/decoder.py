"""Rotary positions."""

from __future__ import annotations

import numpy as np

from .arrays import cat, write_
from .symbol import FLOAT, Symbol


def rotary(positions: Symbol, frequencies: tuple[float, ...], scale: float, like: Symbol) -> tuple[Symbol, Symbol]:
    angle = positions.to(FLOAT)[..., None] * np.array(frequencies, np.float32)
    cos, sin = (angle.new(op, [angle], angle.shape) for op in ("Cos", "Sin"))
    return cos * float(scale), sin * float(scale)


def rope(x: Symbol, cos: Symbol, sin: Symbol) -> Symbol:
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    cos, sin = cos[:, :, None], sin[:, :, None]
    return cat([a * cos - b * sin, b * cos + a * sin], -1)


def rope_write_(q, k, v, cos, sin, keys, values, start):
    return write_(keys, k, start)
