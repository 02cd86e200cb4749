"""A stand-in for CUDA where there is no GPU, and helpers of the runner's tests.

A tape records the functions of torch that a call runs, with the tensors that they ran on, and runs these again on
whatever the same memory then holds.  What was decided on the host it repeats, as a graph does; a look at a number of
the device, or a new number from the host, it refuses, as a capture does.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from zoo import ops

REFUSED = ("aten::_local_scalar_dense", "aten::lift_fresh", "aten::nonzero", "aten::masked_select")


class Tape(TorchDispatchMode):
    """A recording of the calls that make no view: views stay what they are."""

    def __init__(self, fn):
        super().__init__()
        self.calls: list[tuple[Any, tuple, dict, Any]] = []
        with pytest.MonkeyPatch.context() as patch, self:
            patch.setattr(torch, "from_numpy", _refusing(torch.from_numpy))
            self.outputs = fn()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func._schema.name in REFUSED:
            raise RuntimeError(f"{func} while it is captured")
        out = func(*args, **(kwargs or {}))
        given = {t.untyped_storage().data_ptr() for t in tensors((args, kwargs))}
        made = [t for t in tensors(out) if t.untyped_storage().data_ptr() not in given]
        if made or func._schema.is_mutable:
            self.calls.append((func, args, kwargs or {}, out if made else None))
        return out

    def replay(self):
        for func, args, kwargs, out in self.calls:
            again = func(*args, **kwargs)
            for old, new in zip(tensors(out), tensors(again), strict=True) if out is not None else ():
                old.copy_(new)


def _refusing(from_numpy):
    capturing = threading.get_ident()

    def refusing(array):
        if threading.get_ident() == capturing:
            raise RuntimeError("an array of the host while it is captured")
        return from_numpy(array)

    return refusing


class TapeRecorder:
    """In place of `zoo.engines.cuda_graphs.recording.CudaRecorder`."""

    def __init__(self):
        self.is_taken = False

    def warm_up(self, fn):
        fn()

    def record(self, fn):
        return Tape(fn)

    @contextlib.contextmanager
    def turn(self):
        assert not self.is_taken
        self.is_taken = True
        yield
        self.is_taken = False


def tensors(node):
    if isinstance(node, torch.Tensor):
        return [node]
    if isinstance(node, dict):
        node = list(node.values())
    return [t for child in node for t in tensors(child)] if isinstance(node, list | tuple) else []


def texts(rows, tokens, seed=0, pad=0):
    """Ids and mask of rows of unequal length, the first one full."""
    rng = np.random.default_rng([rows, tokens, seed])
    lengths = np.append(tokens, rng.integers(1, tokens + 1, rows - 1))
    mask = np.arange(tokens) < lengths[:, None]
    return np.where(mask, rng.integers(10, 300, (rows, tokens)), pad), mask


def check(found, wanted):
    assert type(found) is type(wanted)
    found, wanted = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    for a, b in zip(found, wanted, strict=True):
        if b is None:
            assert a is None
            continue
        a, b = ops.to_numpy(a), ops.to_numpy(b)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, atol=2e-5 * max(1.0, np.abs(b).max()))
