"""Where the members of a zip lie, for zips that can be mapped: not compressed, encrypted, doubled or overlapping."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from ..errors import CheckpointError

_DIRECTORY_LIMIT = 8 << 20  # about 100,000 members
_END = struct.Struct("<4s4H2IH")
_LOCATOR = struct.Struct("<4sIQI")
_END64 = struct.Struct("<4sQ2H2I4Q")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")


def read_members(data: np.ndarray, path: Path) -> dict[str, tuple[int, int]]:
    """Name -> (first byte, size) of the members of a zip of bytes `data` [n], which must be stored uncompressed."""
    try:
        return _read(data, path)
    except (struct.error, UnicodeDecodeError, IndexError) as e:
        raise CheckpointError(f"{path}: a damaged zip: {e}") from None


def _read(data: np.ndarray, path: Path) -> dict[str, tuple[int, int]]:
    begin, size, count = _directory(data, path)
    if size > _DIRECTORY_LIMIT:
        raise CheckpointError(f"{path}: a zip directory of {size} bytes, at most {_DIRECTORY_LIMIT} were expected")
    directory = data[begin : begin + size].tobytes()
    members: dict[str, tuple[int, int]] = {}
    at = 0
    while at < size:
        signature, _, _, flags, method, _, _, _, packed, unpacked, n_name, n_extra, n_comment, _, _, _, local = (
            _CENTRAL.unpack_from(directory, at)
        )
        if signature != b"PK\1\2":
            raise CheckpointError(f"{path}: a damaged zip: no directory entry at byte {begin + at}")
        at += _CENTRAL.size
        raw = directory[at : at + n_name]
        name = raw.decode()
        unpacked, packed, local = _wide(directory[at + n_name : at + n_name + n_extra], (unpacked, packed, local))
        at += n_name + n_extra + n_comment
        where = f"{path}: the zip member {name[:100]!r}"
        if name in members:
            raise CheckpointError(f"{where} occurs twice")
        if not name or name[0] == "/" or "\\" in name or "\0" in name or ":" in name or ".." in name.split("/"):
            raise CheckpointError(f"{where} has a path that leaves the archive")
        if flags & 0x2041:
            raise CheckpointError(f"{where} is encrypted")
        if method or packed != unpacked:
            raise CheckpointError(f"{where} is compressed: torch.save and numpy.savez store")
        members[name] = _body(data, local, raw, begin, where), unpacked
    if at != size or len(members) != count:
        raise CheckpointError(f"{path}: a damaged zip: {len(members)} members, {count} were announced")
    _check_apart(members, begin, path)
    return members


def _directory(data: np.ndarray, path: Path) -> tuple[int, int, int]:
    """First byte, size and number of entries of the central directory."""
    first = max(0, len(data) - _END.size - 0xFFFF)
    tail = data[first:].tobytes()
    found = tail.rfind(b"PK\5\6")
    if found < 0:
        raise CheckpointError(f"{path}: a zip without its end: cut short?")
    _, disk, start_disk, _, count, size, begin, n_comment = _END.unpack_from(tail, found)
    end = first + found
    if end + _END.size + n_comment != len(data):
        raise CheckpointError(f"{path}: bytes after the end of the zip")
    if end >= _LOCATOR.size and data[end - _LOCATOR.size :][:4].tobytes() == b"PK\6\7":
        *_, end64, disks = _LOCATOR.unpack(data[end - _LOCATOR.size : end].tobytes())
        record = data[end64 : end64 + _END64.size].tobytes()
        signature, _, _, _, disk, start_disk, _, count, size, begin = _END64.unpack(record)
        if signature != b"PK\6\6" or disks > 1:
            raise CheckpointError(f"{path}: a damaged zip: no 64-bit end where it was announced")
        end = end64
    if disk or start_disk:
        raise CheckpointError(f"{path}: one part of a zip of several")
    if begin + size != end:
        raise CheckpointError(f"{path}: a damaged zip: the directory does not end where the end begins")
    return begin, size, count


def _wide(extra: bytes, values: tuple[int, int, int]) -> list[int]:
    """Size, packed size and offset, those that do not fit 32 bits taken from the extra field 1."""
    wide = list(values)
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        at += 4
        if kind == 1:
            field = at
            for i, value in enumerate(values):
                if value == 0xFFFFFFFF:
                    (wide[i],) = struct.unpack_from("<Q", extra[: at + size], field)
                    field += 8
            return wide
        at += size
    return wide


def _body(data: np.ndarray, local: int, name: bytes, directory: int, where: str) -> int:
    """The first byte of a member, behind the header that repeats what the directory says."""
    if local + _LOCAL.size > directory:
        raise CheckpointError(f"{where} begins beyond the end of the file")
    signature, _, _, method, *_, n_name, n_extra = _LOCAL.unpack(data[local : local + _LOCAL.size].tobytes())
    begin = local + _LOCAL.size
    if signature != b"PK\3\4" or method or data[begin : begin + n_name].tobytes() != name:
        raise CheckpointError(f"{where} has another header than the directory says")
    return begin + n_name + n_extra


def _check_apart(members: dict[str, tuple[int, int]], end: int, path: Path) -> None:
    at = 0
    for name, (begin, size) in sorted(members.items(), key=lambda member: member[1]):
        if begin < at:
            raise CheckpointError(f"{path}: the zip member {name[:100]!r} overlaps another")
        at = begin + size
    if at > end:
        raise CheckpointError(f"{path}: a zip member goes beyond the end of the file")
