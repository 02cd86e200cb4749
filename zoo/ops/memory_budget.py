"""A limit on the memory that a config can make a model allocate beyond its weights.

Every op whose result's size follows from numbers, not from arrays, is charged before it allocates.  Constructors
have no other way to make an array, so that this holds for new models too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import ConfigError

BASE = 64 << 20  # bytes; the largest tables of positions on the hub take four million
_left: ContextVar[list[int] | None] = ContextVar("memory_budget", default=None)


@contextmanager
def memory_budget(weights: int) -> Iterator[None]:
    """A context in which ops may allocate BASE bytes and as many as the weights have; ConfigError beyond."""
    token = _left.set([BASE + weights])
    try:
        yield
    except MemoryError as error:
        raise ConfigError(f"not enough memory for a model of this config{f': {error}' if str(error) else ''}") from None
    finally:
        _left.reset(token)


def charge(shape: tuple[int, ...], what: str, bytes_each: int = 8) -> None:
    """Count an array that is about to be made; ConfigError if it exceeds the budget."""
    left = _left.get()
    if left is None:
        return
    nbytes = math.prod(shape) * bytes_each
    if nbytes > left[0]:
        raise ConfigError(
            f"the config asks for {what} of shape {shape}, {nbytes >> 20} MB beyond the weights: "
            f"{left[0] >> 20} MB are left of what its weights allow"
        )
    left[0] -= nbytes
