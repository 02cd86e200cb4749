"""`pytorch_model.bin` without torch: the zip form (torch 1.6 and later) and the pickle stream before it.

Both are a pickle of the tensors' shapes, read by GuardedUnpickler which runs nothing, and the storages' raw bytes,
which are mapped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import CheckpointError, UnsupportedError
from ..guards.pickles import PICKLE_LIMIT, GuardedUnpickler
from ..guards.zips import read_members
from ..typing import RawTensor
from .mapped import check_shape, element_bits, elements, map_file, shorten
from .source import ListedFile

# The numbers that begin every file of the older form.
_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001

# An expanded tensor (stride 0) may be larger than its storage, up to this many elements.
_EXPANDED_LIMIT = 1 << 24
# Tensors may share storages, so that a file can name more bytes than it has, up to this many times.
_SHARED_TIMES, _SHARED_BYTES = 4, 64 << 20

# torch's storage classes and dtypes -> safetensors' names.  Types without a class of their own are saved as an untyped
# storage and a dtype.
_TYPES = {
    "BoolStorage": "BOOL",
    "ByteStorage": "U8",
    "CharStorage": "I8",
    "ShortStorage": "I16",
    "IntStorage": "I32",
    "LongStorage": "I64",
    "HalfStorage": "F16",
    "BFloat16Storage": "BF16",
    "FloatStorage": "F32",
    "DoubleStorage": "F64",
    "ComplexFloatStorage": "C64",
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
}

_WRAPPERS = ("state_dict", "model")


class _ElementType(NamedTuple):
    """Stands for torch.FloatStorage, torch.uint16, ..."""

    dtype: str


class _Storage(NamedTuple):
    """`numel` elements from element `first` of the storage `key`, which has `whole` of them."""

    key: str
    dtype: str
    whole: int
    first: int
    numel: int


class _Tensor(NamedTuple):
    """Like torch: element (i, j, ...) is the storage's offset + i * stride[0] + j * stride[1] + ..."""

    storage: _Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


class TorchBinFile(ListedFile):
    """A Source: the tensors of one file, each a read-only view of the mapped file; shared storages stay shared.

    Accepted: a dict of tensors, or one dict of them under "state_dict" or "model".  `skipped` lists the entries that
    are numbers, strings or None.  The checksums of the zip form are not looked at: that would read the whole file.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.files = [self.path]
        self._data = map_file(self.path)
        head = self._data[:512].tobytes()
        if head.startswith(b"PK"):
            found, self._spans = _read_zip(self._data, self.path)
        elif head[257:262] == b"ustar":
            raise UnsupportedError(f"{path}: the tar form of torch before 0.1.10: load and save it with a later torch")
        elif head.startswith(b"\x80"):
            found, self._spans = _read_stream(self._data, self.path)
        else:
            raise CheckpointError(f"{path}: it begins with {head[:8]!r}, which is neither a zip nor a pickle")
        self._entries, self.skipped = _state_dict(found, self.path)
        for name, tensor in self._entries.items():
            _check(tensor, self._spans, f"{self.path}: {name[:200]!r}")
        named = sum(math.prod(t.shape) * element_bits(t.dtype) // 8 for t in self._entries.values())
        if named > (most := _SHARED_TIMES * len(self._data) + _SHARED_BYTES):
            raise CheckpointError(
                f"{self.path}: its tensors name {named} bytes of a file of {len(self._data)}, expected at most {most}"
            )

    def read(self, name: str) -> RawTensor:
        tensor = self._entry(name)
        storage, size = tensor.storage, element_bits(tensor.dtype) // 8
        begin = self._spans[storage.key][0] + storage.first * element_bits(storage.dtype) // 8 + tensor.offset * size
        reach = _reach(tensor)
        flat = elements(self._data[begin : begin + reach * size], tensor.dtype, f"{self.path}: {name}")
        if not reach or tensor.stride == _contiguous(tensor.shape):
            return RawTensor(flat.reshape(tensor.shape), tensor.dtype)
        stride = [s * size if n > 1 else size for n, s in zip(tensor.shape, tensor.stride, strict=True)]
        return RawTensor(np.lib.stride_tricks.as_strided(flat, tensor.shape, stride, writeable=False), tensor.dtype)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _reach(tensor: _Tensor) -> int:
    """The number of elements from the tensor's first to its last."""
    if 0 in tensor.shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride, strict=True))


def _check(tensor: _Tensor, spans: Mapping[str, tuple[int, int]], where: str) -> None:
    storage = tensor.storage
    if storage.key not in spans:
        raise CheckpointError(f"{where}: its storage {storage.key[:50]!r} is not in the file")
    width, held = element_bits(storage.dtype) // 8, spans[storage.key][1]
    if storage.whole * width != held:
        raise CheckpointError(
            f"{where}: its storage has {held} bytes, expected {storage.whole} elements of {width} bytes"
        )
    if storage.first + storage.numel > storage.whole:
        raise CheckpointError(f"{where}: a view of {storage.numel} elements beyond the end of its storage")
    if wrong := check_shape(tensor.shape, element_bits(tensor.dtype)):
        raise CheckpointError(f"{where}: {wrong}")
    if len(tensor.stride) != len(tensor.shape) or any(type(s) is not int or not 0 <= s < 2**63 for s in tensor.stride):
        raise CheckpointError(f"{where}: the strides {shorten(tensor.stride)} for the shape {shorten(tensor.shape)}")
    has = storage.numel * width * 8 // element_bits(tensor.dtype)
    if not 0 <= tensor.offset <= has or tensor.offset + _reach(tensor) > has:
        raise CheckpointError(
            f"{where}: {shorten(tensor.shape)} with strides {shorten(tensor.stride)} from element {tensor.offset} "
            f"goes beyond the {has} elements of its storage"
        )
    if math.prod(tensor.shape) > max(has, _EXPANDED_LIMIT):
        raise CheckpointError(f"{where}: expanded to {shorten(tensor.shape)} from a storage of {has} elements")


def _state_dict(found: Any, path: Path) -> tuple[dict[str, _Tensor], list[str]]:
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: expected a dict of tensors, found a {_kind(found)}")
    skipped: list[str] = []
    wrappers = [key for key in _WRAPPERS if isinstance(found.get(key), dict)]
    if len(wrappers) == 1:
        skipped = _scalars({key: value for key, value in found.items() if key != wrappers[0]}, path)
        found = found[wrappers[0]]
    tensors = {key: value for key, value in found.items() if isinstance(value, _Tensor)}
    rest = {key: value for key, value in found.items() if not isinstance(value, _Tensor)}
    if not all(isinstance(key, str) for key in tensors):
        raise CheckpointError(f"{path}: the names {[k for k in tensors if not isinstance(k, str)][:5]} are not strings")
    return tensors, skipped + _scalars(rest, path)


def _scalars(entries: dict[Any, Any], path: Path) -> list[str]:
    """The keys of entries that can be skipped; CheckpointError if there are others."""
    other = [f"{str(k)[:100]} ({_kind(v)})" for k, v in entries.items() if type(v) not in _PLAIN_TYPES]
    if other:
        raise CheckpointError(
            f"{path}: besides tensors it contains {', '.join(other[:8])}{' ...' if other[8:] else ''}; "
            f"expected a dict of tensors, or one under {' or '.join(map(repr, _WRAPPERS))}"
        )
    return [str(key) for key in entries]


_PLAIN_TYPES = (type(None), bool, int, float, str)


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return f"dict of {len(value)}"
    return "tensor" if isinstance(value, _Tensor) else type(value).__name__.lstrip("_")


def _read_zip(data: np.ndarray, path: Path) -> tuple[Any, dict[str, tuple[int, int]]]:
    members = read_members(data, path)
    roots = [name[: -len("data.pkl")] for name in members if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(roots) != 1:
        raise CheckpointError(f"{path}: a zip with {len(roots)} members */data.pkl, torch.save writes one")
    root = roots[0]
    if f"{root}constants.pkl" in members:
        raise UnsupportedError(f"{path}: a TorchScript program, expected a state dict from torch.save")

    def text(name: str) -> bytes:
        begin, size = members[root + name]
        if size > PICKLE_LIMIT:
            raise CheckpointError(f"{path}: {name} has {size} bytes, expected at most {PICKLE_LIMIT}")
        return data[begin : begin + size].tobytes()

    if f"{root}byteorder" in members and (order := text("byteorder")) != b"little":
        raise UnsupportedError(f"{path}: the byte order {order[:20]!r}, expected little")
    reader = GuardedUnpickler(text("data.pkl"), path, _NAMES, _storage)
    found = reader.load()
    if left := members[f"{root}data.pkl"][1] - reader.at:
        raise CheckpointError(f"{path}: {left} bytes after the pickle in data.pkl")
    prefix = f"{root}data/"
    return found, {name[len(prefix) :]: span for name, span in members.items() if name.startswith(prefix)}


def _read_stream(data: np.ndarray, path: Path) -> tuple[Any, dict[str, tuple[int, int]]]:
    storages: dict[str, _Storage] = {}

    def persistent(saved: Any) -> _Storage:
        storage = _storage(saved)
        first = storages.setdefault(storage.key, storage)
        if (first.dtype, first.whole) != (storage.dtype, storage.whole):
            raise CheckpointError(f"{path}: the storage {storage.key[:50]!r} in two sizes or types")
        return storage

    reader = GuardedUnpickler(data[:PICKLE_LIMIT].tobytes(), path, _NAMES, persistent)
    if (magic := reader.load()) != _MAGIC:
        raise CheckpointError(f"{path}: a pickle of a {_kind(magic)}, but not a file that torch.save wrote")
    if (version := reader.load()) != _VERSION:
        raise CheckpointError(f"{path}: version {shorten(version)} of the older torch form, expected {_VERSION}")
    system = reader.load()
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise UnsupportedError(f"{path}: it does not say that its byte order is little")
    found = reader.load()
    keys = reader.load()
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or len(set(keys)) != len(keys):
        raise CheckpointError(f"{path}: no list of different storage keys")
    spans, at = {}, reader.at
    for key in keys:
        if key not in storages:
            raise CheckpointError(f"{path}: the storage {key[:50]!r}, which no tensor has")
        width = element_bits(storages[key].dtype) // 8
        size = int.from_bytes(data[at : at + 8].tobytes(), "little") * width
        at += 8
        if at + size > len(data):
            raise CheckpointError(f"{path}: the storage {key[:50]!r} goes beyond the end of the file: cut short?")
        spans[key] = at, size
        at += size
    if at != len(data):
        raise CheckpointError(f"{path}: {len(data) - at} bytes after the last storage")
    return found, spans


def _storage(saved: Any) -> _Storage:
    """A persistent id: ("storage", type, key, device, numel), in the older form also None or (key, first, numel)."""
    match saved:
        case ("storage", _ElementType(dtype), str(key), str(), int(whole), *view) if 0 <= whole < 2**63:
            match view:
                case [] | [None]:
                    return _Storage(key, dtype, whole, 0, whole)
                case [(str(), int(first), int(numel))] if 0 <= first < 2**63 and 0 <= numel < 2**63:
                    return _Storage(key, dtype, whole, first, numel)
    raise ValueError(f"a persistent id ({_kind(saved)}) that is not a storage")


def _tensor(storage: Any, offset: Any, shape: Any, stride: Any, grad: Any = None, hooks: Any = None, more: Any = None):
    match storage, offset, shape, stride, more:
        case (_Storage(), int(), tuple(), tuple(), None):
            return _Tensor(storage, storage.dtype, offset, shape, stride)
    raise ValueError("a tensor of unusual kind (conjugated, negated or damaged)")


def _typed_tensor(storage: Any, offset: Any, shape: Any, stride: Any, grad: Any, hooks: Any, dtype: Any) -> _Tensor:
    if not isinstance(dtype, _ElementType):
        raise ValueError(f"a tensor whose element type is a {_kind(dtype)}")
    return _tensor(storage, offset, shape, stride)._replace(dtype=dtype.dtype)


def _parameter(data: Any, grad: Any, hooks: Any) -> _Tensor:
    if not isinstance(data, _Tensor):
        raise ValueError(f"a parameter that is a {_kind(data)}")
    return data


def _size(shape: Any) -> tuple[Any, ...]:
    if not isinstance(shape, tuple):
        raise ValueError(f"a torch.Size of a {_kind(shape)}")
    return shape


# All names that a pickle may use besides OrderedDict: "module name" -> its replacement.
_NAMES: dict[str, Any] = {
    "torch Size": _size,
    "torch._utils _rebuild_tensor": _tensor,
    "torch._utils _rebuild_tensor_v2": _tensor,
    "torch._utils _rebuild_tensor_v3": _typed_tensor,
    "torch._utils _rebuild_parameter": _parameter,
    "torch.storage UntypedStorage": _ElementType("U8"),
    **{f"torch {name}": _ElementType(dtype) for name, dtype in _TYPES.items()},
}
