"""A single row through a large weight, which on NumPy is left to the threads of BLAS."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops import naive
from zoo import ops
from zoo.ops.on_numpy import threads
from zoo.ops.on_numpy.linear import ONE_ROW
from zoo.quant import QuantTensor, float_tensor


@pytest.fixture(params=[None, 1, 2])
def count(request):
    threads.set_count(request.param)
    yield request.param
    threads.set_count(None)


def weights(rng, kind):
    if kind == "strided":
        return rng.standard_normal((700, 3200)).astype(np.float32)[:, ::2]
    parts = [rng.standard_normal((rows, 1600)).astype(np.float32) for rows in (700, 33, 5)]
    for part in parts:
        part.flags.writeable = False
    return parts[0] if kind == "one" else float_tensor(*parts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize("kind", ["one", "several", "strided"])
def test_equals_the_naive_product(kind, more, dtype, count, rng):
    weight = weights(rng, kind)
    if isinstance(weight, QuantTensor):
        weight = float_tensor(*(part.arrays[0].astype(dtype) for part in weight.parts))
    else:
        weight = weight.astype(dtype, copy=False)
    rows = len(weight)
    assert rows * 1600 >= ONE_ROW
    x = rng.standard_normal((1, 1, 1600)).astype(dtype)
    extra = {}
    if more:
        extra = {"bias": rng.standard_normal(rows).astype(dtype), "act": "gelu"}
        extra["residual"] = rng.standard_normal((1, 1, rows)).astype(dtype)
    found = ops.linear(x, weight, **extra)
    assert (found.shape, found.dtype) == ((1, 1, rows), dtype)
    wanted = naive.linear(x, weight, **extra)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_a_chosen_count_of_threads_holds_for_it_too(count):
    """BLAS is left alone only where it would use what zoo may."""
    if count is not None:
        assert not threads.as_many_in_blas()
