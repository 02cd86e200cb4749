"""QuantType: how numbers are stored in blocks; QuantRows: rows of a matrix in one type; QuantTensor: a matrix.

A matrix has E rows (outputs) and D columns (inputs).  A row is stored as ceil(D / block) blocks, the
last filled up with zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import CheckpointError
from ..typing import Array


class Field(NamedTuple):
    """One of the arrays of a QuantType: (E, blocks * per_block), or (E,) if per_block is 0."""

    name: str
    dtype: str  # NumPy's name
    per_block: int


class Affine(NamedTuple):
    """R rows as whole numbers in G groups of N that share a scale: number = (code - zero) * scale + offset."""

    codes: np.ndarray  # (R, G, N) int8 or uint8
    scale: np.ndarray  # (R, G) float32
    offset: np.ndarray | None = None  # (R, G) float32; None: 0
    zero: int | np.ndarray = 0  # one for all, or (R, G) uint8


@dataclass(frozen=True, eq=False)
class QuantType:
    """A storage format of numbers: `block` of them at a time, in these fields.

    widen(arrays, out): writes the numbers of a floating-point type to out.  affine(arrays): the fields of rows of any
    other type as Affine.  scales(arrays): the floating-point numbers inside of fields that are records of bytes.
    """

    name: str
    block: int
    fields: tuple[Field, ...]
    widen: Callable[[Sequence[np.ndarray], np.ndarray], None] | None = None
    affine: Callable[[Sequence[np.ndarray]], Affine] | None = None
    scales: Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]] | None = None

    @property
    def is_plain(self) -> bool:
        """True if the one field has the numbers themselves."""
        return self.affine is None

    def dequantise(self, arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
        """Write the numbers of the fields of R rows to out (R, blocks * block), float32 and C-contiguous."""
        if self.affine is None:
            assert self.widen is not None
            self.widen(arrays, out)
            return
        codes, scale, offset, zero = self.affine(arrays)
        groups = out.reshape(codes.shape)
        if isinstance(zero, np.ndarray):
            np.subtract(codes, zero[..., None], out=groups, dtype=np.float32)
        else:
            np.copyto(groups, codes.view(np.int8) - np.int8(zero) if zero else codes)
        groups *= scale[..., None]
        if offset is not None:
            groups += offset[..., None]

    def shapes(self, rows: int, columns: int) -> list[tuple[int, ...]]:
        """The shape of each field, for a matrix of that size."""
        blocks = -(-columns // self.block)
        return [(rows, blocks * field.per_block) if field.per_block else (rows,) for field in self.fields]

    def name_fields(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The fields of some rows by their names."""
        return {field.name: array for field, array in zip(self.fields, arrays, strict=True)}

    def nbytes(self, rows: int, columns: int) -> int:
        """The bytes of a matrix of that size."""
        shapes = zip(self.fields, self.shapes(rows, columns), strict=True)
        return sum(math.prod(shape) * np.dtype(field.dtype).itemsize for field, shape in shapes)


@dataclass(frozen=True, eq=False)
class QuantRows:
    """Rows of a matrix, of one QuantType; `arrays` are its fields, of NumPy, torch or a tracer.

    order: the index (rows,) of each row in the arrays, where these are in another order; rows that are taken are not.
    """

    kind: QuantType
    columns: int
    arrays: tuple[Any, ...]
    order: np.ndarray | None = None

    def __len__(self) -> int:
        return self.arrays[0].shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.columns

    @property
    def width(self) -> int:
        """The columns with those that fill up the last block."""
        return -(-self.columns // self.kind.block) * self.kind.block

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def __getitem__(self, rows: Any) -> QuantRows:
        """The rows of a slice or of an array of indices (N,)."""
        rows = rows if self.order is None else self.order[rows]
        return QuantRows(self.kind, self.columns, tuple(array[rows] for array in self.arrays))

    def map(self, fn: Callable[[Array], Array]) -> QuantRows:
        return replace(self, arrays=tuple(map(fn, self.arrays)))

    def in_order(self) -> QuantRows:
        """The same rows, copied if their arrays are in another order."""
        return self if self.order is None else self[:]

    def dequantise(self) -> np.ndarray:
        """The rows as a NumPy array (E, D): float32, or float64 if stored so."""
        arrays = [np.asarray(array) for array in self.in_order().arrays]
        if self.kind.name in ("F32", "F64"):
            return arrays[0]
        out = np.empty((len(self), self.width), np.float32)
        self.kind.dequantise(arrays, out)
        return out[:, : self.columns]

    def check(self, name: str) -> QuantRows:
        """Return self; CheckpointError if a field has a wrong shape or type, or a scale is not finite."""
        for field, array, shape in zip(self.kind.fields, self.arrays, self.kind.shapes(*self.shape), strict=True):
            where = f"tensor {name!r} ({self.kind.name}): its {field.name}"
            if array.shape != shape:
                raise CheckpointError(f"{where} has shape {array.shape}, expected {shape} for {self.shape}")
            if array.dtype != np.dtype(field.dtype):
                raise CheckpointError(f"{where} is of {array.dtype}, expected {field.dtype}")
            if not self.kind.is_plain and array.dtype.kind == "f" and not np.isfinite(array).all():
                raise CheckpointError(f"{where} holds NaN or infinity")
        for array in self.kind.scales(self.arrays) if self.kind.scales else ():
            if not np.isfinite(array).all():
                raise CheckpointError(f"tensor {name!r} ({self.kind.name}): a block's scale is NaN or infinite")
        return self


class QuantTensor:
    """A matrix (E, D) for `ops.linear` and `ops.embedding`: parts one below the other, as they are stored.

    Parts may differ in QuantType.  Each tensor of a checkpoint is one part, unless a backend joins them.
    """

    ndim = 2

    def __init__(self, parts: Sequence[QuantRows], dtype: Any = None):
        """dtype: the dtype of `ops.embedding`'s result, if it does not follow from the parts."""
        self.parts, self._dtype = tuple(parts), dtype
        (self.columns,) = {part.columns for part in self.parts}

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.columns

    @property
    def dtype(self) -> Any:
        """The dtype of dequantised numbers: that of parts in float32 or float64, else float32."""
        if self._dtype is not None:
            return self._dtype
        kinds = {part.kind.name for part in self.parts}
        return self.parts[0].arrays[0].dtype if kinds in ({"F32"}, {"F64"}) else np.dtype(np.float32)

    @property
    def device(self) -> Any:
        """The device of torch's arrays."""
        return self.parts[0].arrays[0].device

    @property
    def is_plain(self) -> bool:
        """True if all parts are floating-point numbers."""
        return all(part.kind.is_plain for part in self.parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def map(self, fn: Callable[[Array], Array]) -> QuantTensor:
        """A copy with fn(array) for every array that it is stored in."""
        return QuantTensor([part.map(fn) for part in self.parts], self._dtype)

    def dequantise(self) -> np.ndarray:
        """The matrix as a NumPy array (E, D)."""
        parts = [part.dequantise() for part in self.parts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def take(self, ids: np.ndarray) -> np.ndarray:
        """The rows (..., D) of indices `ids` (...), of NumPy arrays."""
        flat = ids.reshape(-1)
        if len(self.parts) == 1:
            found = self.parts[0][flat].dequantise()
        else:
            found = np.empty((flat.size, self.columns), self.dtype)
            begin = 0
            for part in self.parts:
                here = (flat >= begin) & (flat < begin + len(part))
                found[here] = part[flat[here] - begin].dequantise()
                begin += len(part)
        return found.reshape(*ids.shape, self.columns)
