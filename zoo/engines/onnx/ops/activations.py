"""Activations, by ONNX's own operator if there is one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .arrays import exp
from .symbol import Symbol


def _op(name: str, **attributes: object) -> Callable[[Symbol], Symbol]:
    return lambda x: x.new(name, [x], x.shape, **attributes)


def _clip(x: Symbol, low: float, high: float) -> Symbol:
    return x.new("Clip", [x, np.array(low, np.float32), np.array(high, np.float32)], x.shape)


def _relu2(x: Symbol) -> Symbol:
    y = x.new("Relu", [x], x.shape)
    return y * y


def _quick_gelu(x: Symbol) -> Symbol:
    y = x * 1.702
    return x * y.new("Sigmoid", [y], x.shape)


def _sigmoid(x: Symbol) -> Symbol:
    """1 / (1 + e^-x): ONNX Runtime's operator is off by 1e-7 at any x, all of a small probability."""
    return 1.0 / (exp(-1.0 * x) + 1.0)


ACT: dict[str, Callable[[Symbol], Symbol]] = {
    "gelu": _op("Gelu"),
    "gelu_tanh": _op("Gelu", approximate="tanh"),
    "quick_gelu": _quick_gelu,
    "gelu_10": lambda x: _clip(ACT["gelu"](x), -10, 10),
    "relu": _op("Relu"),
    "relu2": _relu2,
    "relu6": lambda x: _clip(x, 0, 6),
    "leaky_relu": _op("LeakyRelu", alpha=0.01),
    "silu": lambda x: x * x.new("Sigmoid", [x], x.shape),
    "mish": lambda x: x * x.new("Tanh", [x.new("Softplus", [x], x.shape)], x.shape),
    "hardswish": _op("HardSwish"),
    "hardsigmoid": _op("HardSigmoid", alpha=1 / 6, beta=0.5),
    "sigmoid": _sigmoid,
    "tanh": _op("Tanh"),
}


def activate(x: Symbol, act: str | None) -> Symbol:
    return x if act is None else ACT[act](x)


def glu(x: Symbol, act: str | None) -> Symbol:
    if len(x.joined) == 2 and x.seam == x.ndim - 1:
        first, second = x.joined
        if first.shape[-1] == second.shape[-1]:
            return activate(first, act) * second
    half = (*x.shape[:-1], x.shape[-1] // 2)
    gate, up = x.graph.node("Split", [x.name], 2, axis=-1, num_outputs=2)
    return activate(Symbol(x.graph, gate, half, x.dtype), act) * Symbol(x.graph, up, half, x.dtype)
