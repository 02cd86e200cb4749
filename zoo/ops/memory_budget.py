"""The memory that a model may take beyond its weights while it is made: a config may ask for it, a file has to pay.

Every op that makes an array of a size that numbers decide, not arrays, is charged before it allocates.  A constructor
has no other way to make one, so that this holds for models to come.
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
    """Within it the ops may allocate as many bytes as the weights have, and BASE; ConfigError beyond."""
    token = _left.set([BASE + weights])
    try:
        yield
    except MemoryError as error:
        raise ConfigError(f"not enough memory for a model of this config{f': {error}' if str(error) else ''}") from None
    finally:
        _left.reset(token)


def charge(shape: tuple[int, ...], what: str, bytes_each: int = 8) -> None:
    """Count an array that is about to be made; ConfigError where the config asks for more than is allowed."""
    left = _left.get()
    if left is None:
        return
    wanted = math.prod(shape) * bytes_each
    if wanted > left[0]:
        raise ConfigError(
            f"the config asks for {what} of shape {shape}, {wanted >> 20} MB that are in no file: "
            f"{left[0] >> 20} MB are left of what the weights justify"
        )
    left[0] -= wanted
