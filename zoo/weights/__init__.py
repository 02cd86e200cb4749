"""Weights: the tensors of a checkpoint below a path; a model's constructors pull its arrays from it.

The idea is candle's VarBuilder: a constructor reads each tensor by name and shape, and every read is recorded, so that
unused tensors can be reported, and a model can be saved under the names of its checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..quant import QuantTensor
from ..typing import Array, RawTensor
from .name_map import NameMap, RenamedSource
from .reader import QUANT_CHOICES, QuantChoice, Reader, Report, TensorPart
from .source import GraphSource, NewHead, Random, Source

__all__ = [
    "QUANT_CHOICES",
    "GraphSource",
    "NameMap",
    "NewHead",
    "QuantChoice",
    "Random",
    "RawTensor",
    "Reader",
    "RenamedSource",
    "Report",
    "Source",
    "TensorPart",
    "Weights",
]

# Smaller matrices are not quantised: these are classification heads, and rounding would change their logits.
MIN_ROWS, MIN_COLS = 32, 32


class Weights:
    """The tensors below a path: `w / "encoder.layer" / 0` narrows it; `get`, `cat`, `linear` and `embedding` read.

    Each read states the shape that it expects.  While a constructor runs, ops that make arrays from numbers alone
    (`ops.zeros`, `ops.arange`, ...) are charged to a budget: a config that asks for too much is a ConfigError there.
    """

    def __init__(self, reader: Reader, path: str = ""):
        self.reader, self.path = reader, path

    def __truediv__(self, part: str | int) -> Weights:
        return Weights(self.reader, f"{self.path}{part}.")

    def __contains__(self, name: str) -> bool:
        """True if the checkpoint has this tensor, or tensors below this path."""
        full = self.path + name
        return full in self.reader.named or any(n.startswith(full + ".") for n in self.reader.named.names())

    def get(self, name: str, shape: tuple[int, ...]) -> Array:
        return self._read([name], [shape], lambda parts: parts[0])

    def cat(self, names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> Array:
        """Arrays joined along the first axis."""
        return self._read(names, shapes, lambda parts: self.reader.backend.cat(parts, 0))

    def linear(self, names: Sequence[str], rows: Sequence[int], cols: int) -> Array | QuantTensor:
        """Matrices (rows[i], cols), one below the other, maybe quantised: for `ops.linear` and `ops.embedding` only."""
        return self._matrix(names, rows, cols, self._kind("matrices"))

    def embedding(self, name: str, rows: int, cols: int) -> Array | QuantTensor:
        """A matrix with a row for each token of a vocabulary, maybe quantised."""
        return self._matrix([name], [rows], cols, self._kind("embeddings"))

    def _matrix(self, names: Sequence[str], rows: Sequence[int], cols: int, kind: str | None) -> Array | QuantTensor:
        shapes = [(r, cols) for r in rows]
        r, small = self.reader, sum(rows) < MIN_ROWS or cols < MIN_COLS
        return self._read(names, shapes, lambda parts: r.backend.rows(parts, r.dtype), True, None if small else kind)

    def _kind(self, what: str) -> str | None:
        return None if self.reader.choice is None else getattr(self.reader.choice, what)

    def _read(self, names: Sequence[str], *how: Any) -> Any:
        return self.reader.read([self.path + name for name in names], *how)
