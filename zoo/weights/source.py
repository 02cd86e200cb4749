"""Source: the interface of weight files; Random, a source without a file; NewHead, for weights that a file lacks."""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..errors import MissingWeightError, nearest
from ..quant import QuantRows
from ..typing import RawTensor

__all__ = ["ListedFile", "NewHead", "Random", "RawTensor", "Source", "stored_arrays"]

MAX_ELEMENTS = 1 << 40  # above it NumPy raises other errors than MemoryError


class Source(Protocol):
    """Tensors by name, from one file, several shards, or none (random)."""

    files: list[Path]

    def names(self) -> Collection[str]:
        """All names, in the file's order."""
        ...

    def __contains__(self, name: object) -> bool: ...

    def shape(self, name: str) -> tuple[int, ...]: ...

    def dtype(self, name: str) -> str:
        """The safetensors name of the element type, or the name of a QuantType."""
        ...

    def read(self, name: str) -> RawTensor | QuantRows: ...


@runtime_checkable
class GraphSource(Source, Protocol):
    """A source whose tensors have shapes and no numbers: those are in graphs, which one engine runs."""

    device: str


class ListedFile:
    """The base of files with a header that lists their tensors: name -> an entry with `shape` and `dtype`."""

    path: Path
    files: list[Path]
    _entries: Mapping[str, Any]

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


class Random:
    """A source that has every name, for tests and benchmarks: its arrays follow from the seed, the name and the shape.

    Matrices preserve the scale of activations, norms are near the identity, and no bias is zero, so that a model that
    forgets one gives another result.
    """

    def __init__(self, seed: int = 0):
        self.seed = seed
        self.files: list[Path] = []

    def names(self) -> Collection[str]:
        return ()

    def __contains__(self, name: object) -> bool:
        return True

    def dtype(self, name: str) -> str:
        return "F32"

    def make(self, name: str, shape: tuple[int, ...]) -> RawTensor:
        if math.prod(shape) > MAX_ELEMENTS:
            raise MemoryError(f"{name} of shape {shape}")
        x = _normal(self.seed, name, shape)
        if len(shape) == 1:
            x *= np.float32(0.1)
            if name.endswith(("weight", "running_var")):
                x += 1
        else:
            x /= np.float32(math.sqrt(shape[-1] if shape else 1))
        x.flags.writeable = False
        return RawTensor(x, "F32")


class NewHead:
    """The tensors outside of the base model, and its pooler, initialised as in transformers.

    Weights are normal(0, deviation), those of norms 1, biases 0.  Each follows from seed and name alone.
    """

    def __init__(self, prefix: str, deviation: float, seed: int = 0):
        self.prefix, self.deviation, self.seed = prefix, deviation, seed
        self.drawn: list[str] = []

    def covers(self, name: str) -> bool:
        """True if the tensor of this canonical name may be new."""
        return not name.startswith(self.prefix + ".") or name.startswith(f"{self.prefix}.pooler.")

    def draw(self, name: str, shape: tuple[int, ...]) -> RawTensor:
        self.drawn.append(name)
        if len(shape) > 1:
            x = _normal(self.seed, name, shape)
            return RawTensor(x * np.float32(self.deviation), "F32")
        is_one = name.endswith(("weight", "running_var"))
        return RawTensor(np.full(shape, 1 if is_one else 0, np.float32), "F32")


def _normal(seed: int, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Normal numbers that follow from seed and name alone."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal(shape, np.float32)
