"""The places of a zip's members in its file, for zips that can be mapped: not compressed, encrypted or overlapping."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np

from ..errors import CheckpointError

_DIRECTORY_LIMIT = 8 << 20  # bytes, about 100,000 members
_LOCAL = struct.Struct("<4s5H3I2H")


class _BoundedReader(io.FileIO):
    """A file that refuses to read a directory of any size at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _DIRECTORY_LIMIT:
            raise zipfile.BadZipFile(f"a directory of {size} bytes, expected at most {_DIRECTORY_LIMIT}")
        return super().read(size)


def read_members(data: np.ndarray, path: Path) -> dict[str, tuple[int, int]]:
    """Name -> (first byte, size) of the members of a zip of bytes `data` [n], which must be stored uncompressed."""
    members: dict[str, tuple[int, int]] = {}
    try:
        with _BoundedReader(path) as file, zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                where = f"{path}: the zip member {member.filename[:100]!r}"
                if member.filename in members:
                    raise CheckpointError(f"{where} occurs twice")
                if member.flag_bits & 0x2041:
                    raise CheckpointError(f"{where} is encrypted")
                if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
                    raise CheckpointError(f"{where} is compressed: torch.save and numpy.savez store")
                members[member.filename] = _body(data, member.header_offset), member.file_size
    except (zipfile.BadZipFile, struct.error, ValueError, OSError, NotImplementedError) as e:
        raise CheckpointError(f"{path}: a damaged zip, or one that is cut short: {e}") from None
    _check_apart(members, len(data), path)
    return members


def _body(data: np.ndarray, header: int) -> int:
    """The first byte of a member, behind its own header."""
    signature, *_, name, extra = _LOCAL.unpack(data[header : header + _LOCAL.size].tobytes())
    if signature != b"PK\3\4":
        raise zipfile.BadZipFile(f"no member at byte {header}")
    return header + _LOCAL.size + name + extra


def _check_apart(members: dict[str, tuple[int, int]], size: int, path: Path) -> None:
    at = 0
    for name, (begin, length) in sorted(members.items(), key=lambda member: member[1]):
        if begin < at:
            raise CheckpointError(f"{path}: the zip member {name[:100]!r} overlaps another")
        at = begin + length
    if at > size:
        raise CheckpointError(f"{path}: a zip member goes beyond the end of the file")
