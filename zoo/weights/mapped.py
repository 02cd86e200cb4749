"""Weight files mapped into memory, and their element types."""

from __future__ import annotations

import math
import mmap
import os
import reprlib
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..errors import CheckpointError, NotFoundError, UnsupportedError
from ..files.pages import mapping_of

# safetensors' name of an element type -> its bits, and NumPy's type for it (None: there is none).
DTYPES: dict[str, tuple[int, str | None]] = {
    "BOOL": (8, "?"),
    "U8": (8, "u1"),
    "I8": (8, "i1"),
    "U16": (16, "<u2"),
    "I16": (16, "<i2"),
    "U32": (32, "<u4"),
    "I32": (32, "<i4"),
    "U64": (64, "<u8"),
    "I64": (64, "<i8"),
    "F16": (16, "<f2"),
    "F32": (32, "<f4"),
    "F64": (64, "<f8"),
    "C64": (64, "<c8"),
    "BF16": (16, "<u2"),
    "F8_E4M3": (8, "u1"),
    "F8_E5M2": (8, "u1"),
    "F8_E8M0": (8, "u1"),
    "F8_E4M3FNUZ": (8, "u1"),
    "F8_E5M2FNUZ": (8, "u1"),
    "F4": (4, None),
    "F6_E2M3": (6, None),
    "F6_E3M2": (6, None),
}

MAX_RANK = 32  # dimensions of NumPy 1's arrays

_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxtuple, _REPR.maxlist, _REPR.maxstring = 2, 8, 8, 100


def shorten(value: object) -> str:
    """A value from a file, shortened for a message."""
    return _REPR.repr(list(value) if isinstance(value, tuple) else value)


class FileState(NamedTuple):
    """What differs once a file has changed.  On Windows a file keeps it if its time is set back afterwards."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @property
    def change_time(self) -> float:
        """The time of the last change, in seconds since the epoch."""
        return max(self.mtime_ns, self.ctime_ns) / 1e9


class Region(NamedTuple):
    """The bytes of a file from `begin` on, as they were when the file was in `state`."""

    path: Path
    state: FileState
    begin: int


def file_state(about: os.stat_result) -> FileState:
    return FileState(about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


_mapped: WeakKeyDictionary[mmap.mmap, tuple[Path, FileState]] = WeakKeyDictionary()  # -> the file that is mapped


def map_file(path: Path) -> np.ndarray:
    """The bytes of a file as a read-only uint8 array [n], read from disk when they are accessed.

    If the file is truncated afterwards, an access beyond its end kills the process (SIGBUS).  No check can
    prevent that, so replace weight files by renaming, as every download tool does.
    """
    from ..files.inside import LFS_POINTER, check_regular

    try:
        check_regular(path.stat().st_mode, path, CheckpointError)
        with path.open("rb") as file:
            if not file.seek(0, 2):
                raise CheckpointError(f"{path}: the file is empty")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            _mapped[mapped] = path.absolute(), file_state(os.fstat(file.fileno()))
            data = np.frombuffer(mapped, np.uint8)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"{path}: no such file") from None
    except (OSError, ValueError) as e:
        raise CheckpointError(f"{path}: cannot be read: {e}") from None
    head = data[:512].tobytes().lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith(LFS_POINTER):
        raise CheckpointError(f"{path}: a git-LFS pointer of {len(data)} bytes, not the weights: run `git lfs pull`")
    if head.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise CheckpointError(f"{path}: a web page saved as a weight file: download it again")
    return data


def region_of(array: np.ndarray) -> Region | None:
    """Where the first element of a mapped array is; None if the array is not mapped, or its file has changed since."""
    base, begin = mapping_of(array)
    if base is None or base not in _mapped:
        return None
    path, state = _mapped[base]
    try:
        return Region(path, state, begin) if file_state(os.stat(path)) == state else None
    except OSError:
        return None


def element_bits(dtype: str) -> int:
    return DTYPES[dtype][0]


def check_shape(shape: tuple[int, ...], bits: int) -> str | None:
    """The error in a shape of elements of `bits` bits, or None."""
    if len(shape) > MAX_RANK:
        return f"{len(shape)} dimensions, expected at most {MAX_RANK}"
    if any(type(n) is not int or n < 0 for n in shape):
        return f"the shape {shorten(shape)}, expected non-negative integers"
    # NumPy ignores zeros when it limits a size, so even an empty array may be too large.
    if math.prod(n or 1 for n in shape) * bits >= 2**63:
        return f"the shape {shorten(shape)}, which is beyond any memory"
    return None


def elements(data: np.ndarray, dtype: str, where: str) -> np.ndarray:
    """A view of the bytes `data` [n] as elements; errors begin with `where`."""
    kind = DTYPES[dtype][1]
    if kind is None:
        raise UnsupportedError(f"{where}: elements of type {dtype} are not supported")
    if dtype == "BOOL" and data.size and data.max() > 1:
        raise CheckpointError(f"{where}: a bool of value {data.max()}, expected 0 or 1")
    return data.view(kind)
