"""Attention on NumPy and torch against its naive twin: shapes, masks, windows, hard scores, order of memory."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

from tests.ops import naive
from tests.ops.arrays import DTYPES, HOW, check, normal, strided
from zoo import ops


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


@pytest.mark.parametrize(("T", "groups"), [(5, 2), (1, 2), (70, 4)])
@pytest.mark.parametrize("given", [(), ("start",), ("mask",), ("start", "mask", "bias")])
def test_attention_with_a_cap(lib, T, groups, given):
    """Scores of up to about 60 at a cap of 3; far apart, and one query that sees no key."""
    S = T + 6
    q, k, v = heads(3, T, 4, 8, 1) * 8, heads(3, S, groups, 8, 2), heads(3, S, groups, 8, 3)
    more = {"start": np.array([0, 2, 6]), "mask": np.array([[1] * S, [0] * S, [0, 1] + [1] * (S - 2)], bool)}
    more["bias"] = normal(3, 1, T, S)
    more = {name: more[name] for name in given}
    for window in (None, 2):
        y = ops.attention(
            lib(q), lib(k), lib(v), window=window, softcap=3.0, **{name: lib(a) for name, a in more.items()}
        )
        check(y, naive.attention(q, k, v, window=window, softcap=3.0, **more))


@pytest.mark.parametrize(("T", "groups"), [(5, 2), (1, 2), (1, 4), (70, 4), (70, 1)])
@pytest.mark.parametrize("given", [(), ("start",), ("mask",), ("start", "mask", "bias")])
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_attention_with_sinks(lib, T, groups, given, size):
    """Sinks that take next to nothing, a part, and nearly all; scores whose exponentials overflow."""
    S = T + 6
    q, k, v = heads(3, T, 4, 8, 1) * size, heads(3, S, groups, 8, 2), heads(3, S, groups, 8, 3)
    sinks = np.array([-50, 0.5, 3, 100], np.float32)
    more = {"start": np.array([0, 2, 6]), "mask": np.array([[1] * S, [0] * S, [0, 1] + [1] * (S - 2)], bool)}
    more["bias"] = normal(3, 1, T, S)
    more = {name: more[name] for name in given}
    for window in (None, 2):
        y = ops.attention(
            lib(q), lib(k), lib(v), window=window, sinks=lib(sinks), **{name: lib(a) for name, a in more.items()}
        )
        check(y, naive.attention(q, k, v, window=window, sinks=sinks, **more))


@pytest.mark.parametrize("window", [0, 2, 40])
@pytest.mark.parametrize("given", ["", "start", "mask", "start mask", "start mask bias"])
@pytest.mark.parametrize(("T", "groups"), [(1, 2), (5, 4), (150, 1)])
def test_attention_within_a_window(lib, T, groups, given, window):
    (q, k, v), more, wanted = within(T, groups, given, window)
    y = ops.attention(lib(q), lib(k), lib(v), window=window, **{name: lib(a) for name, a in more.items()})
    check(y, wanted)


BLOCKS = np.array([[0, 1, 1, 1, 2, 3, 4, 4, 4, 4], [0, 0, 0, 0, 1, 2, 2, 5, 6, 6]])


@pytest.mark.parametrize("window", [None, 0, 2])
@pytest.mark.parametrize("groups", [4, 2])
@pytest.mark.parametrize("given", ["start", "start mask bias"])
def test_queries_of_a_block_see_each_other(lib, groups, given, window):
    hides = {"start": np.array([7, 3]), "mask": np.ones((2, 17), bool), "bias": normal(2, 4, 10, 17)}
    hides["mask"][0, 2:5] = hides["mask"][1, -2:] = False
    more = {name: hides[name] for name in given.split()} | {"blocks": BLOCKS}
    q, k, v = heads(2, 10, 4, 8, 1), heads(2, 17, groups, 8, 2), heads(2, 17, groups, 8, 3)
    y = ops.attention(lib(q), lib(k), lib(v), window=window, **{name: lib(a) for name, a in more.items()})
    check(y, naive.attention(q, k, v, window=window, **more))


@pytest.mark.parametrize("window", [None, 5])
def test_long_blocks_end_within_the_parts_of_a_product(lib, window):
    T, rng = 400, np.random.default_rng(0)
    blocks = np.cumsum(rng.random((1, T)) < 0.02, 1)
    q, k, v, start = heads(1, T, 2, 8, 1), heads(1, T + 9, 1, 8, 2), heads(1, T + 9, 1, 8, 3), np.array([9])
    y = ops.attention(lib(q), lib(k), lib(v), start=lib(start), blocks=lib(blocks), window=window)
    at, keys = np.arange(T)[:, None] + 9, np.arange(T + 9)
    last = 9 + (blocks[0] <= blocks[0][:, None]).sum(1)[:, None] - 1
    seen = (keys <= last) & (keys >= at - (T + 9 if window is None else window))
    bias = np.where(seen, 0, -np.inf)[None, None]
    check(y, naive.attention(q, k, v, bias=bias))


@functools.cache
def within(T, groups, given, window):
    """A library's inputs, and the reference's result, once for all libraries."""
    S = T + 20 if "start" in given else T
    qkv = heads(2, T, 4, 8, 1), heads(2, S, groups, 8, 2), heads(2, S, groups, 8, 3)
    hides = {"start": np.array([20, 3]), "mask": np.ones((2, S), bool), "bias": normal(2, 4, T, S)}
    hides["mask"][0, : S // 3] = hides["mask"][1, -S // 4 :] = False
    more = {name: hides[name] for name in given.split()}
    return qkv, more, naive.attention(*qkv, window=window, **more)


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
