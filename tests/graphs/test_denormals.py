"""Numbers below 1.2e-38 while ONNX Runtime computes, and in the thread that called it afterwards."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from zoo.engines.onnx.denormals import FLUSHES
from zoo.engines.onnx.ops.graph import GraphBuilder
from zoo.engines.onnx.ops.symbol import FLOAT, Symbol
from zoo.engines.onnx.session import Session
from zoo.engines.onnx.signature import GraphInput
from zoo.engines.onnx.trace import finish

pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")

TINY = np.full(1 << 18, 1e-20, np.float32)


@pytest.mark.skipif(not FLUSHES, reason="needs Linux on x86-64")
def test_tiny_products_are_zero_in_a_graph_and_nowhere_else():
    graph = GraphBuilder()
    x = Symbol(graph, "x", (graph.input_dim("N", 3, "x", 0),), FLOAT)
    traced = finish(graph, [GraphInput("x", ("N",), "float32", 0, "x")], [("y", x * x, False)])
    session = Session(traced.proto().SerializeToString(), "CPUExecutionProvider")
    assert (TINY * TINY > 0).all()  # making the session changed nothing here
    found = []

    def run():
        found.append(session({"x": TINY})[0])
        assert (TINY * TINY > 0).all()
        found.append(True)

    run()
    other = threading.Thread(target=run)  # one that has made no session
    other.start()
    other.join()
    assert len(found) == 4
    assert not found[0].any()
    assert not found[2].any()
