"""The gated delta rule, on each backend, against a state that is changed token by token."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops import naive
from zoo import ops
from zoo.ops import StatePast

B, G, H, K, V = 2, 2, 4, 8, 6


def case(rng, tokens: int, before: int) -> tuple[list[np.ndarray], StatePast | None]:
    """The arguments; rows have `before` tokens in a cache, and one less than that."""

    def unit(*shape: int) -> np.ndarray:
        x = rng.standard_normal(shape, np.float32) + np.float32(0.5)
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    q, k, v = unit(B, tokens, G, K), unit(B, tokens, G, K), rng.standard_normal((B, tokens, H, V), np.float32)
    rate, rates = rng.random((B, tokens, H), np.float32), np.exp(rng.standard_normal(H, np.float32) - 2)
    given = [q, k, v, -rates * rng.random((B, tokens, H), np.float32), rate]
    if before < 0:
        return given, None
    values, decays = rng.standard_normal((B, before, H, V), np.float32), -rates * rng.random((B, before, H), np.float32)
    there = np.arange(before) < np.array([[before], [max(0, before - 1)]])
    return given, StatePast(unit(B, before, G, K), values, decays, there)


def check(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=0, atol=5e-6 * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("before", [-1, 0, 1, 9])
@pytest.mark.parametrize("tokens", [1, 5, 64, 65, 150])
def test_numpy(tokens, before, rng):
    given, past = case(rng, tokens, before)
    check(ops.delta_rule(*given, past), naive.delta_rule(*given, past))


@pytest.mark.parametrize("before", [-1, 0, 1, 9])
@pytest.mark.parametrize("tokens", [1, 5, 64, 65, 150])
def test_torch(tokens, before, rng):
    torch = pytest.importorskip("torch")
    given, past = case(rng, tokens, before)
    there = None if past is None else StatePast(*map(torch.from_numpy, past))
    found = ops.delta_rule(*map(torch.from_numpy, given), there)
    check([one.numpy() for one in found], naive.delta_rule(*given, past))


@pytest.mark.parametrize(("before", "standard"), [(-1, False), (-1, True), (1, False), (9, True)])
@pytest.mark.parametrize("tokens", [1, 5, 65, 150])
def test_onnx(tokens, before, standard, rng):
    """Lengths of one graph; after a cache, and in an export, there is no loop in it, and 256 tokens are the most."""
    onnx = pytest.importorskip("onnx")
    ort = pytest.importorskip("onnxruntime")
    from zoo.engines.onnx.ops.graph import GraphBuilder
    from zoo.engines.onnx.ops.symbol import Symbol
    from zoo.engines.onnx.signature import GraphInput
    from zoo.engines.onnx.trace import finish

    arrays, past = case(rng, tokens, before)
    graph, given, symbols = GraphBuilder(standard), [], []
    T = graph.input_dim("T", 5, "q", 1)
    S = graph.input_dim("S", 7, "past_keys", 1)
    names = ("q", "k", "v", "decay", "rate", *(() if past is None else (f"past_{name}" for name in StatePast._fields)))
    for name, x in zip(names, (*arrays, *(past or ())), strict=True):
        own, length = ("T", T) if name in ("q", "k", "v", "decay", "rate") else ("S", S)
        dtype = "int64" if x.dtype == bool else "float32"
        given.append(GraphInput(name, (B, own, *x.shape[2:]), dtype, -1, name))
        symbols.append(Symbol(graph, name, (B, length, *x.shape[2:]), np.dtype(dtype)))
    before_them = None if past is None else StatePast(*symbols[5:8], symbols[8] > 0)
    found = ops.delta_rule(*symbols[:5], before_them)
    traced = finish(graph, given, [("out", found[0], False), ("changes", found[1], False)])
    proto = traced.proto()
    onnx.checker.check_model(proto, full_check=True)
    assert any(node.op_type == "Loop" for node in proto.graph.node) == (past is None and not standard)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = dict(zip(names, (*arrays, *(past or ())), strict=True))
    feed = {name: x.astype(np.int64) if x.dtype == bool else x for name, x in feed.items()}
    check(session.run(None, feed), naive.delta_rule(*arrays, past))
    if past is not None or standard:
        longer = {n: x if n.startswith("past") else np.repeat(x[:, :1], 257, 1) for n, x in feed.items()}
        with pytest.raises(Exception, match="broadcast"):
            session.run(None, longer)
