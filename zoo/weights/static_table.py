"""StaticTable: a source with one row for each token, of the files of model2vec and of StaticEmbedding.

sentence-transformers stores the rows as `embedding.weight`, model2vec as `embeddings`.  Where tokens share rows,
model2vec has a `mapping` of tokens to rows, too, and `weights` of tokens: token i is embeddings[mapping[i]] *
weights[i].

Shapes: V tokens, R rows, D the size of a vector.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..errors import CheckpointError
from ..ops import on_numpy
from ..quant import QuantRows
from ..typing import RawTensor
from .source import Source

TABLES = ("embeddings", "embedding.weight")
MAPPING, WEIGHTS = "mapping", "weights"
WHOLE_NUMBERS = ("I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64")


class StaticTable:
    """The tensors of a source, of which `mapping` and `weights` are part of the table (V, D)."""

    def __init__(self, source: Source):
        """CheckpointError: the source has not one table, or what is beside it does not fit to it."""
        self.source, self.files = source, source.files
        found = [name for name in TABLES if name in source]
        if len(found) != 1:
            have = " and ".join(found) or f"only {', '.join(source.names()) or 'no tensor'}"
            raise CheckpointError(f"{self._place}: found {have}, expected one of {' and '.join(TABLES)}")
        self.table = found[0]
        self._parts = [name for name in (MAPPING, WEIGHTS) if name in source]
        rows = self._check(self.table, 2)[0]
        if MAPPING in self._parts:
            rows = self._check(MAPPING, 1)[0]
            if source.dtype(MAPPING) not in WHOLE_NUMBERS:
                raise CheckpointError(f"{self._place}: {MAPPING} is {source.dtype(MAPPING)}, expected whole numbers")
        if WEIGHTS in self._parts and self._check(WEIGHTS, 1) != (rows,):
            found_rows = source.shape(WEIGHTS)[0]
            raise CheckpointError(f"{self._place}: {WEIGHTS} are of {found_rows} tokens, expected {rows}")
        # model2vec's int8 numbers have no scale, since its vectors are normalised.
        self._is_stored = not self._parts and source.dtype(self.table) != "I8"

    @property
    def _place(self) -> str:
        return str(self.files[0]) if self.files else "the checkpoint"

    def _check(self, name: str, ndim: int) -> tuple[int, ...]:
        shape = self.source.shape(name)
        if len(shape) != ndim or 0 in shape:
            raise CheckpointError(f"{self._place}: {name} has shape {shape}, expected {ndim} axes")
        return shape

    def names(self) -> Collection[str]:
        return [name for name in self.source.names() if name not in self._parts]

    def __contains__(self, name: object) -> bool:
        return name in self.source and name not in self._parts

    def shape(self, name: str) -> tuple[int, ...]:
        shape = self.source.shape(name)
        tokens = next(iter(self._parts), None) if name == self.table else None
        return shape if tokens is None else (self.source.shape(tokens)[0], *shape[1:])

    def dtype(self, name: str) -> str:
        return "F32" if name == self.table and not self._is_stored else self.source.dtype(name)

    def read(self, name: str) -> RawTensor | QuantRows:
        if name != self.table or self._is_stored:
            return self.source.read(name)
        table = self._numbers(name)
        if MAPPING in self._parts:
            rows = self._numbers(MAPPING)
            if rows.min() < 0 or rows.max() >= len(table):
                found = f"{rows.min()} to {rows.max()}"
                raise CheckpointError(f"{self._place}: {MAPPING} has {found}, expected rows in [0, {len(table)})")
            table = table[rows]
        if WEIGHTS in self._parts:
            table = table * self._numbers(WEIGHTS)[:, None]
        return RawTensor(table.astype(np.float32, copy=False), "F32")

    def _numbers(self, name: str) -> np.ndarray:
        stored = self.source.read(name)
        if isinstance(stored, QuantRows):
            return stored.dequantise()
        if name == MAPPING:
            return stored.array
        if stored.dtype in WHOLE_NUMBERS:
            return stored.array.astype(np.float32)
        return np.asarray(on_numpy.to_parameter(stored, name, None, "cpu"))
