"""The ops as nodes of a graph: traced at one size, run by ONNX Runtime at others, against their naive twins."""

from __future__ import annotations

import numpy as np
import pytest
from graph_check import check, random

from tests.ops import naive
from zoo import ops
from zoo.engines.onnx.ops.graph import GraphBuilder
from zoo.engines.onnx.ops.symbol import Symbol, constant
from zoo.ops import on_numpy

ACTS = sorted({act for act in ops.ACTIVATIONS.values() if act})


@pytest.mark.parametrize("act", [None, *ACTS])
def test_linear(act):
    check(
        lambda x, r, w, b: ops.linear(x, w, b, act, r),
        lambda x, r, w, b: naive.linear(x, w, b, act, r),
        [("B", "T", 6), ("B", "T", 9)],
        [random(9, 6), random(9)],
    )


def test_small_probabilities_keep_their_digits():
    check(
        lambda x: 1e5 * ops.activate(x - 12.0, "sigmoid"),
        lambda x: 1e5 / (1 + np.exp(12 - x.astype(np.float64))),
        [("B", "T")],
    )


def test_linear_of_several_matrices_and_of_rows():
    parts = random(5, 6), random(3, 6)
    whole, bias = on_numpy.rows(parts), random(8)

    def run(x, a):
        y = ops.linear(x, constant(x.graph, whole), constant(x.graph, bias))
        return y, y[:, :, :5], y[..., 2:7], y.reshape(*y.shape[:2], 8, -1)[:, :, 5:], ops.linear(x[:, 0], a)

    def twin(x, a):
        y = naive.linear(x, np.concatenate(parts), bias)
        return y, y[..., :5], y[..., 2:7], y[:, :, 5:, None], naive.linear(x[:, 0], a)

    check(run, twin, [("B", "T", 6)], parts[:1])


@pytest.mark.parametrize("groups", [4, 2, 1])
@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("given", ["", "mask", "start", "start mask", "bias", "start mask bias", "start blocks"])
def test_attention(groups, given, window):
    shapes = {"mask": ("B", "S", "bool"), "start": ("B", "int64"), "bias": ("B", 1, "T", "S")}
    shapes |= {"blocks": ("B", "T", "int64")}
    names = given.split()

    def call(f):
        return lambda q, k, v, *more: f(q, k, v, **dict(zip(names, more, strict=True)), window=window, scale=0.3)

    def hiding(arrays):
        for name, array in zip(names, arrays[3:], strict=True):
            if name == "mask":
                array[-1] = False  # no key at all
            if name == "bias":
                array[0, 0, 0] = -np.inf
            if name == "blocks":
                array.sort(1)
        return arrays

    kv = ("B", "S", groups, 6)
    inputs = [("B", "T", 4, 6), kv, kv, *(shapes[name] for name in names)]
    check(call(ops.attention), call(naive.attention), inputs, inputs=hiding)


@pytest.mark.parametrize("given", ["", "mask", "start"])
def test_attention_with_a_cap(given):
    shapes = {"mask": ("B", "S", "bool"), "start": ("B", "int64")}

    def call(f):
        return lambda q, k, v, *more: f(q, k, v, **dict(zip(given.split(), more, strict=True)), softcap=1.5)

    for groups in (4, 2):
        kv = ("B", "S", groups, 6)
        check(call(ops.attention), call(naive.attention), [("B", "T", 4, 6), kv, kv, *map(shapes.get, given.split())])


@pytest.mark.parametrize("given", ["", "mask", "start"])
def test_attention_with_sinks(given):
    shapes = {"mask": ("B", "S", "bool"), "start": ("B", "int64")}
    sinks = np.array([-3, 0, 0.5, 2], np.float32)

    def call(f):
        return lambda q, k, v, *more: f(q, k, v, **dict(zip([*given.split(), "sinks"], more, strict=True)))

    for groups in (4, 2):
        inputs = [("B", "T", 4, 6), *[("B", "S", groups, 6)] * 2, *map(shapes.get, given.split())]
        check(call(ops.attention), call(naive.attention), inputs, [sinks])


def test_bounds():
    for bounds in ((None, 0.5), (-0.5, 0.5), (-0.2, None)):
        check(lambda x, b=bounds: ops.clip(x, *b), lambda x, b=bounds: naive.clip(x, *b), [("B", "T", 5)])


@pytest.mark.parametrize("hidden", ["nothing", "one key", "a row", "everything"])
def test_attention_looks_at_its_mask_when_it_runs(hidden):
    def hiding(arrays):
        mask = arrays[3]
        mask[:] = hidden != "everything"
        if hidden in ("one key", "a row"):
            mask[-1, slice(-1, None) if hidden == "one key" else slice(None)] = False
        return arrays

    def twice(f):
        def call(q, k, v, mask):  # the second layer shares what the first has made, inside a branch nothing
            first = f(q, k, v, mask=mask, scale=0.3)
            return f(first, k, v, mask=mask), f(q, k, v)

        return call

    kv, inputs = ("B", "S", 4, 8), ("B", "S", "bool")
    check(twice(ops.attention), twice(naive.attention), [("B", "T", 4, 8), kv, kv, inputs], inputs=hiding, on_cpu=True)


def test_only_graphs_of_this_machine_have_branches():
    def nodes(**options):
        graph = GraphBuilder(**options)
        q = Symbol(graph, "q", (2, 5, 4, 8), np.dtype(np.float32))
        ops.attention(q, q, q, mask=Symbol(graph, "mask", (2, 5), np.dtype(bool)))
        return [node.op for node in graph.nodes]

    assert nodes(on_cpu=True).count("If") == 1
    assert "If" not in nodes() + nodes(standard=True, on_cpu=True)


def test_norms():
    weights = [random(6), random(6)]
    shapes = [("B", "T", 6), ("B", "T", 6)]
    check(
        lambda x, r, w, b: (ops.layer_norm(x, w, b, 1e-5, r), *ops.add_layer_norm(x, r, w, b, 1e-6)),
        lambda x, r, w, b: (naive.layer_norm(x, w, b, 1e-5, r), *naive.add_layer_norm(x, r, w, b, 1e-6)),
        shapes,
        weights,
    )
    check(
        lambda x, r, w: (ops.rms_norm(x, w, 1e-5), *ops.add_rms_norm(x, r, w, 1e-6)),
        lambda x, r, w: (naive.rms_norm(x, w, 1e-5), *naive.add_rms_norm(x, r, w, 1e-6)),
        shapes,
        weights[:1],
    )


def test_softmax_of_a_row_of_minus_infinity_is_zeros():
    def hiding(arrays):
        arrays[0][0, 0] = -np.inf
        arrays[0][0, -1, 2:] = -np.inf
        return arrays

    check(ops.softmax, naive.softmax, [("B", "T", 5)], inputs=hiding)


@pytest.mark.parametrize(("size", "interleaved"), [(6, False), (6, True), (8, False), (8, True)])
def test_rotary_positions(size, interleaved):
    frequencies = (1.0, 0.3, 0.01)

    def run(x, at):
        return ops.rope(x, *ops.rotary(at, frequencies, 1.2, x), interleaved=interleaved)

    def wanted(x, at):
        return naive.rope(x, *naive.rotary(at, frequencies, 1.2), interleaved=interleaved)

    check(run, wanted, [("B", "T", 2, size), ("B", "T", "int64")])


@pytest.mark.parametrize("act", ["silu", "gelu", None])
def test_glu(act):
    check(lambda x: ops.glu(x, act), lambda x: naive.glu(x, act), [("B", "T", 10)])


def test_lookups():
    check(lambda i, t: ops.embedding(i, t), naive.embedding, [("B", "T", "int64")], [random(3, 6)])
    check(
        lambda i, t: ops.gather_bias(t, i), lambda i, t: naive.gather_bias(t, i), [("T", "S", "int64")], [random(3, 4)]
    )
    check(
        lambda i, t: ops.gather_bias(t, i),
        lambda i, t: naive.gather_bias(t, i),
        [("B", "T", "S", "int64")],
        [random(3, 4)],
    )


@pytest.mark.parametrize(("groups", "kept_groups", "k"), [(1, 1, 3), (4, 2, 3), (3, 1, 1)])
@pytest.mark.parametrize("normalise", [False, True])
def test_gates_by_groups(groups, kept_groups, k, normalise):
    def through(f):
        return lambda x, bias: f.grouped_gates(x, bias, k, groups, kept_groups, normalise)

    check(through(ops), through(naive), [("B", 12)], [random(12)])


@pytest.mark.parametrize("normalise", [False, True])
def test_experts(normalise):
    def through(f):
        def run(x, a, b, c):
            return f.combine_experts(x, f.top_k_gates(x, 2, normalise), [lambda rows, w=w: rows * w for w in (a, b, c)])

        return run

    check(through(ops), through(naive), [("B", 3)], random(3, 3))


def test_norm_of_groups_of_channels():
    def through(f):
        return lambda x, w, b: f.group_norm(x, w, b, 2, 1e-5)

    check(through(ops), through(naive), [("B", "Y", "X", 6)], [*random(2, 6)])


def test_scores_of_queries_and_keys():
    check(ops.scores, naive.scores, [("B", "T", 2, 3), ("B", "S", 2, 3)])


@pytest.mark.parametrize("of_keys", [False, True])
def test_distances(of_keys):
    def run(x, w):
        distances = ops.bucket(ops.arange(2 * x.shape[1], x), (1, 2, 5))
        rows = ops.embedding(distances, w).reshape(distances.shape[0], 2, 3)
        return distances, ops.relative_scores(x, rows, of_keys)

    def twin(x, w):
        distances = naive.bucket(np.arange(2 * x.shape[1]), (1, 2, 5))
        return distances, naive.relative_scores(x, w[distances].reshape(-1, 2, 3), of_keys)

    check(run, twin, [("B", "T", 2, 3)], [random(4, 6)])


def test_arrays_made_joined_and_chosen_from():
    def run(x, m, w):
        B, T = m.shape
        rows = ops.cat([ops.cat([w[None, None]] * B, 0), x[:, 1:], x[:, -1:]], 1)
        even = ops.cat([ops.arange(T, x)[None, :, None]] * 2, 2)[:, 0::2] - T
        return (
            rows,
            even,
            ops.where(m[:, :, None], x, w),
            ops.zeros((T, B, 2), x),
            x + ops.place(np.arange(4) / 3, x),
            ops.mean(x, 1),
            ops.exp(x),
            ops.softplus(x),
            ops.log(x * x + 0.5),
            ops.bucket(x, (-1, 0, 1)),
            ops.add_scaled(x, x, w),
        )

    def twin(x, m, w):
        B, T = m.shape
        rows = np.concatenate([np.broadcast_to(w, (B, 1, 4)), x[:, 1:], x[:, -1:]], 1)
        even = np.stack([np.arange(T)] * 2, 1)[None, 0::2] - T
        return (
            rows,
            even,
            naive.where(m[:, :, None], x, w),
            np.zeros((T, B, 2)),
            x + naive.place(np.arange(4) / 3, x),
            naive.mean(x, 1),
            naive.exp(x),
            naive.softplus(x),
            naive.log(x * x + 0.5),
            naive.bucket(x, (-1, 0, 1)),
            x + w * x,
        )

    check(run, twin, [("B", "T", 4), ("B", "T", "bool")], [random(4)])


def test_arithmetic_of_integers_and_masks():
    def both(i, m):
        seen = ops.cumsum(m, 1) * m + 2
        return (
            i // 2,
            i % 2,
            seen,
            ops.cumsum(i, 0),
            i / (i[:, -1:] + 1e-6),
            (i > 1) & m | (i != 0),
            (i[:, None] * 0 + 7),
        )

    def twin(i, m):
        seen = naive.cumsum(m, 1) * m + 2
        others = naive.cumsum(i, 0), i / (i[:, -1:] + 1e-6), (i > 1) & m | (i != 0), i[:, None] * 0 + 7
        return i // 2, i % 2, seen, *others

    check(both, twin, [("B", "T", "int64"), ("B", "T", "bool")])


def test_sinusoids():
    check(lambda x: ops.sinusoids(x, 6, x), lambda x: naive.sinusoids(x, 6), [("B", "T")])
