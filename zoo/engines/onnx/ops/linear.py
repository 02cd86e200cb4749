"""Linear layers."""

from __future__ import annotations

from . import packed
from .activations import activate
from .arrays import cat
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
    if y is None:
        y = packed.linear(x, weight, bias)
    if y is None:
        parts = parts_of(weight)
        if len(parts) == 1:
            y, act = _product(x, weight, bias, act), None
        else:
            y = _products(x, parts, bias)
    y = activate(y, act)
    return y if residual is None else y + residual


def _product(x: Symbol, weight: Symbol, bias: Symbol | None, act: str | None = None) -> Symbol:
    """act(x @ weight.T + bias).  Gemm takes the matrix (O, I) without a transposed copy in the file or in memory, and
    ONNX Runtime adds a plain activation that follows it at once.
    """
    O, I = weight.shape  # noqa: E741
    rows = x.reshape(-1, I)
    inputs = [rows, weight] if bias is None else [rows, weight, bias]
    y = activate(x.new("Gemm", inputs, (rows.shape[0], O), transB=1), act)
    return y.reshape(*x.shape[:-1], O)


def parts_of(weight: Symbol) -> list[Symbol]:
    """The matrices of a fused projection, as they are in the checkpoint."""
    graph = weight.graph
    stored = graph.constants.get(weight.name)
    if stored is None or len(stored.parts) == 1:
        return [weight]
    names = [graph.store(part, name=f"{weight.name}.{i}") for i, part in enumerate(stored.parts)]
    return [Symbol(graph, name, graph.constants[name].shape, weight.dtype) for name in names]


def _products(x: Symbol, parts: list[Symbol], bias: Symbol | None) -> Symbol:
    """A fused projection as one product for each part, since the parts are rarely used as one array."""
    found, begin = [], 0
    for part in parts:
        end = begin + part.shape[0]
        own = None if bias is None else bias[begin:end]
        y = packed.linear(x, part, own)
        found.append(_product(x, part, own) if y is None else y)
        begin = end
    return join_parts(found)


def join_parts(found: list[Symbol]) -> Symbol:
    """The parts of a fused projection as one array, which knows them."""
    if len(found) == 1:
        return found[0]
    y = cat(found, -1)
    y.joined, y.seam = tuple(found), y.ndim - 1
    return y
