"""`.npz` files, as numpy.savez writes them: a zip of one .npy file for each tensor; they are mapped.

Format of .npy: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.  Arrays of objects, which are
pickles, are refused, and so are files of numpy.savez_compressed, which cannot be mapped.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import CheckpointError
from ..guards.zips import read_members
from ..typing import RawTensor
from .mapped import check_shape, elements, map_file, shorten
from .source import ListedFile

HEADER_LIMIT = 4096  # bytes of an array's header; ten numbers take 100
# NumPy's name of an element type -> that of safetensors.
_TYPES = {"|b1": "BOOL", "|u1": "U8", "|i1": "I8", "<u2": "U16", "<i2": "I16", "<u4": "U32", "<i4": "I32", "<u8": "U64"}
_TYPES |= {"<i8": "I64", "<f2": "F16", "<f4": "F32", "<f8": "F64", "<c8": "C64"}


class _NpyEntry(NamedTuple):
    """One array: its numbers are data[begin:end]."""

    dtype: str
    shape: tuple[int, ...]
    by_columns: bool
    begin: int
    end: int


class NpzFile(ListedFile):
    """A Source: the arrays of one file, each a read-only view of the mapped file unless it is stored by columns."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.files = [self.path]
        self._data = map_file(self.path)
        self._entries = {}
        for member, (begin, size) in read_members(self._data, self.path).items():
            name = member.removesuffix(".npy")
            if name == member:
                raise CheckpointError(f"{self.path}: the member {member[:100]!r} is not a .npy file")
            self._entries[name] = _entry(self._data, begin, size, f"{self.path}: {name[:100]!r}")

    def read(self, name: str) -> RawTensor:
        dtype, shape, by_columns, begin, end = self._entry(name)
        array = elements(self._data[begin:end], dtype, f"{self.path}: {name}")
        if by_columns:
            return RawTensor(np.ascontiguousarray(array.reshape(shape, order="F")), dtype)
        return RawTensor(array.reshape(shape), dtype)


def _entry(data: np.ndarray, begin: int, size: int, where: str) -> _NpyEntry:
    from numpy.lib import format as npy

    file = io.BytesIO(data[begin : begin + min(size, HEADER_LIMIT + 12)].tobytes())
    try:
        version = npy.read_magic(file)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, by_columns, dtype = read(file, max_header_size=HEADER_LIMIT)
    except KeyError:
        raise CheckpointError(f"{where}: the version of a .npy file must be 1.0 or 2.0") from None
    except Exception as e:  # the header is a Python literal, whose parsers raise many types
        raise CheckpointError(f"{where}: not a .npy file, or a damaged one: {shorten(str(e))}") from None
    if dtype.str not in _TYPES:
        what = "an array of objects, a pickle" if dtype.hasobject else f"of type {shorten(dtype.str)}"
        raise CheckpointError(f"{where} is {what}, expected one of {', '.join(_TYPES)}")
    if wrong := check_shape(shape, dtype.itemsize * 8):
        raise CheckpointError(f"{where}: {wrong}")
    first = begin + file.tell()
    if math.prod(shape) * dtype.itemsize != begin + size - first:
        raise CheckpointError(
            f"{where}: {shorten(shape)} of {dtype.str} does not fill its {begin + size - first} bytes"
        )
    return _NpyEntry(_TYPES[dtype.str], tuple(shape), bool(by_columns), first, begin + size)
