"""NumPy's activations against float64, by their error beside the value: small numbers count as much as large ones.

The values are computed without cancellation, from erfc and exp of what is negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from zoo.ops.on_numpy.activations import ACT, activate

_erfc = np.frompyfunc(math.erfc, 1, 1)
TINY = 1e-36  # where an exponential overflows, the last values above 0 are 0


def sigmoid(x: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * np.asarray(_erfc(-x / math.sqrt(2)), np.float64)


EXACT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": gelu,
    "gelu_tanh": lambda x: x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
    "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "gelu_10": lambda x: np.clip(gelu(x), -10, 10),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "silu": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(np.minimum(x, 700)))),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "sigmoid": sigmoid,
    "tanh": np.tanh,
}
MAGNITUDES = np.unique(np.concatenate([np.logspace(-44, 1.5, 40_001), np.linspace(0, 12, 60_001)]).astype(np.float32))


def test_every_activation_is_here():
    assert EXACT.keys() == ACT.keys() - {None}


@pytest.mark.parametrize("sign", [1, -1], ids=["positive", "negative"])
@pytest.mark.parametrize("act", EXACT)
def test_errors_beside_the_value(act, sign):
    x = sign * MAGNITUDES
    y, wide = activate(x[None], act)[0].astype(np.float64), x.astype(np.float64)
    with np.errstate(over="ignore"):
        wanted = EXACT[act](wide)
    error, value = np.abs(y - wanted), np.abs(wanted)
    if act in ("gelu", "gelu_10"):  # Q's sixteenth power: of the tail of the negative ones only the place counts
        assert (error <= 6e-7 * np.minimum(1, 2 * np.abs(wide)) + TINY).all()
        near = np.abs(x) < 1
        assert (error[near] <= 2.5e-6 * value[near] + TINY).all()
        return
    # exp(u) is as exact as u is, by which its relative error grows.
    room = {"quick_gelu": np.abs(wide), "gelu_tanh": np.abs(wide) + np.abs(wide) ** 3 / 10}.get(act, 0)
    assert (error <= 5e-7 * (1 + room) * value + TINY).all()


@pytest.mark.parametrize("act", EXACT)
def test_the_ends_of_the_range(act):
    largest = np.finfo(np.float32).max
    ends = np.array([[-largest, -1e30, -1e4, -1e-45, -0.0, 0.0, 1e-45, 1e4, 1e30, largest, np.nan, np.inf]], np.float32)
    ends = ends[:, :-1] if act in ("gelu", "gelu_10") else ends  # to look for infinities would take a tenth more time
    (found,) = activate(ends, act)
    with np.errstate(all="ignore"):
        wanted = EXACT[act](ends[0].astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(ends[0]))
    finite = ~np.isnan(ends[0]) & (act != "relu2")  # whose squares are infinite
    np.testing.assert_allclose(found[finite], wanted[finite], rtol=1e-6, atol=3e-45)


def test_small_numbers_stay_themselves_through_many_layers():
    """A constant that is not 1 was a factor of each layer: networks that normalise what they get see it grow."""
    x = np.linspace(1e-4, 1e-2, 999, dtype=np.float32)[None]
    y, wide = x, x.astype(np.float64)
    for _ in range(15):
        y, wide = activate(2 * y, "gelu"), gelu(2 * wide)
    np.testing.assert_allclose(y, wide, rtol=2e-5)  # it was 2.6e-4


def test_nothing_is_said_of_what_overflows(recwarn):
    for act in ACT:
        activate(np.array([[-1e30, -200.0, 200.0, 1e30]], np.float32), act)
    assert not recwarn
