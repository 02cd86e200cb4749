"""Every op against its float64 twin: NumPy, and torch where it is installed, on odd shapes, strides and values.

Tolerance: float32 rounds sums of up to a few hundred products to about 1e-6 of their size, and the polynomial behind
gelu is off by less than 5e-7; 5e-6 of the largest value leaves a small margin.  float64 has to be right to 1e-12.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from zoo import ops
from zoo.errors import InputError, UnsupportedError
from zoo.ops import naive, on_numpy
from zoo.ops.on_numpy import activations, blas
from zoo.quant import plain

TOLERANCE = {np.float32: 5e-6, np.float64: 1e-12}
DTYPES = [np.float32, np.float64]


def check(y, expected, dtype=np.float32, shape=None):
    y = ops.to_numpy(y)
    assert y.dtype == dtype
    assert y.shape == expected.shape
    assert np.isfinite(expected).all()
    error = np.abs(y - expected).max() if y.size else 0.0
    assert error <= TOLERANCE[dtype] * max(1.0, np.abs(expected).max() if y.size else 1.0)


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def feature_major(x):
    """The same (..., D) values in memory of shape (D, ...)."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, -1, 0)), 0, -1)


def strided(x, how):
    """The same values in another memory."""
    if how == "row-major":
        return x
    if how == "feature-major":
        return feature_major(x)
    if how == "sliced":
        wide = np.full((*x.shape[:-1], 2 * x.shape[-1] + 1), np.nan, x.dtype)
        wide[..., 1::2] = x
        return wide[..., 1::2]
    if how == "sliced features":
        return feature_major(np.concatenate([np.full_like(x, np.nan), x, x], -1))[..., x.shape[-1] : 2 * x.shape[-1]]
    if how == "negative":
        return x[..., ::-1].copy()[..., ::-1]
    if how == "read-only":
        x = x.copy()
        x.flags.writeable = False
        return x
    assert how == "swapped"
    return np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)


HOW = ["row-major", "feature-major", "sliced", "sliced features", "negative", "read-only", "swapped"]


# linear


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
    monkeypatch.setattr(blas, "unpacked", lambda: unpacked)
    x, w, b, r = normal(1, N, d[0]), normal(*d[::-1]), normal(d[1]), normal(1, N, d[1])
    expected = naive.linear(x, w, b, "gelu", r)
    check(ops.linear(lib(x), lib(w), lib(b), "gelu", lib(r)), expected)
    alike = ops.linear(lib(x), lib(np.eye(d[0], dtype=np.float32)))  # as the backend itself lays an array out
    check(ops.linear(alike, lib(w), lib(b), "gelu", lib(r)), expected)


@pytest.mark.parametrize("N", [1, 2, 3, 7, 24, 25, 130])
@pytest.mark.parametrize("unpacked", [True, False])
def test_linear_of_several_matrices(lib, N, unpacked, monkeypatch):
    monkeypatch.setattr(blas, "unpacked", lambda: unpacked)
    heights = (197, 1, 63, 65)
    x, parts, b = normal(1, N, 33), tuple(normal(h, 33, seed=h) for h in heights), normal(sum(heights))
    found = ops.linear(lib(x), plain(*map(lib, parts)), lib(b), "tanh")
    check(found, naive.linear(x, plain(*parts), b, "tanh"))
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


# attention


def heads(B, T, H, K, seed=0, dtype=np.float32):
    return normal(B, T, H, K, seed=seed, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1, 1, 1), (2, 3, 5, 4, 2, 3), (1, 65, 63, 3, 1, 8), (3, 9, 9, 2, 2, 64), (1, 1, 197, 6, 2, 5)]
)
def test_attention(lib, shape, dtype):
    B, T, S, H, G, K = shape
    q, k, v = heads(B, T, H, K, 1, dtype), heads(B, S, G, K, 2, dtype), heads(B, S, G, K, 3, dtype)
    check(ops.attention(lib(q), lib(k), lib(v)), naive.attention(q, k, v), dtype)
    scale = 0.3
    check(ops.attention(lib(q), lib(k), lib(v), scale=scale), naive.attention(q, k, v, scale=scale), dtype)


MASKS = {
    "padding on the right": [[1] * 7, [1] * 4 + [0] * 3, [1] + [0] * 6],
    "padding on the left": [[1] * 7, [0] * 3 + [1] * 4, [0] * 6 + [1]],
    "holes": [[1, 0, 1, 1, 0, 0, 1], [1] * 7, [0, 1, 0, 1, 0, 1, 0]],
    "nothing left": [[0] * 7, [1] * 7, [0] * 7],
    "everything": [[1] * 7] * 3,
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("start", [None, (0, 2, 6)])
@pytest.mark.parametrize("bias", [None, (1, 4, 5, 7), (3, 1, 1, 7), (3, 4, 5, 7), (4, 1, 1), (5, 7)])
@pytest.mark.parametrize("T", [5, 1])
def test_attention_masks(lib, mask, start, bias, T):
    if bias is not None and T == 1 and bias[-2] == 5:
        bias = (*bias[:-2], 1, 7)
    q, k, v = heads(3, T, 4, 8, 1), heads(3, 7, 2, 8, 2), heads(3, 7, 2, 8, 3)
    hidden = np.array(MASKS[mask], bool)
    start = None if start is None else np.array(start)
    bias = None if bias is None else normal(*bias)
    wrapped = {
        name: None if a is None else lib(a) for name, a in {"start": start, "mask": hidden, "bias": bias}.items()
    }
    y = ops.attention(lib(q), lib(k), lib(v), **wrapped)
    check(y, naive.attention(q, k, v, start=start, mask=hidden, bias=bias))


@pytest.mark.parametrize("window", [0, 2, 40])
@pytest.mark.parametrize("given", ["", "start", "mask", "start mask", "start mask bias"])
@pytest.mark.parametrize(("T", "groups"), [(1, 2), (5, 4), (150, 1)])
def test_attention_within_a_window(lib, T, groups, given, window):
    S = T + 20 if "start" in given else T
    q, k, v = heads(2, T, 4, 8, 1), heads(2, S, groups, 8, 2), heads(2, S, groups, 8, 3)
    hides = {"start": np.array([20, 3]), "mask": np.ones((2, S), bool), "bias": normal(2, 4, T, S)}
    hides["mask"][0, : S // 3] = hides["mask"][1, -S // 4 :] = False
    more = {name: hides[name] for name in given.split()}
    y = ops.attention(lib(q), lib(k), lib(v), window=window, **{name: lib(a) for name, a in more.items()})
    check(y, naive.attention(q, k, v, window=window, **more))


@pytest.mark.parametrize("T", [3, 40])
@pytest.mark.parametrize("size", [1e2, 1e4])
@pytest.mark.parametrize("extra", ["none", "bias", "ragged"])
def test_attention_of_large_scores(lib, T, size, extra):
    """Sums of exponentials out of float32's range: the maximum has to be subtracted."""
    q, k, v = heads(2, T, 3, 4, 1), heads(2, T, 3, 4, 2), heads(2, T, 3, 4, 3)
    # Whole numbers times a power of two keep the scores exact, whose rounding would otherwise be all that is compared.
    q, k = np.round(q * 2), np.round(k * 2)
    bias = np.zeros((2, 1, 1, T), np.float32)
    mask = np.ones((2, T), bool)
    if extra == "bias":
        bias[0, ..., 0], bias[1, ..., -1] = -np.inf, np.finfo(np.float32).min
    if extra == "ragged":
        mask[0, T // 2 :] = False
        k[0, T // 2 :] *= 100  # what is hidden may be larger than what is seen
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (size, -size):
            y = ops.attention(
                lib(q), lib(k), lib(v), mask=lib(mask), bias=lib(bias) if extra == "bias" else None, scale=scale
            )
            check(y, naive.attention(q, k, v, mask=mask, bias=bias, scale=scale))


def test_attention_of_scores_all_far_below_zero(lib):
    q, k, v = np.full((1, 70, 1, 1), -1, np.float32), np.full((1, 70, 1, 1), 300, np.float32), normal(1, 70, 1, 1)
    check(ops.attention(lib(q), lib(k), lib(v), scale=1.0), naive.attention(q, k, v, scale=1.0))


def test_attention_of_a_bias_that_hides_all_is_zero(lib):
    q = heads(2, 30, 2, 4)
    bias = np.zeros((2, 1, 30, 30), np.float32)
    bias[1, :, 3] = -np.inf
    y = ops.to_numpy(ops.attention(lib(q), lib(q), lib(q), bias=lib(bias)))
    check(y, naive.attention(q, q, q, bias=bias))
    assert (y[1, 3] == 0).all()


def test_attention_passes_nan_on(lib):
    q, k, v = heads(1, 40, 2, 4), heads(1, 40, 2, 4, 1), heads(1, 40, 2, 4, 2)
    q[0, 3, 1, 0] = np.nan
    y = ops.to_numpy(ops.attention(lib(q), lib(k), lib(v)))
    assert np.isnan(y[0, 3, 1]).all()
    assert np.isnan(y).sum() == 4


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("T", [5, 33])
def test_attention_strides(lib, how, T):
    fused = normal(2, T, 3 * 2 * 8)
    arrays = [strided(np.ascontiguousarray(a), how) for a in ops.split_heads(fused, 2)]
    before = [a.copy() for a in arrays]
    mask = np.ones((2, T), bool)
    mask[1, T // 2 :] = False
    check(ops.attention(*map(lib, arrays), mask=lib(mask)), naive.attention(*before, mask=mask))
    for a, then in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, then)


def test_heads_are_views_of_a_fused_projection():
    x = ops.linear(normal(2, 40, 12), normal(3 * 12, 12))
    q, k, v = ops.split_heads(x, 3)
    assert all(np.shares_memory(a, x) for a in (q, k, v))
    y = ops.attention(q, k, v)
    assert np.shares_memory(y, y.reshape(2, 40, 12))
    check(y, naive.attention(q, k, v))


def test_long_attention_is_cut_into_queries(lib):
    q, k, v = heads(1, 700, 1, 2, 1), heads(1, 900, 1, 2, 2), heads(1, 900, 1, 2, 3)
    start = np.array([150])
    y = ops.to_numpy(ops.attention(lib(q), lib(k), lib(v), start=lib(start)))
    s = np.einsum("btk,bsk->bts", q[:, :, 0].astype(np.float64), k[:, :, 0]) * 2**-0.5
    s[:, np.arange(900) > start[0] + np.arange(700)[:, None]] = -np.inf
    check(y[:, :, 0], naive.softmax(s) @ v[:, :, 0])


# norm, softmax


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


# the rest


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
