"""The ops of Llama, and products with 16-bit matrices, against their float64 twins: odd shapes, strides, threads.

Tolerance: float32 rounds sums of up to a few thousand products to about 1e-6 of their size.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops import naive
from zoo import ops
from zoo.errors import InputError
from zoo.ops.on_numpy import blas, quantised, threads
from zoo.quant import QUANT_TYPES as FORMS
from zoo.quant import QuantRows, QuantTensor, float_tensor

FEW_AND_MANY = [(1, 1), (2, 3), (3, 40), (1, 300)]  # row-major, feature-major, several blocks


@pytest.fixture(params=["row-major", "feature-major"])
def make(request, rng):
    """Random (..., D) in memory of that shape, or of shape (D, ...)."""

    def array(*shape):
        x = rng.standard_normal(shape, np.float32)
        if request.param == "row-major":
            return x
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, -1, 0)), 0, -1)

    return array


def check(found, wanted, tolerance=3e-6):
    found = ops.to_numpy(found)
    assert found.dtype == np.float32
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize(("rows", "tokens"), FEW_AND_MANY)
def test_rms_norm(rows, tokens, make, lib, rng):
    x, weight = make(rows, tokens, 37), rng.standard_normal(37, np.float32)
    check(ops.rms_norm(lib(x), lib(weight), 0.01), naive.rms_norm(x, weight, 0.01))


@pytest.mark.parametrize(("rows", "tokens"), FEW_AND_MANY)
def test_add_rms_norm(rows, tokens, make, lib, rng):
    x, r, weight = make(rows, tokens, 37), make(rows, tokens, 37), rng.standard_normal(37, np.float32)
    before = x.copy(), r.copy()
    found = ops.add_rms_norm(lib(x), lib(r), lib(weight), 0.01)
    for a, b in zip(found, naive.add_rms_norm(x, r, weight, 0.01), strict=True):
        check(a, b)
    for a, b in zip((x, r), before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_the_norm_of_a_sum_is_of_the_sum_as_it_is_rounded(norm):
    torch = pytest.importorskip("torch", reason="needs torch, the backend that has narrow floats")
    x, r, w, b = (torch.randn(50, 64, generator=torch.manual_seed(i)).bfloat16() for i in range(4))
    normed, total = ops.add_rms_norm(x, r, w[0], 1e-5) if norm == "rms" else ops.add_layer_norm(x, r, w[0], b[0], 1e-5)
    assert torch.equal(total, x + r)
    alone = ops.rms_norm(total, w[0], 1e-5) if norm == "rms" else ops.layer_norm(total, w[0], b[0], 1e-5)
    assert torch.equal(normed, alone)


def test_rms_norm_rounds_before_it_multiplies():
    torch = pytest.importorskip("torch", reason="needs torch, the backend that has narrow floats")
    x = torch.randn(50, 64, generator=torch.manual_seed(0)).bfloat16()
    weight = torch.randn(64, generator=torch.manual_seed(1)).bfloat16()
    wide = x.float()
    wanted = weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).bfloat16()
    assert torch.equal(ops.rms_norm(x, weight, 1e-5), wanted)


@pytest.mark.parametrize(("rows", "tokens"), FEW_AND_MANY)
@pytest.mark.parametrize("shared", [True, False])
def test_rope(rows, tokens, shared, make, lib, rng):
    x = make(rows, tokens, 5 * 6).reshape(rows, tokens, 5, 6)
    positions = rng.integers(0, 500, (1 if shared else rows, tokens))
    frequencies = (1.0, 0.125, 0.001)
    found = ops.rotary(lib(positions), frequencies, 1.5, lib(x))
    wanted = naive.rotary(positions, frequencies, 1.5)
    for a, b in zip(found, wanted, strict=True):
        check(a, b, 1e-4)  # float32 has angles of 500 radians to 3e-5
    check(ops.rope(lib(x), *found), naive.rope(x, *(ops.to_numpy(a) for a in found)))


@pytest.mark.parametrize(("rows", "tokens"), FEW_AND_MANY)
@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("size", [6, 10])
def test_rope_of_pairs_and_of_a_part(rows, tokens, interleaved, size, make, lib, rng):
    x = make(rows, tokens, 5 * size).reshape(rows, tokens, 5, size)
    cos, sin = naive.rotary(rng.integers(0, 50, (rows, tokens)), (1.0, 0.125, 0.001), 1.0)
    turn = cos.astype(np.float32), sin.astype(np.float32)
    found = ops.rope(lib(x), *map(lib, turn), interleaved=interleaved)
    check(found, naive.rope(x, *turn, interleaved=interleaved))


@pytest.mark.parametrize("tokens", [1, 3, 40])
@pytest.mark.parametrize(("K", "interleaved"), [(6, False), (6, True), (8, False)])
def test_rope_into_a_cache(tokens, K, interleaved, lib, rng):
    B, H, G, S = 3, 4, 2, 45
    q, k, v = (rng.standard_normal((B, tokens, n, K), np.float32) for n in (H, G, G))
    start = np.array([0, 5, 2])
    turn = naive.rotary(start[:, None] + np.arange(tokens), (1.0, 0.125, 0.001), 1.5)
    turn = [a.astype(np.float32) for a in turn]
    keys, values = rng.standard_normal((2, B, S, G, K), np.float32)
    wanted_keys, wanted_values = keys.copy(), values.copy()
    order = {"interleaved": interleaved}
    wanted = naive.rope_write_(q, k, v, *turn, wanted_keys, wanted_values, start, **order)
    places = lib(keys), lib(values)
    check(ops.rope_write_(lib(q), lib(k), lib(v), *map(lib, turn), *places, lib(start), **order), wanted)
    check(places[0], wanted_keys)
    np.testing.assert_array_equal(ops.to_numpy(places[1]), wanted_values)


def test_rope_keeps_lengths_and_depends_on_distance_alone(rng):
    q, k = rng.standard_normal((2, 1, 1, 1, 8), np.float32)

    def score(at, distance):
        turned = [
            ops.rope(x, *ops.rotary(np.array([[p]]), (1.0, 0.3, 0.1, 0.01), 1.0, x))
            for x, p in ((q, at + distance), (k, at))
        ]
        return float((turned[0] * turned[1]).sum())

    assert score(0, 5) == pytest.approx(score(70, 5), abs=1e-4)
    assert score(0, 5) != pytest.approx(score(0, 6), abs=1e-4)
    assert score(9, 0) == pytest.approx(float((q * k).sum()), abs=1e-5)


@pytest.mark.parametrize(("rows", "tokens"), FEW_AND_MANY)
@pytest.mark.parametrize("act", ["silu", "gelu_tanh", None])
def test_glu(rows, tokens, act, make, lib):
    x = make(rows, tokens, 2 * 23)
    before = x.copy()
    check(ops.glu(lib(x), act), naive.glu(x, act))
    np.testing.assert_array_equal(x, before)


def test_glu_silu_of_large_numbers():
    x = np.array([[[-1000.0, 100.0, 2.0, 3.0]]], np.float32)
    np.testing.assert_array_equal(ops.glu(x, "silu"), [[[0.0, 300.0]]])


# Products with matrices of 16-bit numbers, which only NumPy's backend keeps as they are


def bfloat16(x):
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def rows(x):
    """The array of a quantised type; bfloat16 is stored as uint16."""
    return QuantRows(FORMS["BF16"], x.shape[1], (x,)) if x.dtype == np.uint16 else float_tensor(x).parts[0]


def matrix(*arrays):
    return QuantTensor([rows(x) for x in arrays])


def unaligned(x):
    """The same array two bytes beyond where words begin, read-only as a mapped file is."""
    return np.frombuffer(b"\0\0" + x.tobytes(), x.dtype, offset=2).reshape(x.shape)


QUANT_TYPES = {
    "bfloat16": bfloat16,
    "float16": lambda w: w.astype(np.float16),
    "bfloat16, not at words": lambda w: unaligned(bfloat16(w)),
    "every second row": lambda w: bfloat16(np.repeat(w, 2, 0))[::2],
    "every second column": lambda w: bfloat16(np.repeat(w, 2, 1))[:, ::2],
}


@pytest.mark.parametrize("kind", QUANT_TYPES)
@pytest.mark.parametrize("tokens", [1, 5, 24, 61, 128, 300])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("unpacked", [True, False])
def test_linear_on_halves(kind, tokens, count, unpacked, make, rng, monkeypatch):
    monkeypatch.setattr(blas, "needs_no_packing", lambda: unpacked)
    monkeypatch.setattr(threads, "MIN_PARALLEL_NS", 0)
    monkeypatch.setattr(threads, "_chosen", threads._chosen)
    monkeypatch.setattr(quantised, "TILE", 600)  # so that small matrices make several tiles
    threads.set_count(count)
    for D, heights in ((40, (70, 33)), (7, (19,)), (900, (65,))):
        x = make(1, tokens, D)
        weights = matrix(*(QUANT_TYPES[kind](rng.standard_normal((E, D), np.float32)) for E in heights))
        bias, residual = rng.standard_normal(sum(heights), np.float32), make(1, tokens, sum(heights))
        found = ops.linear(x, weights, bias, "silu", residual)
        check(found, naive.linear(x, weights, bias, "silu", residual))


@pytest.mark.parametrize("tokens", [1, 3, 40])
def test_linear_to_a_vocabulary_of_halves(tokens, make, rng):
    x, weight = make(1, tokens, 12), matrix(bfloat16(rng.standard_normal((20000, 12), np.float32)))
    check(ops.linear(x, weight), naive.linear(x, weight))


def test_one_matrix_of_halves_beside_one_of_float32(make, rng):
    x, w = make(2, 30, 12), rng.standard_normal((2, 9, 12), np.float32)
    pair = matrix(bfloat16(w[0]), w[1])
    check(ops.linear(x, pair), naive.linear(x, pair))


def test_widening_is_exact(rng):
    bits = np.arange(1 << 16, dtype=np.uint16)
    wanted = (bits.astype(np.uint32) << 16).view(np.float32)
    every = rows(bits.reshape(256, 256))
    np.testing.assert_array_equal(every.dequantise(), wanted.reshape(256, 256))
    even, odd = (part.copy() for part in quantised.widen_rows(every, 2))
    np.testing.assert_array_equal(even, wanted.reshape(256, 256)[:, 0::2])
    np.testing.assert_array_equal(odd, wanted.reshape(256, 256)[:, 1::2])
    np.testing.assert_array_equal(next(quantised.widen_rows(every, 1)), wanted.reshape(256, 256))


def test_embedding_of_halves(rng):
    table = matrix(bfloat16(rng.standard_normal((11, 6), np.float32)))
    ids = rng.integers(0, 11, (2, 4))
    found = ops.embedding(ids, table)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, table.dequantise()[ids])
    with pytest.raises(InputError, match="must be in"):
        ops.embedding(np.array([[11]]), table)
