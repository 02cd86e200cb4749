"""Norms and softmax, in float32."""

from __future__ import annotations

import numpy as np

from .symbol import Symbol


def layer_norm(x: Symbol, weight: Symbol, bias: Symbol, eps: float, residual: Symbol | None = None) -> Symbol:
    x = x if residual is None else x + residual
    return x.new("LayerNormalization", [x, weight, bias], x.shape, axis=-1, epsilon=float(eps))


def add_layer_norm(x: Symbol, residual: Symbol, weight: Symbol, bias: Symbol, eps: float) -> tuple[Symbol, Symbol]:
    total = x + residual
    return layer_norm(total, weight, bias, eps), total


def group_norm(x: Symbol, weight: Symbol, bias: Symbol, groups: int, eps: float) -> Symbol:
    planes = x.transpose(0, 3, 1, 2)
    rows = planes.reshape(x.shape[0], groups, x.shape[1] * x.shape[2] * (x.shape[3] // groups))
    # InstanceNormalization loses what a mean far from 0 has more digits than its numbers' differences.
    for _ in range(2):  # the mean of the differences is what rounding has left
        rows = rows - _mean_of_rows(rows)
    variance = _mean_of_rows(rows * rows) + eps
    normed = rows / variance.new("Sqrt", [variance], variance.shape)
    return normed.reshape(*planes.shape).transpose(0, 2, 3, 1) * weight + bias


def _mean_of_rows(x: Symbol) -> Symbol:
    return x.new("ReduceMean", [x, np.array([-1])], (*x.shape[:-1], 1), keepdims=1)


def rms_norm(x: Symbol, weight: Symbol, eps: float) -> Symbol:
    square = x.new("Pow", [x, np.array(2, np.float32)], x.shape)
    mean = _mean_of_rows(square) + eps
    return x / mean.new("Sqrt", [mean], mean.shape) * weight


def add_rms_norm(x: Symbol, residual: Symbol, weight: Symbol, eps: float) -> tuple[Symbol, Symbol]:
    total = x + residual
    return rms_norm(total, weight, eps), total


def softmax(x: Symbol) -> Symbol:
    """Softmax over the last axis; a row of -inf gives zeros instead of NaN."""
    seen = x.new("ReduceMax", [x, np.array([-1])], (*x.shape[:-1], 1), keepdims=1) > -np.inf
    y = x.new("Softmax", [x], x.shape, axis=-1)
    return y.new("Where", [seen, y, np.zeros((), np.float32)], x.shape)
