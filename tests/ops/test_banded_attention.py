"""Attention within a window by chunks, against its naive twin, on every backend; and its memory."""

from __future__ import annotations

import importlib
import itertools
import tracemalloc

import numpy as np
import pytest

from tests.ops import naive
from tests.ops.arrays import check, normal
from zoo import ops


def inputs(T, window, groups, given):
    q, k, v = normal(2, T, 4, 8, seed=1), normal(2, T, groups, 8, seed=2), normal(2, T, groups, 8, seed=3)
    more = {}
    if "mask" in given:
        more["mask"] = np.arange(T) < np.array([[T], [max(1, T // 3)]])
        more["mask"][0, T // 2] = False
    if "shared" in given:
        there = np.array([[True, True, False], [False] * 3])
        more["shared"] = ops.SharedKeys(normal(2, 3, groups, 8, seed=4), normal(2, 3, groups, 8, seed=5), there)
    return (q, k, v, window), more


@pytest.mark.parametrize(("T", "window"), [(1, 1), (7, 2), (41, 40), (42, 40), (64, 32), (97, 32), (150, 3), (5, 300)])
@pytest.mark.parametrize("groups", [4, 2])
@pytest.mark.parametrize("given", ["", "mask", "shared", "mask shared"])
def test_banded_attention(lib, T, window, groups, given):
    (q, k, v, window), more = inputs(T, window, groups, given)
    wrapped = {name: ops.SharedKeys(*map(lib, x[:3])) if name == "shared" else lib(x) for name, x in more.items()}
    y = ops.banded_attention(lib(q), lib(k), lib(v), window, scale=0.4, **wrapped)
    check(y, naive.banded_attention(q, k, v, window, scale=0.4, **more))


@pytest.mark.parametrize(("T", "size"), [(1, 1), (7, 2), (41, 8), (64, 32), (97, 40), (5, 300)])
@pytest.mark.parametrize("given", ["", "mask", "shared", "mask shared"])
def test_banded_attention_of_blocks(lib, T, size, given):
    (q, k, v, size), more = inputs(T, size, 2, given)
    if "shared" in given:
        more["shared"] = more["shared"]._replace(bias=np.array([0, 1.5, -1], np.float32))
    wrapped = {name: ops.SharedKeys(*map(lib, x)) if name == "shared" else lib(x) for name, x in more.items()}
    y = ops.banded_attention(lib(q), lib(k), lib(v), size, aligned=True, **wrapped)
    check(y, naive.banded_attention(q, k, v, size, aligned=True, **more))


@pytest.mark.parametrize("tokens", [40, 100])
def test_parts_are_computed_one_after_another(monkeypatch, lib, tokens):
    module = importlib.import_module(f"{ops.backend(lib(np.ones(1))).__name__}.attention")
    monkeypatch.setattr(module, "CHUNKS", tokens)
    (q, k, v, window), more = inputs(200, 33, 2, "mask")
    y = ops.banded_attention(lib(q), lib(k), lib(v), window, mask=lib(more["mask"]))
    check(y, naive.banded_attention(q, k, v, window, **more))


@pytest.mark.parametrize(("window", "given"), [*itertools.product((2, 40), ("", "mask", "shared", "mask shared"))])
@pytest.mark.parametrize("on_cpu", [False, True])
def test_banded_attention_in_graphs(window, given, on_cpu):
    from tests.ops import graph_check

    kv = ("B", "S", 2, 8)
    shapes = [("B", "S", 4, 8), kv, kv, ("B", "S", "bool"), ("B", "T", 2, 8), ("B", "T", 2, 8), ("B", "T", "bool")]

    def run(attend):
        def on(q, k, v, mask, keys, values, there):
            more = {"mask": mask} if "mask" in given else {}
            more |= {"shared": ops.SharedKeys(keys, values, there)} if "shared" in given else {}
            return attend(q, k, v, window, **more)

        return on

    sizes = ({"B": 2, "S": 3, "T": 2}, {"B": 1, "S": 41, "T": 1}, {"B": 2, "S": 97, "T": 3})
    graph_check.check(run(ops.banded_attention), run(naive.banded_attention), shapes, on_cpu=on_cpu, sizes=sizes)


@pytest.mark.parametrize("on_cpu", [False, True])
def test_banded_attention_of_blocks_in_graphs(on_cpu):
    from tests.ops import graph_check

    def run(attend):
        def on(q, k, v, mask, keys, values, there, bias):
            return attend(q, k, v, 8, mask=mask, shared=ops.SharedKeys(keys, values, there, bias), aligned=True)

        return on

    kv, shared = ("B", "S", 2, 8), ("B", "T", 2, 8)
    shapes = [("B", "S", 4, 8), kv, kv, ("B", "S", "bool"), shared, shared, ("B", "T", "bool"), ("T",)]
    sizes = ({"B": 2, "S": 3, "T": 2}, {"B": 1, "S": 41, "T": 1}, {"B": 2, "S": 40, "T": 3})
    graph_check.check(run(ops.banded_attention), run(naive.banded_attention), shapes, on_cpu=on_cpu, sizes=sizes)


@pytest.mark.parametrize("count", [None, 1, 2])
def test_true_indices(lib, count):
    mask = np.array([[0, 1, 0, 1, 1], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]], bool)
    for rows in (mask, mask[1:2], mask[:0:-1]):
        _same_places(ops.true_indices(lib(rows), count), naive.true_indices(rows, count))


def _same_places(found, wanted):
    (index, there), (at, exists) = (tuple(map(ops.to_numpy, pair)) for pair in (found, wanted))
    np.testing.assert_array_equal(there, exists)
    np.testing.assert_array_equal(index * there, at)


@pytest.mark.parametrize("count", [None, 1])
def test_true_indices_in_graphs(count):
    from tests.ops import graph_check

    def marked(found):  # places without a token may be any
        return found[0] * found[1], found[1]

    def run(mask, rows):
        index, there = marked(ops.true_indices(mask, count))
        return ops.take_rows(rows, index) * there[:, :, None].to(rows.dtype)

    def twin(mask, rows):
        index, there = marked(naive.true_indices(mask, count))
        return np.take_along_axis(rows, index[:, :, None], 1) * there[:, :, None]

    graph_check.check(lambda *a: ops.mean(run(*a), 1), lambda *a: twin(*a).mean(1), [("B", "T", "bool"), ("B", "T", 3)])


def test_memory_grows_as_the_tokens():
    """The scores of all pairs of 20,000 tokens would take 3.2 GB."""
    q = np.ones((1, 20_000, 2, 8), np.float32)
    tracemalloc.start()
    try:
        ops.banded_attention(q, q, q, 64)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 40 * q.nbytes
