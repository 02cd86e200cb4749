"""safetensors files: checked by the official library and here, then mapped.

The library accepts duplicate keys and unknown fields, and gives no bfloat16 to NumPy.  Format: a little-endian
uint64 n, n bytes of JSON (name -> dtype, shape, data_offsets from the end of the JSON), and the data without holes.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..errors import CheckpointError, nearest
from ..files.json_file import parse_json
from ..typing import RawTensor
from .mapped import DTYPES, check_shape, element_bits, elements, map_file, shorten
from .source import ListedFile

HEADER_LIMIT = 100_000_000  # the library's
MAX_REMEMBERED_BYTES = 1 << 18  # bytes of a header whose check is not done twice


class _TensorEntry(NamedTuple):
    """A tensor's entry in the header: its bytes are data[begin:end]."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


_Listed = tuple[Mapping[str, _TensorEntry], Mapping[str, str]]


class SafetensorsFile(ListedFile):
    """A Source: the tensors of one file, each a read-only view of the mapped file (not always aligned).

    The size of the file is checked once; it must not change later (see map_file).
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.files = [self.path]
        data = map_file(self.path)
        begin = _header_end(data, self.path)
        self._data = data[begin:]
        header = data[8:begin].tobytes()
        listed = _remembered if len(header) <= MAX_REMEMBERED_BYTES else _list_tensors
        self._entries, self.metadata = listed(header, len(self._data), self.path)

    def read(self, name: str) -> RawTensor:
        dtype, shape, begin, end = self._entry(name)
        return RawTensor(elements(self._data[begin:end], dtype, f"{self.path}: {name}").reshape(shape), dtype)


def _header_end(data: np.ndarray, path: Path) -> int:
    if len(data) < 8:
        raise CheckpointError(f"{path}: {len(data)} bytes, but a safetensors file has at least 8")
    size = int.from_bytes(data[:8].tobytes(), "little")
    if size > HEADER_LIMIT:
        raise CheckpointError(
            f"{path}: a header of {size} bytes, expected at most {HEADER_LIMIT}: is it a safetensors file?"
        )
    if size > len(data) - 8:
        raise CheckpointError(f"{path}: a header of {size} bytes in a file of {len(data)}: is the download incomplete?")
    return 8 + size


def _list_tensors(header: bytes, size: int, path: Path) -> _Listed:
    """The tensors and the metadata of a header, which fits a file with `size` bytes behind it."""
    entries, metadata = _header(header, path)
    _check_spans(entries, size, path)
    _check_with_library(path)
    return MappingProxyType(entries), MappingProxyType(metadata)


_remembered = lru_cache(8)(_list_tensors)  # the answer, the library's too, follows from these bytes and the size


def _header(data: bytes, path: Path) -> tuple[dict[str, _TensorEntry], dict[str, str]]:
    header = parse_json(data, f"{path}: header", CheckpointError, _shrink)
    metadata: Any = header.pop("__metadata__", None)
    if metadata is None:
        metadata = {}
    elif isinstance(metadata, tuple):  # metadata with the three keys of a tensor
        metadata = dict(zip(_FIELDS, metadata, strict=True))
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise CheckpointError(f"{path}: __metadata__ is not an object of strings")
    for name, found in header.items():
        header[name] = _entry(found, f"{path}: {name[:200]!r}")
    return header, metadata


_FIELDS = ("dtype", "shape", "data_offsets")


def _shrink(found: dict[str, Any]) -> Any:
    # Tuples: a million tensors as dicts would take three times the memory.
    return tuple(found[field] for field in _FIELDS) if found.keys() == set(_FIELDS) else found


def _entry(found: Any, where: str) -> _TensorEntry:
    if not isinstance(found, tuple):
        raise CheckpointError(f"{where}: {shorten(found)}, expected an object of {', '.join(_FIELDS)}")
    dtype, shape, offsets = found
    if not isinstance(dtype, str) or dtype not in DTYPES:
        guess = nearest(dtype[:50], DTYPES) if isinstance(dtype, str) else ""
        raise CheckpointError(f"{where}: an unknown dtype {shorten(dtype)}{guess}")
    if not isinstance(shape, list):
        raise CheckpointError(f"{where}: a shape of type {type(shape).__name__}, expected a list")
    shape = tuple(shape)
    if wrong := check_shape(shape, element_bits(dtype)):
        raise CheckpointError(f"{where}: {wrong}")
    # bool is an int in Python, not in JSON
    if not isinstance(offsets, list) or [type(n) for n in offsets] != [int, int] or not 0 <= offsets[0] <= offsets[1]:
        raise CheckpointError(f"{where}: data_offsets {shorten(offsets)}, expected [begin, end] with begin <= end")
    begin, end = offsets
    if math.prod(shape) * element_bits(dtype) != (end - begin) * 8:
        raise CheckpointError(f"{where}: {shorten(shape)} of {dtype} does not fill its {end - begin} bytes")
    return _TensorEntry(sys.intern(dtype), shape, begin, end)


def _check_spans(entries: dict[str, _TensorEntry], size: int, path: Path) -> None:
    """Raise if tensors leave bytes of the file unused, or share bytes."""
    at = 0
    for name in sorted(entries, key=lambda name: entries[name][2:]):
        _, _, begin, end = entries[name]
        if end > size:
            raise CheckpointError(
                f"{path}: {name[:200]!r} ends at byte {end} of only {size} bytes of data: is the download incomplete?"
            )
        if begin != at:
            what = "overlaps the tensor before it" if begin < at else f"leaves a hole of {begin - at} bytes before it"
            raise CheckpointError(f"{path}: {name[:200]!r} {what}")
        at = end
    if at != size:
        raise CheckpointError(f"{path}: {size - at} bytes after the last tensor")


def _check_with_library(path: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy"):
            pass
    except (SafetensorError, OSError, ValueError) as e:
        raise CheckpointError(f"{path}: refused by safetensors: {e}") from None


def write_safetensors(path: Path, tensors: Mapping[str, RawTensor]) -> None:
    """Write the format of https://github.com/huggingface/safetensors."""
    header = {name: (stored.dtype, stored.array.shape) for name, stored in tensors.items()}
    write_tensors(path, header, lambda name: tensors[name].array)


def write_tensors(
    path: Path,
    tensors: Mapping[str, tuple[str, tuple[int, ...]]],
    array_of: Callable[[str], np.ndarray],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a file of tensors, name -> element type and shape; each array is made just before it is written.

    The official library takes no bfloat16 from NumPy, and keeps a second copy of everything while it writes.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"} if metadata is None else dict(metadata)}
    end = 0
    for name, (dtype, shape) in tensors.items():
        begin, end = end, end + math.prod(shape) * element_bits(dtype) // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little"))
        f.write(text)
        for name in tensors:
            f.write(np.ascontiguousarray(array_of(name)).data)
