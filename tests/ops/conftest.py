"""The libraries that ops are tested on."""

from __future__ import annotations

import pytest

from zoo.ops.on_numpy import threads


@pytest.fixture(params=["numpy", "numpy on 3 threads", "torch"])
def lib(request, monkeypatch):
    """A function that gives an array to the library under test, strides and all."""
    if request.param == "torch":
        torch = pytest.importorskip("torch", reason="needs torch, the other backend")
        # A tensor can be neither read-only nor reversed.
        return lambda x: torch.from_numpy(x if min(x.strides, default=0) >= 0 and x.flags.writeable else x.copy())
    monkeypatch.setattr(threads, "MIN_PARALLEL_NS", 0)
    monkeypatch.setattr(threads, "_chosen", 1 if request.param == "numpy" else 3)
    return lambda x: x
