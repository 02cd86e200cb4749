"""Linear layers."""

from __future__ import annotations

from . import packed
from .activations import activate
from .symbol import Symbol


def linear(
    x: Symbol,
    weight: Symbol,
    bias: Symbol | None,
    act: str | None,
    residual: Symbol | None,
) -> Symbol:
    policy = x.graph.precision
    y = None if policy is None else policy.linear(x, weight, bias)
    y = packed.linear(x, weight, bias) if y is None else y
    y = activate(_product(x, weight, bias) if y is None else y, act)
    return y if residual is None else y + residual


def _product(x: Symbol, weight: Symbol, bias: Symbol | None) -> Symbol:
    """x @ weight.T + bias.  Gemm takes the matrix (O, I) as it lies: no copy of it, in the file or in memory."""
    O, I = weight.shape  # noqa: E741
    rows = x.reshape(-1, I)
    inputs = [rows, weight] if bias is None else [rows, weight, bias]
    return x.new("Gemm", inputs, (rows.shape[0], O), transB=1).reshape(*x.shape[:-1], O)
