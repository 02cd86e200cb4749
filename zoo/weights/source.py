"""What a weight file looks like to the rest of zoo."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from ..typing import RawTensor

__all__ = ["RawTensor", "Source"]


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

    def read(self, name: str) -> RawTensor: ...
