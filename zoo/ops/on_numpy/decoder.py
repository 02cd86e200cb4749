"""Rotary positions, gated activations, and writes to a cache."""

from __future__ import annotations

import math

import numpy as np

from . import threads
from .activations import ACT, BLOCK
from .layout import ROW_MAJOR_TOKENS, columns, logical
from .scratch import result, scratch


def rotary(
    positions: np.ndarray, frequencies: tuple[float, ...], scale: float, like: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    angles = positions.astype(np.float32)[..., None] * np.array(frequencies, np.float32)
    cos, sin = np.cos(angles), np.sin(angles)
    if scale != 1:
        cos *= np.float32(scale)
        sin *= np.float32(scale)
    return cos, sin


def rope(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    B, T, H, K = x.shape
    N, half, dtype = B * T, K // 2, x.dtype
    if N <= ROW_MAJOR_TOKENS:
        out = result((B, T, H, K), dtype)
        cos, sin = (np.broadcast_to(a, (B, T, half))[:, :, None] for a in (cos, sin))
        _rotate(x[..., :half], x[..., half:], cos, sin, out[..., :half], out[..., half:])
        return out
    # Feature-major: (H, K, N), the halves of a head being blocks.
    X = columns(x.reshape(B, T, H * K)).reshape(H, K, N)
    Y = result((H * K, N), dtype)
    y = Y.reshape(H, K, N)
    cos, sin = (np.ascontiguousarray(np.broadcast_to(a, (B, T, half)).reshape(N, half).T) for a in (cos, sin))

    def head(h: int) -> None:
        _rotate(X[h, :half], X[h, half:], cos, sin, y[h, :half], y[h, half:])

    threads.run(head, H, cost=2.0 * x.size)
    return logical(Y, (B, T)).reshape(B, T, H, K)


def rope_write_(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    cos: np.ndarray,
    sin: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    start: np.ndarray,
) -> np.ndarray:
    write_(keys, rope(k, cos, sin), start)
    write_(values, v, start)
    return rope(q, cos, sin)


def write_(out: np.ndarray, x: np.ndarray, start: np.ndarray) -> np.ndarray:
    for b, at in enumerate(start.tolist()):
        out[b, at : at + x.shape[1]] = x[b]
    return out


def _rotate(
    a: np.ndarray, b: np.ndarray, cos: np.ndarray, sin: np.ndarray, first: np.ndarray, second: np.ndarray
) -> None:
    t = scratch("work", a.shape, a.dtype)
    np.multiply(a, cos, out=first)
    np.multiply(b, sin, out=t)
    np.subtract(first, t, out=first)
    np.multiply(b, cos, out=second)
    np.multiply(a, sin, out=t)
    np.add(second, t, out=second)


def glu(x: np.ndarray, act: str | None) -> np.ndarray:
    lead, F = x.shape[:-1], x.shape[-1] // 2
    N, fn = math.prod(lead), ACT[act]
    X = columns(x)
    rowwise = N <= ROW_MAJOR_TOKENS
    Y = result((N, F) if rowwise else (F, N), x.dtype)
    gate, up = X[:F], X[F:]
    if rowwise:
        gate, up = gate.T, up.T
    step = max(1, BLOCK // max(1, Y.shape[1]))

    def block(i: int) -> None:
        own = slice(i * step, (i + 1) * step)
        y = Y[own]
        np.copyto(y, gate[own])
        if fn is not None:
            fn(y)
        np.multiply(y, up[own], out=y)

    threads.run(block, -(-len(Y) // step), cost=2.0 * Y.size)
    return Y.reshape(*lead, F) if rowwise else logical(Y, lead)
