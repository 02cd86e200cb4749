"""Arrays in every order of memory, and how near a result must come."""

from __future__ import annotations

import numpy as np

from zoo import ops

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
