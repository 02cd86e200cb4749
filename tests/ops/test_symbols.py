"""Symbols that a GRU writes, on each backend, against the naive twin and torch's own cell."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops import naive
from zoo import ops

B, S, C, H, V, MOST = 3, 5, 4, 6, 7, 9


@pytest.fixture(params=[0.0, 3.0, 50.0], ids=["does not end", "ends", "ends at once"])
def case(request, rng):
    """What is read, keys, weights and, by the last symbol's bias, when all rows have ended."""
    shapes = [(H, H), (H,), (1, H), (3 * H, C + V), (3 * H, H), (3 * H,), (3 * H,), (H, H), (H,), (V, H), (V,)]
    weights = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    weights[-1][-1] = request.param - 3
    x, keys = (rng.normal(size=(B, S, n)).astype(np.float32) for n in (C, H))
    return x, keys, ops.GruWeights(*weights)


def check(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * np.abs(b).max())


def test_numpy(case):
    wanted = naive.write_symbols(*case, MOST)
    assert 1 <= wanted[0].shape[1] <= MOST
    found = ops.write_symbols(*case, MOST)
    assert found[0].dtype == np.float32
    check(found, wanted)


def test_torch(case):
    torch = pytest.importorskip("torch")
    x, keys, weights = case
    given = ops.GruWeights(*map(torch.from_numpy, weights))
    found = ops.write_symbols(torch.from_numpy(x), torch.from_numpy(keys), given, MOST)
    check([one.numpy() for one in found], naive.write_symbols(*case, MOST))
    cell = torch.nn.GRUCell(C + V, H)
    for name, one in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), given[3:7], strict=True):
        getattr(cell, name).data.copy_(one)
    seen = torch.softmax(torch.tanh(torch.from_numpy(keys) + given.query_bias) @ given.score[0], 1)
    first = torch.cat([(seen[:, None] @ torch.from_numpy(x))[:, 0], torch.eye(V)[torch.zeros(B, dtype=int)]], 1)
    np.testing.assert_allclose(found[1][:, 0], cell(first, torch.zeros(B, H)).detach(), atol=1e-5)


def test_onnx(case):
    onnx = pytest.importorskip("onnx")
    ort = pytest.importorskip("onnxruntime")
    from zoo.engines.onnx.ops.graph import GraphBuilder
    from zoo.engines.onnx.ops.symbol import Symbol, constant
    from zoo.engines.onnx.signature import GraphInput
    from zoo.engines.onnx.trace import finish

    x, keys, weights = case
    graph, given = GraphBuilder(), []
    for name, n in (("x", C), ("keys", H)):
        given.append(
            Symbol(graph, name, [graph.input_dim(one, 2, name, i) for i, one in enumerate("BS")] + [n], x.dtype)
        )
    found = ops.write_symbols(*given, ops.GruWeights(*(constant(graph, one) for one in weights)), MOST)
    described = [GraphInput(name, ("B", "S", n), "float32", 0, "") for name, n in (("x", C), ("keys", H))]
    proto = finish(graph, described, [(f"y{i}", y, False) for i, y in enumerate(found)]).proto()
    onnx.checker.check_model(proto, full_check=True)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    check(session.run(None, {"x": x, "keys": keys}), naive.write_symbols(*case, MOST))
