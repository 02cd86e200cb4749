"""The header of a GGUF file: its metadata and the places of its tensors, checked against the file's size.

Little-endian: "GGUF", uint32 version, uint64 tensors, uint64 pairs; the pairs of a key, a type and a value; of each
tensor its name, dimensions (the innermost first), type and offset; then, from the next multiple of the alignment on,
the data.  A string is a uint64 length and UTF-8.

The `gguf` package reads all this too, in a Python loop over whatever counts a file declares: an array that claims 2^60
empty items never ends, and Llama 3's tokenizer takes it 12 s and 630 MB.  So it is what we test against, and no more.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import CheckpointError, UnsupportedError
from ..mapped import check_shape, map_file, shorten

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_BYTES = 128 << 20  # a header's; Llama 3's has 8 MB, nearly all of it the tokenizer's
MAX_STRINGS = 4_000_000  # in arrays
MAX_PAIRS = 65_536
MAX_TENSORS = 131_072
MAX_NAME = 1024  # bytes of a key or a tensor's name
MAX_DIMENSIONS = 4  # ggml's

# ggml's number of an element type -> its name, the elements of a block and the bytes that hold them.
TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    20: ("IQ4_NL", 32, 18),
    23: ("IQ4_XS", 256, 136),
    30: ("BF16", 1, 2),
    39: ("MXFP4", 32, 17),
}
# Types that zoo does not unpack; errors name them.
_OTHER_TYPES = {9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S"}
_OTHER_TYPES |= {21: "IQ3_S", 22: "IQ2_S", 24: "I8", 25: "I16", 26: "I32", 27: "I64"}
_OTHER_TYPES |= {28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 40: "NVFP4"}

_STRING, _ARRAY = 8, 9
# number of a value's type -> what struct and NumPy call it
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_NUMPY = {0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "u1", 10: "<u8", 11: "<i8", 12: "<f8"}


class TensorEntry(NamedTuple):
    """A tensor's line in the header: its span is data[file][begin:end]."""

    dtype: str
    shape: tuple[int, ...]  # the outermost first, as everywhere but in the file
    begin: int
    end: int
    file: int = 0  # the number of its part of a file that was split


class Header(NamedTuple):
    metadata: dict[str, Any]  # bool, int, float, str; arrays as lists of str or NumPy arrays of numbers
    tensors: dict[str, TensorEntry]
    data: tuple[np.ndarray, ...]  # the bytes of each part, uint8, mapped


def read_header(path: Path) -> Header:
    """CheckpointError where the file is damaged, UnsupportedError where it is of a kind that zoo does not read."""
    data = map_file(path)
    head = data[:24].tobytes()
    if head[:4] != MAGIC:
        raise CheckpointError(f"{path}: begins with {head[:4]!r}, a GGUF file begins with {MAGIC!r}")
    if len(head) < 24:
        raise CheckpointError(f"{path}: {len(data)} bytes, a GGUF file has at least 24: cut short?")
    version, tensors, pairs = struct.unpack_from("<IQQ", head, 4)
    if version not in VERSIONS:
        big = int.from_bytes(head[4:8], "big") in VERSIONS
        what = "a big-endian file" if big else f"version {version}"
        raise UnsupportedError(
            f"{path}: GGUF, {what}: versions {', '.join(map(str, VERSIONS))}, little-endian, are read"
        )
    if tensors > MAX_TENSORS or pairs > MAX_PAIRS:
        raise CheckpointError(
            f"{path}: {tensors} tensors and {pairs} metadata pairs, expected at most {MAX_TENSORS} and {MAX_PAIRS}"
        )
    reader = _HeaderReader(data, path)
    metadata = reader.metadata(pairs)
    alignment = _alignment(metadata, path)
    return Header(metadata, reader.tensors(tensors, alignment), (data,))


def _alignment(metadata: Mapping[str, Any], path: Path) -> int:
    found = metadata.get("general.alignment", 32)
    if type(found) is not int or not 0 < found <= 1 << 16 or found & (found - 1) or found % 8:
        raise CheckpointError(f"{path}: general.alignment is {shorten(found)}, expected a power of two from 8 to 65536")
    return found


class _HeaderReader:
    """Goes through a header; `at` is never beyond what there is."""

    def __init__(self, data: np.ndarray, path: Path):
        self.size, self.view, self.path = len(data), data[:MAX_BYTES].data, path
        self.at, self.strings = 24, 0

    def metadata(self, count: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(count):
            key = self._string("a key", MAX_NAME)
            if key in found:
                raise CheckpointError(f"{self.path}: the key {key[:200]!r} occurs twice")
            found[key] = self._value(key[:200])
        return found

    def tensors(self, count: int, alignment: int) -> dict[str, TensorEntry]:
        named: dict[str, tuple[int, tuple[int, ...], int]] = {}
        for _ in range(count):
            name = self._string("a tensor's name", MAX_NAME)
            if name in named:
                raise CheckpointError(f"{self.path}: the tensor {name[:200]!r} is there twice")
            dimensions = self._number("I")
            if dimensions > MAX_DIMENSIONS:
                raise CheckpointError(f"{self.path}: {name!r} has {dimensions} dimensions, at most {MAX_DIMENSIONS}")
            shape = tuple(self._number("Q") for _ in range(dimensions))[::-1]
            named[name] = self._number("I"), shape, self._number("Q")
        start = -(-self.at // alignment) * alignment
        entries = {n: self._entry(n[:200], *line, start, alignment) for n, line in named.items()}
        at, last = start, ""
        for name in sorted(entries, key=lambda name: entries[name][2:]):
            if entries[name].begin < at:
                raise CheckpointError(f"{self.path}: the tensors {last!r} and {name[:200]!r} overlap")
            at, last = entries[name].end, name[:200]
        return entries

    def _entry(
        self, name: str, kind: int, shape: tuple[int, ...], offset: int, start: int, alignment: int
    ) -> TensorEntry:
        where = f"{self.path}: {name!r}"
        if kind not in TYPES:
            what = _OTHER_TYPES.get(kind, f"number {kind}")
            known = ", ".join(dtype for dtype, _, _ in TYPES.values())
            raise UnsupportedError(f"{where} is of type {what}, which is not implemented, only {known} are")
        dtype, block, size = TYPES[kind]
        if wrong := check_shape(shape, 64):
            raise CheckpointError(f"{where}: {wrong}")
        if (shape[-1] if shape else 1) % block:
            raise CheckpointError(f"{where} has rows of {shape[-1:]} numbers, which are not whole blocks of {dtype}")
        begin = start + offset
        end = begin + math.prod(shape) // block * size
        if offset % alignment:
            raise CheckpointError(f"{where} begins at {offset}, which is not a multiple of the alignment, {alignment}")
        if end > self.size:
            raise CheckpointError(f"{where} ends at byte {end} of a file of {self.size}: cut short?")
        return TensorEntry(dtype, shape, begin, end)

    def _take(self, size: int, what: str) -> int:
        """Step over `size` bytes; the position where they begin."""
        begin, end = self.at, self.at + size
        if end > len(self.view):
            if end > self.size:
                raise CheckpointError(f"{self.path}: {what} of {size} bytes at {begin} of {self.size}: cut short?")
            raise CheckpointError(f"{self.path}: a header of more than {MAX_BYTES} bytes")
        self.at = end
        return begin

    def _number(self, kind: str) -> Any:
        return struct.unpack_from("<" + kind, self.view, self._take(struct.calcsize("<" + kind), "a number"))[0]

    def _string(self, what: str, most: int = MAX_BYTES) -> str:
        size = self._number("Q")
        if size > most:
            raise CheckpointError(f"{self.path}: {what} of {size} bytes, expected at most {most}")
        begin = self._take(size, what)
        try:
            return str(self.view[begin : self.at], "utf-8")
        except UnicodeDecodeError as e:
            raise CheckpointError(f"{self.path}: {what} that is not UTF-8 at byte {begin + e.start}") from None

    def _value(self, key: str) -> Any:
        kind = self._number("I")
        if kind == _STRING:
            return self._string(repr(key))
        if kind == _ARRAY:
            return self._array(key)
        if kind not in _SCALARS:
            raise CheckpointError(f"{self.path}: {key!r} is of type {kind}, which GGUF does not have")
        if _SCALARS[kind] == "?":
            return self._bool(key)
        return self._number(_SCALARS[kind])

    def _bool(self, key: str) -> bool:
        value = self._number("B")
        if value > 1:
            raise CheckpointError(f"{self.path}: {key!r} is a bool of value {value}, expected 0 or 1")
        return bool(value)

    def _array(self, key: str) -> Any:
        kind, count = self._number("I"), self._number("Q")
        if kind == _STRING:
            self.strings += count
            if self.strings > MAX_STRINGS or count > len(self.view) // 8:
                raise CheckpointError(
                    f"{self.path}: {key!r} has {count} strings, at most {MAX_STRINGS} in all are read"
                )
            return [self._string(repr(key)) for _ in range(count)]
        if kind not in _NUMPY:
            what = "arrays" if kind == _ARRAY else f"type {kind}"
            raise CheckpointError(f"{self.path}: {key!r} is an array of {what}, expected one of numbers or strings")
        dtype = np.dtype(_NUMPY[kind])
        begin = self._take(count * dtype.itemsize, repr(key))
        return np.frombuffer(self.view[begin : self.at], dtype)
