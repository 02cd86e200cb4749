"""Mamba2's state space, on each backend, against a state that is changed token by token."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops import naive
from zoo import ops
from zoo.ops import StatePast

B, G, H, N, P = 2, 2, 6, 8, 5
TOKENS, BEFORE = [1, 5, 64, 65, 150], [-1, 0, 1, 9, 70]


def case(rng, tokens: int, before: int) -> tuple[list[np.ndarray], StatePast | None]:
    """The arguments; rows have `before` tokens in a cache, and one less than that."""

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32)

    def decays(count: int) -> np.ndarray:  # from nearly nothing to nearly all
        return -np.exp(2 * normal(B, count, H) - 2 + np.linspace(-2, 4, H, dtype=np.float32))

    given = [normal(B, tokens, G, N), normal(B, tokens, G, N), normal(B, tokens, H, P), decays(tokens)]
    if before < 0:
        return given, None
    there = np.arange(before) < np.array([[before], [max(0, before - 1)]])
    return given, StatePast(normal(B, before, G, N), normal(B, before, H, P), decays(before), there)


def check(found, wanted):
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-6 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("tokens", TOKENS)
def test_numpy(tokens, before, rng):
    given, past = case(rng, tokens, before)
    check(ops.ssd_scan(*given, past), naive.ssd_scan(*given, past))


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("tokens", TOKENS)
def test_torch(tokens, before, rng):
    torch = pytest.importorskip("torch")
    given, past = case(rng, tokens, before)
    there = None if past is None else StatePast(*map(torch.from_numpy, past))
    check(ops.ssd_scan(*map(torch.from_numpy, given), there).numpy(), naive.ssd_scan(*given, past))


@pytest.mark.parametrize("tokens", [3, 66])
def test_gradients(tokens, rng):
    torch = pytest.importorskip("torch")
    given, past = case(rng, tokens, 4)
    assert past is not None
    wide = [torch.from_numpy(x[:1]).double().requires_grad_() for x in given]
    there = StatePast(*(torch.from_numpy(x[:1]).double() for x in past[:3]), torch.from_numpy(past.there[:1]))
    (ops.ssd_scan(*wide, there) ** 2).sum().backward()
    for i, x in enumerate(wide):
        for at in [(0, 0, *x.shape[2:]), (0, tokens - 2, *x.shape[2:])]:
            at, step, ends = tuple(n - 1 if j > 1 else n for j, n in enumerate(at)), 1e-5, []
            for sign in (1, -1):
                moved = [y.detach().numpy().copy() for y in wide]
                moved[i][at] += sign * step
                ends.append((naive.ssd_scan(*moved, StatePast(*(y.numpy() for y in there))) ** 2).sum())
            slope = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(x.grad[at].item(), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("before", "standard"), [(-1, False), (-1, True), (1, False), (9, True)])
@pytest.mark.parametrize("tokens", TOKENS)
def test_onnx(tokens, before, standard, rng):
    """Lengths of one graph, without a loop in it."""
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
    own = ("q", "k", "v", "decay")
    names = (*own, *(() if past is None else (f"past_{name}" for name in StatePast._fields)))
    for name, x in zip(names, (*arrays, *(past or ())), strict=True):
        length, count = ("T", T) if name in own else ("S", S)
        dtype = "int64" if x.dtype == bool else "float32"
        given.append(GraphInput(name, (B, length, *x.shape[2:]), dtype, -1, name))
        symbols.append(Symbol(graph, name, (B, count, *x.shape[2:]), np.dtype(dtype)))
    before_them = None if past is None else StatePast(*symbols[4:7], symbols[7] > 0)
    traced = finish(graph, given, [("out", ops.ssd_scan(*symbols[:4], before_them), False)])
    proto = traced.proto()
    onnx.checker.check_model(proto, full_check=True)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = dict(zip(names, (*arrays, *(past or ())), strict=True))
    feed = {name: x.astype(np.int64) if x.dtype == bool else x for name, x in feed.items()}
    check(session.run(None, feed)[0], naive.ssd_scan(*arrays, past))
