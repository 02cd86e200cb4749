"""Copies of packed matrices for products of one row: the same products, in bounded memory, and gone with the matrix."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from test_quant_tensors import NARROW, random_rows

from zoo import ops
from zoo.ops.on_numpy import byte_copies
from zoo.ops.on_numpy import threads as worker_threads
from zoo.quant import QUANT_TYPES, QuantRows, QuantTensor

PACKED = [name for name in NARROW if not QUANT_TYPES[name].is_plain]


@pytest.fixture(autouse=True)
def _no_copies(monkeypatch):
    monkeypatch.setattr(byte_copies, "_copies", type(byte_copies._copies)())
    monkeypatch.setattr(byte_copies, "_sizes", [])


def copies():
    return [copy for copy in byte_copies._copies.values() if copy]


@pytest.mark.parametrize("columns", [256, 97])
@pytest.mark.parametrize("name", PACKED)
def test_the_product_stays_the_same(name, columns, rng):
    """The first is by the file's bytes, the others by the copy, if there is one."""
    weight = QuantTensor([random_rows(rng, name, 300, columns), random_rows(rng, name, 5, columns)])
    x = rng.standard_normal((1, columns)).astype(np.float32)
    wanted = x.astype(np.float64) @ weight.dequantise().astype(np.float64).T
    for turn in range(3):
        np.testing.assert_allclose(ops.linear(x, weight), wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())
        assert len(copies()) == (2 if turn and name not in byte_copies.IN_BYTES else 0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_matrix_of_several_tiles(rng, monkeypatch, threads):
    """Shares of threads begin and end inside of tiles."""
    monkeypatch.setattr(byte_copies, "TILE", 96 * 64)
    monkeypatch.setattr(worker_threads, "MIN_PARALLEL_NS", 0)
    monkeypatch.setattr(worker_threads, "_chosen", threads)
    weight = QuantTensor([random_rows(rng, "Q4_1", 300, 96), random_rows(rng, "Q6_K", 70, 96)])
    x = rng.standard_normal((1, 96)).astype(np.float32)
    wanted = x @ weight.dequantise().T
    for _ in range(3):
        np.testing.assert_allclose(ops.linear(x, weight), wanted, atol=2e-5 * np.abs(wanted).max())
    assert sorted(map(len, copies())) == [3, 5]


def test_rows_in_another_order(rng):
    rows = random_rows(rng, "Q4_0", 64, 96)
    rows = QuantRows(rows.kind, rows.columns, rows.arrays, order=rng.permutation(64))
    x = rng.standard_normal((1, 96)).astype(np.float32)
    wanted = x @ rows.dequantise().T
    for _ in range(3):
        np.testing.assert_allclose(ops.linear(x, QuantTensor([rows])), wanted, atol=2e-5 * np.abs(wanted).max())


def test_memory_is_bounded(rng, monkeypatch):
    monkeypatch.setattr(byte_copies, "MAX_BYTES", 3 * 64 * 96)
    x = rng.standard_normal((1, 96)).astype(np.float32)
    weights = [QuantTensor([random_rows(rng, "Q4_0", 64, 96)]) for _ in range(5)]
    for _ in range(3):
        for weight in weights:
            ops.linear(x, weight)
    assert len(copies()) == 2  # the scales count too
    assert sum(byte_copies._sizes) == sum(tile.nbytes for copy in copies() for tile in copy) <= byte_copies.MAX_BYTES
    del weights, weight
    gc.collect()
    assert not copies()
    assert not byte_copies._sizes


def test_several_rows_make_no_copies(rng):
    weight = QuantTensor([random_rows(rng, "Q4_0", 64, 96)])
    for _ in range(3):
        ops.linear(rng.standard_normal((2, 96)).astype(np.float32), weight)
    assert not byte_copies._copies
