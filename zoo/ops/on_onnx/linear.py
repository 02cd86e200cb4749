"""Linear layers."""

from __future__ import annotations

from .activations import activate
from .symbol import Symbol, constant


def linear(
    x: Symbol,
    weight: Symbol | tuple[Symbol, ...],
    bias: Symbol | None,
    act: str | None,
    residual: Symbol | None,
) -> Symbol:
    whole = _joined(weight) if isinstance(weight, tuple) else weight
    policy = x.graph.precision
    y = None if policy is None else policy.linear(x, whole, bias)
    y = activate(_product(x, whole, bias) if y is None else y, act)
    return y if residual is None else y + residual


def _joined(parts: tuple[Symbol, ...]) -> Symbol:
    """Matrices whose rows follow one another, as one constant."""
    graph = parts[0].graph
    return constant(graph, tuple(array for part in parts for array in graph.constants[part.name].parts))


def _product(x: Symbol, weight: Symbol, bias: Symbol | None) -> Symbol:
    """x @ weight.T + bias.  Gemm takes the matrix (O, I) as it lies: no copy of it, in the file or in memory."""
    O, I = weight.shape  # noqa: E741
    rows = x.reshape(-1, I)
    inputs = [rows, weight] if bias is None else [rows, weight, bias]
    return x.new("Gemm", inputs, (rows.shape[0], O), transB=1).reshape(*x.shape[:-1], O)
