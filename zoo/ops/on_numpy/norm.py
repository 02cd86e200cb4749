"""Layer norm, root mean square norm and softmax."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from . import threads
from .layout import ROW_MAJOR_TOKENS, columns, logical
from .scratch import result, scratch

BLOCK = 128  # tokens that are normalised at a time: two arrays of (D, BLOCK) stay in cache
PARTIAL_SUM = 512  # numbers of a long sum that BLAS adds one after another


def layer_norm(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float, residual: np.ndarray | None
) -> np.ndarray:
    lead, D, dtype = x.shape[:-1], x.shape[-1], x.dtype
    N = math.prod(lead)
    X = columns(x)
    R = None if residual is None else columns(np.broadcast_to(residual, x.shape))
    mean = _mean(D, dtype)
    if N <= ROW_MAJOR_TOKENS:
        Y = result((N, D), dtype)
        with np.errstate(all="ignore"):
            _rows(X.T, None if R is None else R.T, weight, bias, eps, mean, Y)
        return Y.reshape(x.shape)
    Y = result((D, N), dtype)
    g, b = weight[:, None], bias[:, None]

    def block(i: int) -> None:
        own = slice(i * BLOCK, (i + 1) * BLOCK)
        y = Y[:, own]
        t = scratch("work", y.shape, dtype)
        if R is None:
            np.copyto(t, X[:, own])
        else:
            np.add(X[:, own], R[:, own], out=t)
        _block(t, t, g, b, eps, mean, y)

    threads.run(block, -(-N // BLOCK), cost=1.5 * x.size)
    return logical(Y, lead)


def add_layer_norm(
    x: np.ndarray, residual: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    lead, D, dtype = x.shape[:-1], x.shape[-1], x.dtype
    N = math.prod(lead)
    X, R = columns(x), columns(residual)
    mean = _mean(D, dtype)
    if N <= ROW_MAJOR_TOKENS:
        Y, S = result((N, D), dtype), result((N, D), dtype)
        with np.errstate(all="ignore"):
            np.add(X.T, R.T, out=S)
            _rows(S, None, weight, bias, eps, mean, Y)
        return Y.reshape(x.shape), S.reshape(x.shape)
    Y, S = result((D, N), dtype), result((D, N), dtype)
    g, b = weight[:, None], bias[:, None]

    def block(i: int) -> None:
        own = slice(i * BLOCK, (i + 1) * BLOCK)
        y, s = Y[:, own], S[:, own]
        np.add(X[:, own], R[:, own], out=s)
        _block(s, scratch("work", y.shape, dtype), g, b, eps, mean, y)

    threads.run(block, -(-N // BLOCK), cost=1.75 * x.size)
    return logical(Y, lead), logical(S, lead)


def _block(
    x: np.ndarray, t: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float, mean: np.ndarray, out: np.ndarray
) -> None:
    """The norm of the columns of x (D, n); t (D, n) is scratch, and may be x."""
    s = scratch("work 2", x.shape, x.dtype)
    np.subtract(x, _column_means(x, mean), out=t)
    np.multiply(t, t, out=s)
    np.multiply(t, _inverse(_column_means(s, mean), eps), out=t)
    np.multiply(t, weight, out=t)
    np.add(t, bias, out=out)


def _rows(
    x: np.ndarray,
    residual: np.ndarray | None,
    weight: np.ndarray,
    bias: np.ndarray,
    eps: float,
    mean: np.ndarray,
    out: np.ndarray,
) -> None:
    if residual is None:
        np.copyto(out, x)
    else:
        np.add(x, residual, out=out)
    np.subtract(out, _row_means(out, mean), out=out)
    s = np.multiply(out, out)
    np.multiply(out, _inverse(_row_means(s, mean), eps), out=out)
    np.multiply(out, weight, out=out)
    np.add(out, bias, out=out)


def group_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, groups: int, eps: float) -> np.ndarray:
    B, Y, X, C = x.shape
    out = np.array(columns(x), order="C").reshape(groups, C // groups, B, Y * X)
    out -= out.mean((1, 3), keepdims=True)
    out *= _inverse(np.square(out).mean((1, 3), keepdims=True), eps)
    out = out.reshape(C, B * Y * X)
    out *= weight[:, None]
    out += bias[:, None]
    return logical(out, (B, Y, X))


def rms_norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    lead, D, dtype = x.shape[:-1], x.shape[-1], x.dtype
    N = math.prod(lead)
    X, mean = columns(x), _mean(D, dtype)
    if N <= ROW_MAJOR_TOKENS:
        with np.errstate(all="ignore"):
            x = X.T
            Y = np.multiply(x, _inverse(_row_means(np.multiply(x, x), mean), eps))
            np.multiply(Y, weight, out=Y)
        return Y.reshape(*lead, D)
    Y, g = result((D, N), dtype), weight[:, None]

    def block(i: int) -> None:
        own = slice(i * BLOCK, (i + 1) * BLOCK)
        _rms_block(X[:, own], g, eps, mean, Y[:, own])

    threads.run(block, -(-N // BLOCK), cost=x.size)
    return logical(Y, lead)


def add_rms_norm(x: np.ndarray, residual: np.ndarray, weight: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
    lead, D, dtype = x.shape[:-1], x.shape[-1], x.dtype
    N = math.prod(lead)
    X, R, mean = columns(x), columns(residual), _mean(D, dtype)
    if N <= ROW_MAJOR_TOKENS:
        total = np.add(X.T, R.T).reshape(*lead, D)
        return rms_norm(total, weight, eps), total
    Y, S, g = result((D, N), dtype), result((D, N), dtype), weight[:, None]

    def block(i: int) -> None:
        own = slice(i * BLOCK, (i + 1) * BLOCK)
        np.add(X[:, own], R[:, own], out=S[:, own])
        _rms_block(S[:, own], g, eps, mean, Y[:, own])

    threads.run(block, -(-N // BLOCK), cost=1.25 * x.size)
    return logical(Y, lead), logical(S, lead)


def _rms_block(x: np.ndarray, weight: np.ndarray, eps: float, mean: np.ndarray, out: np.ndarray) -> None:
    """The root mean square norm of the columns of x (D, n)."""
    s = scratch("work", out.shape, out.dtype)
    np.multiply(x, x, out=s)
    np.multiply(x, _inverse(_column_means(s, mean), eps), out=s)
    np.multiply(s, weight, out=out)


def _inverse(variance: np.ndarray, eps: float) -> np.ndarray:
    variance += eps
    np.sqrt(variance, out=variance)
    return np.reciprocal(variance, out=variance)


def _column_means(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The means (1, n) of the columns of x (D, n)."""
    if len(x) <= 2 * PARTIAL_SUM:
        return mean @ x
    parts = [mean[:, a : a + PARTIAL_SUM] @ x[a : a + PARTIAL_SUM] for a in range(0, len(x), PARTIAL_SUM)]
    return np.add.reduce(parts)


def _row_means(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The means (n, 1) of the rows of x (n, D)."""
    if x.shape[1] <= 2 * PARTIAL_SUM:
        return x @ mean.T
    return np.multiply(np.add.reduce(x, 1, keepdims=True), mean[0, 0])


@lru_cache(64)
def _mean(D: int, dtype: np.dtype) -> np.ndarray:
    """The row vector whose product with a matrix is the mean of its D rows."""
    return np.full((1, D), 1 / D, dtype)


def softmax(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        top = x.max(-1, keepdims=True)
        y = np.exp(x - np.where(top == -np.inf, x.dtype.type(0), top))
        total = y.sum(-1, keepdims=True)
        y /= np.where(total == 0, x.dtype.type(1), total)
    return y
