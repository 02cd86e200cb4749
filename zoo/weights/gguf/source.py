"""GGUFFile: the tensors of a GGUF file under transformers' names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import ZooError
from ...files.pages import release
from ...quant import QUANT_TYPES, QuantRows
from ...typing import RawTensor
from ..source import ListedFile
from .header import Header, TensorEntry
from .metadata import Metadata
from .names import EXPERT, Names, names_of
from .parts import paths_of, read_parts

_FLOAT_DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}


class GGUFFile(ListedFile):
    """A Source: each tensor a read-only view of the mapped file, but for a llama's queries and keys in floating point.

    Names that transformers has no other for stay as they are, so that they are reported.
    """

    def __init__(self, path: str | Path, names: Names | None = None):
        """path: of a file, or of one of the parts of one.  names: by default those of its architecture."""
        self.path = Path(path)
        self.files = paths_of(self.path)
        self.header = read_parts(self.path)
        m = Metadata(self.header.metadata, str(self.header.metadata.get("general.architecture")))
        try:
            names = names or names_of(self.header.metadata.get("general.architecture"))
            size = _head_size(m) if names.rotated else 0
        except ZooError as e:
            raise type(e)(f"{self.path}: {e}") from None
        self._head = 0 if size % 2 else size  # an odd one is refused with the config
        self._names = names
        self._origin, self._entries = {}, {}
        for n in [n for n in self.header.tensors if n not in names.ignored]:
            for theirs, entry in _separate(names.to_transformers(n) or n, self.header.tensors[n]):
                if names.bare:
                    entry = entry._replace(shape=_shape_of_state(theirs, entry.shape))
                self._origin[theirs], self._entries[theirs] = n, entry

    def read(self, name: str) -> RawTensor | QuantRows:
        entry = self._entry(name)
        if self._names.bare and name.endswith(".A_log") and entry.dtype == "F32":  # llama.cpp has the rates themselves
            return RawTensor(np.log(-read_entry(self.header, entry)), "F32")
        stored: RawTensor | QuantRows = RawTensor(read_entry(self.header, entry), entry.dtype)
        if entry.dtype not in _FLOAT_DTYPES:
            stored = QuantRows(QUANT_TYPES[entry.dtype], entry.shape[-1], (stored.array,))
            if len(entry.shape) != 2:
                stored = RawTensor(stored.check(name).dequantise().reshape(entry.shape), "F32")
        if self._names.norms_from_1 and name.endswith(self._names.norm_end):
            rows = (np.asarray(stored.arrays[0] if isinstance(stored, QuantRows) else stored.array).reshape(1, -1),)
            norm = QuantRows(QUANT_TYPES[entry.dtype], entry.shape[-1], rows).dequantise()
            return RawTensor(norm.reshape(entry.shape) - np.float32(1), "F32")
        if (
            not self._names.is_rotated(self._origin[name])
            or not entry.shape
            or not self._head
            or entry.shape[0] % self._head
        ):
            return stored
        order = rows_of_halves(entry.shape[0], self._head)
        if isinstance(stored, QuantRows):
            return replace(stored, order=order)
        copy = RawTensor(stored.array[order], stored.dtype)
        release(stored.array)
        return copy


def _separate(name: str, entry: TensorEntry) -> Iterator[tuple[str, TensorEntry]]:
    """A tensor by its name; of the experts' matrices (E, F, D) or biases (E, F), which are one tensor, each by its own
    name."""
    if EXPERT not in name or len(entry.shape) != 2 + name.endswith(".weight") or not entry.shape[0]:
        yield name, entry
        return
    size = (entry.end - entry.begin) // entry.shape[0]
    for i in range(entry.shape[0]):
        begin = entry.begin + i * size
        yield name.replace(EXPERT, str(i)), entry._replace(shape=entry.shape[1:], begin=begin, end=begin + size)


def _shape_of_state(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """transformers' shape of a tensor of a state: llama.cpp has norms in groups, and a column for what is of heads."""
    if name.endswith((".A_log", ".D", ".norm.weight")) and len(shape) == 2:
        return (shape[0] * shape[1],)
    if name.endswith(".conv1d.weight") and len(shape) == 2:
        return shape[0], 1, shape[1]
    return shape


def read_entry(header: Header, entry: TensorEntry) -> np.ndarray:
    """A tensor in llama.cpp's order: of its shape, or in blocks (rows, bytes of a row)."""
    data = header.data[entry.file][entry.begin : entry.end]
    if kind := _FLOAT_DTYPES.get(entry.dtype):
        return data.view(kind).reshape(entry.shape)
    columns = entry.shape[-1] if entry.shape else 1
    kind = QUANT_TYPES[entry.dtype]
    return data.reshape(math.prod(entry.shape[:-1]), columns // kind.block * kind.fields[0].per_block)


def rows_of_halves(rows: int, size: int) -> np.ndarray:
    """The index (rows,) of transformers' rows of queries or keys, in heads of `size`, among llama.cpp's.

    Rotary positions turn pairs of features: the two halves of a head in transformers, neighbours in llama.cpp.  Blocks
    are parts of a row, so that rows of blocks move like any others.
    """
    return np.arange(rows).reshape(-1, size // 2, 2).swapaxes(1, 2).reshape(-1)


def rows_of_neighbours(rows: int, size: int) -> np.ndarray:
    """The index (rows,) of llama.cpp's rows among transformers': the inverse of `rows_of_halves`."""
    return np.arange(rows).reshape(-1, 2, size // 2).swapaxes(1, 2).reshape(-1)


def _head_size(m: Metadata) -> int:
    return m.integer("attention.key_length", 0) or m.integer("embedding_length") // max(
        1, m.integer("attention.head_count")
    )
