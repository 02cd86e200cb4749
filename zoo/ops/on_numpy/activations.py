"""Activations in place, on blocks that stay in cache: passes over memory are what costs time in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from .scratch import scratch

BLOCK = 1 << 16  # elements: with two scratch buffers of the same size they about fit into the L2 cache

_add, _mul = np.add, np.multiply

# gelu(x) = relu(x) - h / Q(h)^16 with h = |x| / 2 and Q a polynomial, whose power decays as the normal distribution's
# tail does.  Before rounding |error| < 4.5e-8 min(1, 2 |x|): its constant is 1, since any other would be a factor of
# every small x.  It does without h^4.  Four squares take a third of the time of an exponential.
_Q7, _Q6, _Q5, _Q3, _Q2, _Q1 = (
    *(1.0330402437830344e-04, -1.1504856956889853e-04, 2.3341532796621323e-03),
    *(2.6452869176864624e-02, 8.452540636062622e-02, 9.973672032356262e-02),
)
_erf = np.frompyfunc(math.erf, 1, 1)


def _gelu(x: np.ndarray) -> None:
    if x.dtype == np.float64:  # used as a reference: exact rather than fast
        x *= 0.5 * (1 + np.asarray(_erf(x / math.sqrt(2)), np.float64))
        return
    h, t = scratch("work", x.shape, x.dtype), scratch("work 2", x.shape, x.dtype)
    _mul(x, 0.5, x)
    np.absolute(x, h)
    _mul(h, _Q7, t)
    for c in (_Q6, _Q5):
        _add(t, c, t)
        _mul(t, h, t)
    _mul(t, h, t)
    for c in (_Q3, _Q2, _Q1):
        _add(t, c, t)
        _mul(t, h, t)
    _add(t, 1, t)
    with np.errstate(over="ignore"):  # to infinity, and h / infinity is 0 (of an infinite h it is NaN)
        for _ in range(4):
            _mul(t, t, t)
    np.divide(h, t, t)
    _add(x, h, x)
    np.subtract(x, t, x)


def _gelu_tanh(x: np.ndarray) -> None:
    # x (1 + tanh(u)) / 2 = x / (1 + exp(-2 u)), in which nothing cancels out for a negative u.
    t = scratch("work", x.shape, x.dtype)
    _mul(x, x, t)
    _mul(t, -2 * 0.044715 * math.sqrt(2 / math.pi), t)
    _add(t, -2 * math.sqrt(2 / math.pi), t)
    _mul(t, x, t)
    np.exp(t, t)
    _add(t, 1, t)
    np.divide(x, t, x)


def _gelu_10(x: np.ndarray) -> None:
    _gelu(x)
    np.clip(x, -10, 10, out=x)


def _sigmoid(x: np.ndarray) -> None:
    np.negative(x, x)
    np.exp(x, x)
    _add(x, 1, x)
    np.reciprocal(x, x)


def _quick_gelu(x: np.ndarray) -> None:
    t = scratch("work", x.shape, x.dtype)
    _mul(x, -1.702, t)
    np.exp(t, t)
    _add(t, 1, t)
    np.divide(x, t, x)


def _silu(x: np.ndarray) -> None:
    t = scratch("work", x.shape, x.dtype)
    np.negative(x, t)
    np.exp(t, t)
    _add(t, 1, t)
    np.divide(x, t, x)


def _mish(x: np.ndarray) -> None:
    # With e = exp(x), tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2): 1 from x = 20 on.
    e, t = scratch("work", x.shape, x.dtype), scratch("work 2", x.shape, x.dtype)
    np.minimum(x, 20, out=e)
    np.exp(e, e)
    _add(e, 2, t)
    _mul(t, e, t)
    _add(t, 2, e)
    np.divide(t, e, t)
    _mul(x, t, x)


def _relu(x: np.ndarray) -> None:
    # NumPy's maximum of two arrays is three times as fast as that of an array and a number.
    np.maximum(x, _zeros(x.dtype)[: x.size].reshape(x.shape) if x.size <= BLOCK else 0, out=x)


@cache
def _zeros(dtype: np.dtype) -> np.ndarray:
    return np.zeros(BLOCK, dtype)


def _relu2(x: np.ndarray) -> None:
    _relu(x)
    _mul(x, x, x)


def _relu6(x: np.ndarray) -> None:
    np.clip(x, 0, 6, out=x)


def _leaky_relu(x: np.ndarray) -> None:
    t = scratch("work", x.shape, x.dtype)
    _mul(x, 0.01, t)
    np.maximum(x, t, out=x)


def _hardswish(x: np.ndarray) -> None:
    t = scratch("work", x.shape, x.dtype)
    _add(x, 3, t)
    np.clip(t, 0, 6, out=t)
    _mul(t, 1 / 6, t)
    _mul(x, t, x)


def _hardsigmoid(x: np.ndarray) -> None:
    _add(x, 3, x)
    np.clip(x, 0, 6, out=x)
    _mul(x, 1 / 6, x)


def _tanh(x: np.ndarray) -> None:
    np.tanh(x, x)


ACT: dict[str | None, Callable[[np.ndarray], None] | None] = {
    None: None,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "quick_gelu": _quick_gelu,
    "gelu_10": _gelu_10,
    "relu": _relu,
    "relu2": _relu2,
    "relu6": _relu6,
    "leaky_relu": _leaky_relu,
    "silu": _silu,
    "mish": _mish,
    "hardswish": _hardswish,
    "hardsigmoid": _hardsigmoid,
    "sigmoid": _sigmoid,
    "tanh": _tanh,
}


def activate(x: np.ndarray, act: str | None) -> np.ndarray:
    y = np.array(x, order="C")
    with np.errstate(all="ignore"):  # exp of what is far below 0
        finish(y.reshape(-1, y.shape[-1]), None, act, None)
    return y


def finish(y: np.ndarray, bias: np.ndarray | None, act: str | None, residual: np.ndarray | None) -> None:
    """y = act(y + bias) + residual in place.  y (R, C), residual (R, C or less); bias broadcasts to y."""
    fn = ACT[act]
    if fn is None and bias is None and residual is None:
        return
    step = max(1, BLOCK // max(1, y.shape[1]))
    for a in range(0, len(y), step):
        part = slice(a, a + step)
        z = y[part]
        if bias is not None:
            _add(z, bias[part] if len(bias) > 1 else bias, z)
        if fn is not None:
            fn(z)
        if residual is not None:
            z = z[:, : residual.shape[1]]
            _add(z, residual[part], z)
