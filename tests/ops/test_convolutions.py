"""Convolutions on NumPy: each way of computing them against float64, on images that fill no block and no tile.

Tolerances are of the largest value: 5e-6 in float32, whose sums round to about 1e-6 (Winograd's to twice that), and
1e-13 in float64.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops import naive
from zoo import ops
from zoo.ops.on_numpy import blas, conv, images, pool, threads, winograd

TOLERANCE = {np.float32: 5e-6, np.float64: 1e-13}


@pytest.fixture(params=["one thread, large blocks", "3 threads, small blocks"], autouse=True)
def blocks(request, monkeypatch):
    monkeypatch.setattr(threads, "_chosen", threads._chosen)  # what set_count changes is undone
    threads.set_count(1 if request.param.startswith("one") else 3)
    if request.param.startswith("3"):
        for module, name, value in [(threads, "MIN_PARALLEL_NS", 0), (winograd, "TILES", 3), (conv, "WINDOWS", 500)]:
            monkeypatch.setattr(module, name, value)
        monkeypatch.setattr(conv, "MIN_WINDOWS", 1)
        monkeypatch.setattr(conv, "STACK_WINDOWS", 4)
        monkeypatch.setattr(blas, "needs_no_packing", lambda: True)
        monkeypatch.setattr(pool, "PIECE", 20)


def check(found, wanted, dtype):
    assert found.dtype == dtype
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE[dtype] * max(1.0, np.abs(wanted).max()))


def normal(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("size", "padding"),
    [((1, 1), 1), ((1, 1), 3), ((1, 30), 1), ((2, 3), (2, 0)), ((4, 4), 0), ((4, 4), 1), ((5, 9), 3), ((17, 13), 1)],
)
@pytest.mark.parametrize("wide", [1, winograd.MIN_KERNELS_FOR_M2], ids=["2 x 2", "4 x 4"])
def test_winograd(wide, size, padding, dtype, rng, monkeypatch):
    monkeypatch.setattr(winograd, "MIN_KERNELS_FOR_M2", wide)
    for B, C, D in [(1, 1, 3), (2, 3, 1), (3, 16, 20)]:
        x, bias = normal(rng, B, *size, C, dtype=dtype), normal(rng, D, dtype=dtype)
        weight = normal(rng, D, C, 3, 3, dtype=dtype)
        wanted = naive.conv2d(x, weight, bias, padding=padding, act="relu")
        found = ops.conv2d(x, weight, bias, padding=padding, act="relu", prepared=winograd.transform(weight))
        check(found, wanted, dtype)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("how", ["row-major", "feature-major", "read-only", "a part", "mirrored", "repeated"])
def test_any_memory_order(how, stride, kernel, rng):
    C, D = 16, 17
    x, weight, bias = normal(rng, 2, 12, 10, C), normal(rng, D, C, kernel, kernel), normal(rng, D)
    if how == "feature-major":
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, -1, 0)), 0, -1)
    elif how == "read-only":
        x.flags.writeable = weight.flags.writeable = False
    elif how == "a part":
        x = normal(rng, 2, 13, 20, 2 * C)[:, 1:, ::2, ::2]
    elif how == "mirrored":
        x = x[:, ::-1, ::-1]
    elif how == "repeated":
        x = np.broadcast_to(x[:, :1], x.shape)
    options = {"stride": stride, "padding": kernel // 2}
    residual = naive.conv2d(x, weight, bias, **options).astype(np.float32)[::-1, ::-1]
    prepared = ops.prepare_conv(weight, stride)
    assert (prepared is not None) == (kernel == 3 and stride == 1)
    before = x.copy(), weight.copy(), residual.copy()
    found = ops.conv2d(x, weight, bias, **options, residual=residual, post="relu", prepared=prepared)
    check(found, naive.conv2d(x, weight, bias, **options, residual=residual, post="relu"), np.float32)
    for array, copy in zip((x, weight, residual), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("size", "kernel", "options"),
    [
        ((1, 1), 7, {"padding": 3, "stride": 2}),
        ((2, 3), 5, {"padding": 4, "dilation": 2}),
        ((9, 31), 7, {"padding": 3, "stride": 2}),
        ((8, 8), 2, {"stride": 3}),
        ((5, 4), 3, {"padding": 2, "dilation": 2, "stride": (1, 2)}),
    ],
)
def test_windows(size, kernel, options, dtype, rng):
    for C, D in [(1, 1), (3, 20), (17, 2)]:
        x, weight = normal(rng, 2, *size, C, dtype=dtype), normal(rng, D, C, kernel, kernel, dtype=dtype)
        check(ops.conv2d(x, weight, **options), naive.conv2d(x, weight, **options), dtype)


def test_a_large_image_has_its_weight_transformed(monkeypatch, rng):
    x, weight = normal(rng, 1, 17, 16, 17), normal(rng, 18, 17, 3, 3)
    wanted = naive.conv2d(x, weight, padding=1)
    check(ops.conv2d(x, weight, padding=1), wanted, np.float32)
    monkeypatch.delattr(conv, "_product")
    check(ops.conv2d(x, weight, padding=1), wanted, np.float32)


@pytest.mark.parametrize("wide", [1, winograd.MIN_KERNELS_FOR_M2], ids=["2 x 2", "4 x 4"])
def test_what_winograd_rounds(wide, rng, monkeypatch):
    """On as many channels as networks have; what is measured against is float64, as is torch: 2.0e-6 there."""
    monkeypatch.setattr(winograd, "MIN_KERNELS_FOR_M2", wide)
    x, weight = np.maximum(normal(rng, 1, 16, 12, 512), 0), normal(rng, 64, 512, 3, 3) / 68
    wanted = ops.conv2d(x.astype(np.float64), weight.astype(np.float64), padding=1)
    found = ops.conv2d(x, weight, padding=1, prepared=ops.prepare_conv(weight))
    assert np.abs(found - wanted).max() < 4e-6 * np.abs(wanted).max()


def test_winograd_s_numbers_that_are_no_numbers_stay_near(rng):
    x, weight = normal(rng, 1, 20, 20, 16), normal(rng, 16, 16, 3, 3)
    x[0, 1, 1, 0] = np.nan
    found = ops.conv2d(x, weight, padding=1, prepared=ops.prepare_conv(weight))
    assert np.isnan(found[0, :3, :3]).all()
    assert np.isfinite(found[0, 8:, 8:]).all()


def test_what_is_prepared(rng):
    assert ops.prepare_conv(normal(rng, 16, 16, 3, 3), 1, 2) is None
    assert ops.prepare_conv(normal(rng, 16, 16, 3, 3), (1, 2)) is None
    assert ops.prepare_conv(normal(rng, 16, 16, 5, 5)) is None
    assert ops.prepare_conv(normal(rng, 16, 3, 3, 3)) is None
    assert ops.prepare_conv(np.broadcast_to(normal(rng, 1, 1, 3, 3), (513, 512, 3, 3))) is None
    assert len(ops.prepare_conv(normal(rng, 16, 16, 3, 3))) == 36
    assert len(ops.prepare_conv(np.broadcast_to(normal(rng, 1, 1, 3, 3), (384, 384, 3, 3)))) == 16


def test_of_a_prepared_weight_only_the_shape_is_looked_at(rng):
    x, weight = normal(rng, 1, 9, 8, 16), normal(rng, 16, 16, 3, 3)
    prepared = ops.prepare_conv(weight)
    wanted = ops.conv2d(x, weight, padding=1, prepared=prepared)
    assert ops.reads_prepared_weights(x)
    np.testing.assert_array_equal(ops.conv2d(x, weight * np.nan, padding=1, prepared=prepared), wanted)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(("B", "rows", "width"), [(1, 1, 1), (1, 63, 44), (7, 2, 2), (3, 10, 100), (40, 3, 1)])
def test_blocks_cover_every_row_once(B, rows, width, count, monkeypatch):
    monkeypatch.setattr(threads, "_chosen", count)
    seen = np.zeros((B, rows), int)
    for wanted in (1, 7, 176, 10**6):
        work = images.blocks(B, rows, width, wanted)
        assert len(work) >= min(count, B)
        seen[...] = 0
        for pair in work:
            assert seen[pair].size > 0
            seen[pair] += 1
        assert (seen == 1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(1, 1, 0), (3, 2, 1), ((1, 3), (1, 2), (0, 1)), ((2, 1), 3, 0), (5, 1, 2)]
)
def test_max_pool2d_is_exact(kernel, stride, padding, dtype, rng):
    for size in [(5, 5), (11, 30)]:
        x = normal(rng, 3, *size, 6, dtype=dtype)
        x[0, 0, 0] = -np.inf
        np.testing.assert_array_equal(
            ops.max_pool2d(x, kernel, stride, padding), naive.max_pool2d(x, kernel, stride, padding)
        )
        x[1, 2, 3, 4] = np.nan
        np.testing.assert_array_equal(
            ops.max_pool2d(x, kernel, stride, padding), naive.max_pool2d(x, kernel, stride, padding)
        )
