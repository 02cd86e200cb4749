"""What a weight file looks like to the rest of zoo."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np


class Stored(NamedTuple):
    """A tensor as its file has it.

    `array` is a read-only view of the file where the format permits it.  `dtype` is the safetensors name of the
    element type ("F32", "F16", "BF16", "I64", ...).  NumPy has no bfloat16, so a BF16 array comes as uint16.
    """

    array: np.ndarray
    dtype: str


class Source(Protocol):
    """Tensors by name: one file, several shards, or none at all (random)."""

    files: list[Path]

    def names(self) -> Collection[str]:
        """All names, in the order of the file."""
        ...

    def __contains__(self, name: object) -> bool: ...

    def shape(self, name: str) -> tuple[int, ...]: ...

    def dtype(self, name: str) -> str:
        """The safetensors name of the element type."""
        ...

    def read(self, name: str) -> Stored: ...
