"""Source: the interface of weight files."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..errors import MissingWeightError, nearest
from ..quant import QuantRows
from ..typing import RawTensor

__all__ = ["ListedFile", "RawTensor", "Source", "stored_arrays"]


class Source(Protocol):
    """Tensors by name, from one file, several shards, or none (random)."""

    files: list[Path]
    # A source without numbers has an attribute `device`: the engine that runs the model without them.

    def names(self) -> Collection[str]:
        """All names, in the file's order."""
        ...

    def __contains__(self, name: object) -> bool: ...

    def shape(self, name: str) -> tuple[int, ...]: ...

    def dtype(self, name: str) -> str:
        """The safetensors name of the element type, or the name of a QuantType."""
        ...

    def read(self, name: str) -> RawTensor | QuantRows: ...


class ListedFile:
    """The base of files with a header that lists their tensors: name -> an entry with `shape` and `dtype`."""

    path: Path
    files: list[Path]
    _entries: dict[str, Any]

    def names(self) -> Collection[str]:
        return self._entries.keys()

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entry(name).shape

    def dtype(self, name: str) -> str:
        return self._entry(name).dtype

    def _entry(self, name: str) -> Any:
        try:
            return self._entries[name]
        except KeyError:
            raise MissingWeightError(f"{self.path} has no {name}{nearest(name, self._entries)}") from None


def stored_arrays(stored: RawTensor | QuantRows) -> tuple[np.ndarray, ...]:
    """The NumPy arrays that a tensor is stored in."""
    return tuple(map(np.asarray, stored.arrays)) if isinstance(stored, QuantRows) else (stored.array,)
