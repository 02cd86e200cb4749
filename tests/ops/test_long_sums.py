"""Means and norms over long axes keep their digits on every engine: against float64, where naive sums lose them."""

from __future__ import annotations

import numpy as np
import pytest
from graph_check import GraphBuilder, GraphInput, Symbol, finish, ort

from zoo import ops
from zoo.checkpoint.sentence_encoder import pool
from zoo.engines.onnx.trace import Traced

LENGTHS = (1, 7, 128, 129, 197, 1500, 51520, 51521, 300_000)
# Numbers around 1, around 0, and almost all alike, in which every addition is rounded to the same side.
KINDS = {"spread": (0.5, 1.0), "centred": (-0.5, 1.0), "alike": (0.1, 1e-3)}


def numbers(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    low, width = KINDS[kind]
    return (low + width * np.random.default_rng(0).random(shape)).astype(np.float32)


def on_onnx(run, dims, x: np.ndarray) -> np.ndarray:
    """run(symbol), traced for dims (names, or numbers), of x."""
    graph = GraphBuilder(on_cpu=True)
    lengths = [graph.input_dim(n, 5 + i, "x", i) if isinstance(n, str) else n for i, n in enumerate(dims)]
    y = run(Symbol(graph, "x", lengths, np.dtype(np.float32)))
    traced: Traced = finish(graph, [GraphInput("x", tuple(dims), "float32", 0, "")], [("y", y, False)])
    assert not traced.signature.guards
    session = ort.InferenceSession(traced.proto().SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", LENGTHS)
def test_means(length, kind):
    x = numbers(kind, (2, length, 3))
    wanted, scale = x.mean(1, dtype=np.float64), np.abs(x).max()
    found = {
        "rows": ops.mean(x, 1),
        "columns": ops.mean(np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, 2)), 2, 1), 1),
        "reversed": ops.mean(x[:, ::-1], -2),
        "first axis": ops.mean(np.moveaxis(x, 1, 0), 0),
        "last axis": ops.mean(np.moveaxis(x, 1, 2), 2),
        "fixed graph": on_onnx(lambda s: ops.mean(s, 1), ("B", length, 3), x),
        "dynamic graph": on_onnx(lambda s: ops.mean(s, 1), ("B", "N", 3), x),
        "graph of a last axis": on_onnx(lambda s: ops.mean(s, -1), ("B", 3, "N"), np.moveaxis(x, 1, 2).copy()),
    }
    for name, y in found.items():
        assert y.dtype == np.float32, name
        assert np.abs(y - wanted).max() <= 3e-6 * scale, name


def test_means_of_images_of_any_size():
    x = numbers("alike", (1, 224, 230, 4))
    y = on_onnx(lambda s: ops.mean(s.reshape(s.shape[0], -1, s.shape[3]), 1), ("B", "Y", "X", 4), x)
    np.testing.assert_allclose(y, x.mean((1, 2), dtype=np.float64), rtol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(4, 5), (64, 70), (300, 250)])
def test_group_norms(size, kind):
    x = numbers(kind, (1, *size, 8))
    weight, bias = np.linspace(0.5, 2, 8, dtype=np.float32), np.linspace(-1, 1, 8, dtype=np.float32)
    wide = x.astype(np.float64).reshape(1, *size, 2, 4)
    centred = wide - wide.mean((1, 2, 4), keepdims=True)
    normed = centred / np.sqrt((centred**2).mean((1, 2, 4), keepdims=True) + 1e-5)
    wanted = normed.reshape(x.shape) * weight + bias
    for y in (
        ops.group_norm(x, weight, bias, 2, 1e-5),
        on_onnx(lambda s: ops.group_norm(s, s.constant(weight), s.constant(bias), 2, 1e-5), ("B", "Y", "X", 8), x),
    ):
        assert np.abs(y - wanted).max() <= 1e-5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [48, 4096, 60_000])
def test_norms_and_softmax_of_long_rows(length, kind):
    x = numbers(kind, (3, length))
    wide, ones, zeros = x.astype(np.float64), np.ones(length, np.float32), np.zeros(length, np.float32)
    centred = wide - wide.mean(-1, keepdims=True)
    raised = np.exp(wide - wide.max(-1, keepdims=True))
    wanted = {
        "layer_norm": centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5),
        "rms_norm": wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5),
        "softmax": raised / raised.sum(-1, keepdims=True) * length,
    }
    many = np.concatenate([x] * 20)  # on NumPy few rows go another way than many
    for rows in (x, many):
        again = {name: np.concatenate([y] * (len(rows) // 3)) for name, y in wanted.items()}
        found = {
            "layer_norm": (ops.layer_norm(rows, ones, zeros, 1e-5),),
            "rms_norm": (ops.rms_norm(rows, ones, 1e-5),),
            "softmax": (ops.softmax(rows) * np.float32(length),),
        }
        if rows is x:
            found["layer_norm"] += (
                on_onnx(lambda s: ops.layer_norm(s, s.constant(ones), s.constant(zeros), 1e-5), ("B", length), x),
            )
            found["rms_norm"] += (on_onnx(lambda s: ops.rms_norm(s, s.constant(ones), 1e-5), ("B", length), x),)
            found["softmax"] += (on_onnx(ops.softmax, ("B", "N"), x) * np.float32(length),)
        for name, several in found.items():
            for y in several:
                assert np.abs(y - again[name]).max() <= 1e-5, (name, len(rows))


@pytest.mark.parametrize("mode", ["mean", "weightedmean", "mean_sqrt_len_tokens"])
def test_pooling_of_long_texts(mode):
    x = numbers("alike", (2, 20_000, 4))
    mask = np.arange(20_000) < np.array([[20_000], [7_001]])
    wanted = pool(x.astype(np.float64), mask, (mode,))
    np.testing.assert_allclose(pool(x, mask, (mode,)), wanted, rtol=2e-6)
