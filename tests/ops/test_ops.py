"""Every op against its float64 twin: NumPy, and torch where it is installed, on odd shapes, strides and values.

Tolerance: float32 rounds sums of up to a few hundred products to about 1e-6 of their size, and the polynomial behind
gelu is off by less than 5e-7; 5e-6 of the largest value leaves a small margin.  float64 has to be right to 1e-12.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

from tests.ops import naive
from tests.ops.arrays import DTYPES, HOW, check, feature_major, normal, strided
from zoo import ops
from zoo.errors import InputError, UnsupportedError
from zoo.ops import on_numpy
from zoo.ops.on_numpy import activations, blas
from zoo.quant import float_tensor


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (2, 12), (1, 24), (5, 5), (1, 63), (3, 65), (1, 197), (2, 200)])
@pytest.mark.parametrize("d", [(1, 1), (3, 5), (65, 123), (64, 197)])
def test_linear(lib, shape, d, dtype):
    x, w, b, r = (
        normal(*s, seed=i, dtype=dtype) for i, s in enumerate([(*shape, d[0]), d[::-1], d[1:], (*shape, d[1])])
    )
    check(ops.linear(lib(x), lib(w)), naive.linear(x, w), dtype)
    check(ops.linear(lib(x), lib(w), lib(b), "relu", lib(r)), naive.linear(x, w, b, "relu", r), dtype)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("T", [5, 63])
def test_linear_strides(lib, how, T):
    x, w, b, r = normal(3, T, 65), normal(123, 65), normal(123), normal(3, T, 123)
    arrays = [strided(x, how), w, b, strided(r, how)]
    before = [a.copy() for a in arrays]
    check(ops.linear(*map(lib, arrays[:3]), None, lib(arrays[3])), naive.linear(x, w, b, None, r))
    for a, then in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, then)
    for other in (w.T.copy().T, strided(w, "sliced"), strided(w, "negative")):
        check(ops.linear(lib(arrays[0]), lib(other)), naive.linear(x, w))


@pytest.mark.parametrize("d", [(768, 130), (1100, 67), (3000, 9)])
@pytest.mark.parametrize("N", [25, 32, 57, 64, 96, 123, 128, 160, 250, 256, 257])
@pytest.mark.parametrize("unpacked", [True, False])
def test_linear_by_tiles(lib, N, d, unpacked, monkeypatch):
    """Numbers of tokens that are padded, cut into panels or taken as they lie: as BLAS likes it."""
    monkeypatch.setattr(blas, "needs_no_packing", lambda: unpacked)
    (x, w, b, r), expected = of_tiles(N, d)
    check(ops.linear(lib(x), lib(w), lib(b), "gelu", lib(r)), expected)
    alike = ops.linear(lib(x), lib(np.eye(d[0], dtype=np.float32)))  # as the backend itself lays an array out
    check(ops.linear(alike, lib(w), lib(b), "gelu", lib(r)), expected)


@functools.cache
def of_tiles(N, d):
    """A library's inputs, and the reference's result, once for all libraries."""
    x, w, b, r = normal(1, N, d[0]), normal(*d[::-1]), normal(d[1]), normal(1, N, d[1])
    return (x, w, b, r), naive.linear(x, w, b, "gelu", r)


@pytest.mark.parametrize("N", [1, 2, 3, 7, 24, 25, 130])
@pytest.mark.parametrize("unpacked", [True, False])
def test_linear_of_several_matrices(lib, N, unpacked, monkeypatch):
    monkeypatch.setattr(blas, "needs_no_packing", lambda: unpacked)
    heights = (197, 1, 63, 65)
    x, parts, b = normal(1, N, 33), tuple(normal(h, 33, seed=h) for h in heights), normal(sum(heights))
    found = ops.linear(lib(x), float_tensor(*map(lib, parts)), lib(b), "tanh")
    check(found, naive.linear(x, float_tensor(*parts), b, "tanh"))
    assert [rows.arrays[0] for rows in on_numpy.rows(parts).parts] == list(parts)  # no copy of what the file holds
    assert on_numpy.rows([parts[0]]) is parts[0]


def test_linear_takes_any_number_of_axes(lib):
    w, b = normal(5, 7), normal(5)
    for shape in [(7,), (3, 7), (2, 3, 4, 7), (2, 0, 7), (1, 40, 2, 7)]:
        check(ops.linear(lib(normal(*shape)), lib(w), lib(b)), naive.linear(normal(*shape), w, b))


def test_linear_over_a_vocabulary_is_row_major():
    x, w, b = normal(2, 40, 3), normal(20_000, 3), normal(20_000)
    y = ops.linear(feature_major(x), w, b)
    check(y, naive.linear(x, w, b))
    assert y.flags.c_contiguous


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("act", sorted(set(naive.ACT) - {None}))
def test_activations(lib, act, dtype):
    x = np.linspace(-12, 12, 20_001, dtype=dtype).reshape(1, -1, 3)
    eye = np.eye(3, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(ops.linear(lib(x), lib(eye), None, act), naive.linear(x, eye, None, act), dtype)
        large = np.array([[-1e4, 1e4, -200.0], [200.0, -50.0, 50.0]], dtype)  # exp overflows, nothing may show
        expected = naive.ACT[act](large.astype(np.float64))
        np.testing.assert_allclose(
            ops.to_numpy(ops.linear(lib(large), lib(eye), None, act)), expected, rtol=1e-5, atol=1e-6
        )


def test_gelu_is_right_to_the_rounding_of_float32():
    x = np.linspace(-14, 14, 100_001, dtype=np.float32)[None]
    expected = naive.ACT["gelu"](x.astype(np.float64))
    activations.finish(x, None, "gelu", None)
    assert np.abs(x - expected).max() < 8e-7


@pytest.mark.parametrize("columns", [1, 333, activations.BLOCK, activations.BLOCK + 3])
def test_relu_of_rows_shorter_and_longer_than_a_block(columns):
    x = normal(3, columns)
    x[0, 0] = np.nan
    expected = np.maximum(x, 0)
    activations.finish(x, None, "relu", None)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("act", [None, "tanh", "gelu"])
@pytest.mark.parametrize("how", HOW)
def test_an_activation_alone(lib, how, act):
    x = strided(normal(2, 3, 7), how)
    before = x.copy()
    check(ops.activate(lib(x), act), naive.activate(before, act))
    np.testing.assert_array_equal(x, before)


def test_every_name_of_an_activation_is_implemented():
    functions = {ops.activation(name) for name in ops.ACTIVATIONS}
    assert functions == set(naive.ACT)
    with pytest.raises(UnsupportedError, match=r"'gelo' is not implemented; did you mean 'gelu'"):
        ops.activation("gelo")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("shape", [(1, 1, 7), (2, 12, 65), (3, 43, 65), (1, 197, 123)])
def test_layer_norm(lib, shape, how, dtype):
    x, r = (normal(*shape, seed=i, dtype=dtype) for i in range(2))
    w, b = (normal(shape[-1], seed=i, dtype=dtype) for i in range(2))
    x += 3
    xs, rs = strided(x, how), strided(r, how)
    check(ops.layer_norm(lib(xs), lib(w), lib(b), 1e-5), naive.layer_norm(x, w, b, 1e-5), dtype)
    check(ops.layer_norm(lib(xs), lib(w), lib(b), 1e-12, lib(rs)), naive.layer_norm(x, w, b, 1e-12, r), dtype)
    for found, wanted in zip(
        ops.add_layer_norm(lib(xs), lib(rs), lib(w), lib(b), 1e-5), naive.add_layer_norm(x, r, w, b, 1e-5), strict=True
    ):
        check(found, wanted, dtype)
    np.testing.assert_array_equal(xs, x)
    np.testing.assert_array_equal(rs, r)


@pytest.mark.parametrize("shape", [(5,), (3, 1), (2, 3, 65)])
def test_softmax(lib, shape):
    x = 100 * normal(*shape)
    x[..., -1] = -np.inf if shape[-1] > 1 else 0
    check(ops.softmax(lib(x)), naive.softmax(x))
    nothing = np.full(shape, -np.inf, np.float32)
    assert (ops.to_numpy(ops.softmax(lib(nothing))) == 0).all()


def test_embedding(lib):
    table = normal(11, 3)
    ids = np.array([[0, 10, 3], [5, 5, 0]])
    check(ops.embedding(lib(ids), lib(table)), naive.embedding(ids, table))
    check(ops.embedding(lib(np.zeros((1, 0), np.int64)), lib(table)), np.zeros((1, 0, 3)))
    for wrong in (-1, 11):
        with pytest.raises(InputError, match=rf"^token_type_ids must be in \[0, 11\), found .*{wrong}"):
            ops.embedding(lib(np.array([[0, wrong]])), lib(table), "token_type_ids")


def test_integers_and_joins(lib):
    x = lib(np.array([[True, False, True], [True, True, True]]))
    np.testing.assert_array_equal(ops.to_numpy(ops.cumsum(x, 1)), [[1, 1, 2], [1, 2, 3]])
    assert ops.to_numpy(ops.cumsum(x, 0)).dtype == np.int64
    y = lib(normal(2, 3))
    np.testing.assert_array_equal(ops.to_numpy(ops.cat([y, y], 1)), np.tile(normal(2, 3), 2))
    np.testing.assert_array_equal(ops.to_numpy(ops.arange(4, y)), [0, 1, 2, 3])
    assert ops.to_numpy(ops.arange(0, y)).dtype == np.int64
    numbers = np.arange(6.0).reshape(2, 3)[:, ::-1] / 7
    placed = ops.place(numbers, y)
    check(placed, naive.place(numbers, y))
    assert type(placed) is type(y)
    assert ops.to_numpy(placed).dtype == np.float32
    zeros = ops.to_numpy(ops.zeros((2, 1), y))
    assert zeros.shape == (2, 1)
    assert zeros.dtype == np.float32
    assert not zeros.any()


def test_write_(lib):
    out, x, start = np.zeros((2, 6, 2, 1), np.float32), normal(2, 3, 2, 1), np.array([1, 3])
    y = ops.write_(lib(out.copy()), lib(x), lib(start))
    np.testing.assert_array_equal(ops.to_numpy(y), naive.write_(out, x, start))


def test_what_users_pass(lib):
    like = lib(normal(1))
    for x in ([[1, 2]], np.array([[1, 2]], np.int32), np.array([[1, 2]], np.uint8)):
        ids = ops.to_numpy(ops.as_ids(x, like, "input_ids", 100))
        assert ids.dtype == np.int64
        assert ids.tolist() == [[1, 2]]
        mask = ops.to_numpy(ops.as_mask(np.array(x) - 1, like, "attention_mask", (1, 2)))
        assert mask.dtype == bool
        assert mask.tolist() == [[False, True]]


def test_masks_of_keys_that_hide_none(lib):
    like = lib(np.zeros(1, np.float32))
    for x in (np.ones((2, 3), bool), np.ones((2, 3), int), [[1, 1, 1], [1, 1, 1]]):
        assert ops.as_key_mask(x, like, "attention_mask", (2, 3)) is None
        assert ops.as_key_mask(lib(np.asarray(x)), like, "attention_mask", (2, 3)) is None
        assert ops.as_mask(x, like, "attention_mask", (2, 3)) is not None
    mask = np.arange(6).reshape(2, 3) > 0
    for x in (mask, lib(mask), lib(mask.astype(int))):
        np.testing.assert_array_equal(ops.to_numpy(ops.as_key_mask(x, like, "attention_mask", (2, 3))), mask)
    for x in (mask[:1], mask + 1, lib(mask + 1)):
        with pytest.raises(InputError, match="attention_mask"):
            ops.as_key_mask(x, like, "attention_mask", (2, 3))


def test_assign(lib):
    out = lib(np.zeros((2, 3), np.float32))
    x = normal(2, 3)
    for given in (x, lib(x), x.astype(np.float64)):
        out *= 0
        assert ops.assign_(out, given) is out
        np.testing.assert_array_equal(ops.to_numpy(out), x)


def test_to_numpy(lib):
    x = feature_major(normal(2, 3, 4))
    y = ops.to_numpy(lib(x))
    assert y.flags.c_contiguous
    np.testing.assert_array_equal(y, x)
    assert ops.to_numpy(lib(x.astype(np.float16))).dtype == np.float32


def test_a_result_is_its_callers_alone():
    """Large results come from memory that is used again, but not while anybody holds so much as a view of it."""
    x, w, b = normal(1, 512, 64), normal(1024, 64), np.zeros(1024, np.float32)
    first = ops.linear(x, w, b)
    corner, copy = first[0, :2, :3], first.copy()
    del first
    for i in range(4):
        ops.linear(x, w, b + i)
    np.testing.assert_array_equal(corner, copy[0, :2, :3])
