"""Products of packed matrices with a few rows by compiled code, where numba is installed: the extra `fast`.

A number is widened in a register and multiplied, in float32, on the matrix as it lies in its file: memory gives the
pace.  Compiled when a kind is first met, and kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...packed import Rows

ROWS = 4  # up to which a product is made here


def takes(weights: Sequence[np.ndarray | Rows], x: np.ndarray) -> bool:
    """Whether every part of a weight can be multiplied by x (N, D) here."""
    if x.dtype != np.float32 or len(x) > ROWS:
        return False
    for W in weights:
        if isinstance(W, np.ndarray) or product_of(W.kind.name) is None:
            return False
        if not all(array.flags.c_contiguous and array.flags.aligned for array in W.arrays):
            return False
    return True


def product(W: Any, x: np.ndarray, y: np.ndarray) -> None:
    """y (N, E) = x (N, D) @ W.T, for some rows W of what `takes` took."""
    fn = product_of(W.kind.name)
    assert fn is not None
    if W.width > W.columns:
        x = np.pad(x, ((0, 0), (0, W.width - W.columns)))
    fn(W.arrays, np.ascontiguousarray(x), y)


@lru_cache
def product_of(kind: str) -> Callable[[Sequence[Any], np.ndarray, np.ndarray], None] | None:
    """fn(fields, x (N, width), y (N, E)) of a kind; None for other kinds, and without numba."""
    if kind not in ("BF16", "INT8", "INT8_32", "INT4_32"):
        return None
    try:
        from . import compiled
    except ImportError:
        return None
    fn = getattr(compiled, kind.lower())()
    if kind == "INT4_32":
        return lambda fields, x, y: fn(fields[0], fields[1].view(np.uint16), *_even_and_odd(x), y)
    if kind == "INT8_32":
        return lambda fields, x, y: fn(fields[0], fields[1].view(np.uint16), x, y)
    return lambda fields, x, y: fn(*fields, x, y)


def _even_and_odd(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The columns that lower and upper bits are multiplied by, and what makes up for bits that stand 8 above."""
    even, odd = np.ascontiguousarray(x[:, 0::2]), np.ascontiguousarray(x[:, 1::2])
    return even, odd, (even + odd) * np.float32(-8)
