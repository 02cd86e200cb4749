"""An op as nodes of a graph, run by ONNX Runtime, against its naive twin."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.engines.onnx.ops.dims import evaluate
from zoo.engines.onnx.ops.graph import GraphBuilder
from zoo.engines.onnx.ops.symbol import Symbol, constant
from zoo.engines.onnx.signature import GraphInput
from zoo.engines.onnx.trace import finish

onnx = pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")


HINTS = {"B": 3, "T": 5, "S": 4, "Y": 9, "X": 7}
SIZES = ({"B": 2, "T": 3, "S": 6, "Y": 6, "X": 11}, {"B": 1, "T": 8, "S": 1, "Y": 13, "X": 5})


def numbers(rng, shape, dtype):
    if dtype == "int64":
        return rng.integers(0, 3, shape)
    return rng.random(shape) < 0.7 if dtype == "bool" else rng.normal(size=shape).astype(np.float32)


def check(run, twin, shapes, constants=(), tolerance=1e-5, inputs=None, on_cpu=False, sizes=SIZES):
    """run(symbols, *constants) gives a symbol, or several, and twin(arrays, *constants) what they must be.

    shapes: of each input its dims, names of HINTS or numbers, with the dtype last where it is not float32.
    """
    graph, symbols, described, rng = GraphBuilder(on_cpu=on_cpu), [], [], np.random.default_rng(0)
    for i, shape in enumerate(shapes):
        dtype = shape[-1] if shape[-1] in ("int64", "bool") else "float32"
        dims = tuple(n for n in shape if n != dtype)
        lengths = [graph.input_dim(n, HINTS[n], f"x{i}", j) if isinstance(n, str) else n for j, n in enumerate(dims)]
        described.append(GraphInput(f"x{i}", dims, dtype, 0, ""))
        symbols.append(Symbol(graph, f"x{i}", lengths, np.dtype(dtype)))
    found = run(*symbols, *(constant(graph, a) for a in constants))
    found = found if isinstance(found, tuple) else (found,)
    traced = finish(graph, described, [(f"y{i}", y, False) for i, y in enumerate(found)])
    proto = traced.proto()
    onnx.checker.check_model(proto, full_check=True)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # which follows no variable
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for lengths in sizes:
        arrays = []
        for one in described:
            shape = [lengths[n] if isinstance(n, str) else n for n in one.dims]
            arrays.append(numbers(rng, shape, one.dtype))
        if inputs is not None:
            arrays = inputs(arrays)
        assert all(evaluate(guard, lengths) for guard in traced.signature.guards)
        results = session.run(None, {one.name: a for one, a in zip(described, arrays, strict=True)})
        wanted = twin(*arrays, *constants)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for one, a, b in zip(traced.signature.outputs, results, wanted, strict=True):
            assert str(a.dtype) == one.dtype
            assert a.shape == b.shape
            assert a.shape == tuple(evaluate(str(n), lengths) for n in one.dims)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def random(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)
