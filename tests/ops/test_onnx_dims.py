"""Lengths that are known only when a graph runs: arithmetic, what is assumed of them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from zoo import ops
from zoo.engines.onnx.ops.dims import Dim, evaluate, is_same, text_of
from zoo.engines.onnx.ops.graph import GraphBuilder
from zoo.engines.onnx.ops.symbol import Symbol, constant
from zoo.errors import UnsupportedError


@pytest.fixture
def graph():
    return GraphBuilder()


@pytest.fixture
def lengths(graph):
    return graph.input_dim("B", 3, "x", 0), graph.input_dim("T", 20, "x", 1)


def test_equal_expressions_are_equal_whatever_the_inputs(graph, lengths):
    B, T = lengths
    assert (B + 2) * T - 2 * T == T * B
    assert (4 * B * T) // (2 * T) == 2 * B
    assert (T - 8) // 8 + 1 == T // 8
    assert is_same(B * 0 + 5, 5)
    assert type(T - T) is int
    assert not graph.guards


def test_other_comparisons_are_decided_by_the_trace_and_noted(graph, lengths):
    B, T = lengths
    assert T <= 512
    assert not B > 4
    assert B * T != 7
    assert max(T, 16) is T
    assert list(graph.guards) == ["T <= 512", "B <= 4", "B*T != 7", "T >= 16"]
    assert all(evaluate(guard, {"B": 2, "T": 100}) for guard in graph.guards)
    assert not evaluate("T <= 512", {"T": 513})


def test_a_plain_number_made_of_a_length_fixes_it(graph, lengths):
    assert int(lengths[0]) == 3
    assert lengths[1] / 2 == 10
    assert list(graph.guards) == ["B == 3", "T == 20"]


@pytest.mark.parametrize("sizes", [{"B": 3, "T": 20}, {"B": 1, "T": 37}])
def test_an_expression_says_what_it_comes_to(lengths, sizes):
    B, T = lengths
    found = (T + 5) // 2 * B - T % 3 + 1
    assert isinstance(found, Dim)
    b, t = sizes["B"], sizes["T"]
    assert evaluate(text_of(found), sizes) == (t + 5) // 2 * b - t % 3 + 1


def test_an_expression_of_lengths_is_no_program():
    for text in ("__import__('os')", "B.real", "B if T else 1", "B ** T"):
        with pytest.raises(ValueError, match="not an expression of lengths"):
            evaluate(text, {"B": 1, "T": 2})


def test_what_a_graph_cannot_know_is_refused(graph, lengths):
    x = Symbol(graph, "x", lengths, np.dtype(np.float32))
    with pytest.raises(TypeError, match=r"use shape\[0\]"):
        len(x)
    with pytest.raises(TypeError, match="no branch can depend on them"):
        bool(x > 0)
    with pytest.raises(UnsupportedError, match="known only when its graph runs"):
        ops.to_numpy(x)
    with pytest.raises(UnsupportedError, match="cannot be written to"):
        ops.write_(x, x, x)


def test_what_follows_from_constants_is_a_constant(graph):
    x = constant(graph, np.arange(6.0).reshape(2, 3))
    y = ops.cat([x[:, 1:] * 2 + 1, x[:1, :2].reshape(1, 2)], 0)
    assert ops.to_numpy(y).tolist() == [[3, 5], [9, 11], [0, 1]]
    assert not graph.nodes


def test_a_weight_is_stored_once_and_not_copied(graph):
    weight = np.zeros((30, 40), np.float32)
    first, second = constant(graph, weight), constant(graph, weight)
    assert first.name == second.name
    assert graph.constants[first.name].array() is weight
