"""Lock files: which files a name stood for, by their hashes, so that a later load takes exactly those or refuses.

A lock is JSON.  For each checkpoint it has the commit (null for a folder) and, for every file that loading uses, its
size and sha256; and a fingerprint, one digest of the commit and of all names and hashes, by which a parity report and a
program that runs can say that they mean the same files.

    {"version": 1, "checkpoints": {"org/name": {"revision": "<40 hex digits>", "fingerprint": "sha256:...",
     "files": {"config.json": {"size": 612, "sha256": "..."}, ...}}}}

The bytes are hashed before they are used.  A file that another process changes between the two is outside of the
protection: keep the folder where only those write whom you trust.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import LockError, NotFoundError, nearest
from ..files.atomic_write import atomic_write, one_writer
from ..files.folder import CheckpointFolder
from ..files.inside import checkpoint_file, is_file_name
from ..files.json_file import read_json
from ..weights.files import WEIGHT_FILES, read_index
from .files import Checkpoint, local_checkpoint
from .modules import leaves_folder
from .names import CheckpointRef

VERSION = 1
MAX_BYTES = 16 << 20
_CHUNK = 1 << 20
_HASH = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
LOCK_TIMEOUT = 10  # seconds to wait for another process that writes the same lock


@dataclass(frozen=True)
class LockedFile:
    """A file's size in bytes and its sha256, 64 hexadecimal digits."""

    size: int
    sha256: str


@dataclass(frozen=True)
class LockEntry:
    """A checkpoint in a lock: its commit, None for a folder, and its files by their names relative to the folder."""

    revision: str | None
    files: Mapping[str, LockedFile]
    where: str = field(default="", compare=False)
    """Its place, for messages."""

    @property
    def fingerprint(self) -> str:
        """The digest of a canonical text of the commit, all names and all hashes, after "sha256:"."""
        files = {name: file.sha256 for name, file in self.files.items()}
        text = json.dumps({"version": VERSION, "revision": self.revision, "files": files}, sort_keys=True)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def entry_of(checkpoint: Checkpoint) -> LockEntry:
    """A checkpoint's entry for a lock.  All files are read, four at a time and a MiB of each."""
    return LockEntry(checkpoint.revision, _hash_files(checkpoint.folder, used_files(checkpoint)))


def used_files(checkpoint: Checkpoint) -> list[str]:
    """The names, relative to the folder, of all files that loading may read; those of sentence encoders' modules too,
    whose folders modules.json may name as it likes."""
    folder, names = checkpoint.folder, set(checkpoint.files)
    if checkpoint.opened is not None:  # a GGUF file: nothing else is read
        return sorted(names)
    for where in _module_folders(folder):
        inside = checkpoint_file(folder, where)
        weights = [name for name in WEIGHT_FILES if (inside / name).is_file()][:1]
        shards = [shard for name in weights if name.endswith(".index.json") for shard in read_index(inside / name)]
        paths = [checkpoint_file(inside, name) for name in ("config.json", *weights, *shards)]
        names.update(path.relative_to(folder).as_posix() for path in paths if path.is_file())
    return sorted(names)


def _module_folders(folder: Path) -> list[str]:
    """The folders that modules.json leads to, without those that loading refuses to follow."""
    found = CheckpointFolder(folder)
    modules = found.json_list("modules.json") if found.has("modules.json") else []
    named = [module.get("path") for module in modules if isinstance(module, dict)]
    return [n for n in named if isinstance(n, str) and n and not leaves_folder(n) and (folder / n).is_dir()]


def write_lock(path: str | os.PathLike[str], entries: Mapping[str, LockEntry]) -> None:
    """Add entries to a lock file, in place of entries of the same names.

    If `path` is a link, the file that it leads to is written.
    """
    path = lock_path(path)
    try:
        target = Path(os.path.realpath(path))
        with one_writer(target, LOCK_TIMEOUT, LockError):
            merged = {**(read_lock(path) if path.exists() else {}), **entries}
            checkpoints = {name: _as_json(merged[name]) for name in sorted(merged)}
            text = json.dumps({"version": VERSION, "checkpoints": checkpoints}, indent=1, ensure_ascii=False) + "\n"
            with atomic_write(target) as part:
                part.write_text(text, encoding="utf-8")
    except OSError as e:
        raise LockError(f"cannot write {path}: {e.strerror or e}") from e


def read_lock(path: str | os.PathLike[str]) -> dict[str, LockEntry]:
    """The entries of a lock file by name; LockError where it is not one, or is another version's."""
    path = lock_path(path)
    try:
        raw = read_json(path, MAX_BYTES, LockError)
    except NotFoundError:
        raise LockError(f"{path}: no such file; `zoo lock NAME -o {path}` writes one") from None
    _expect_fields(raw, ("version", "checkpoints"), str(path))
    if type(raw["version"]) is not int or raw["version"] != VERSION:
        raise LockError(f"{path}: version {raw['version']!r}, expected {VERSION}")
    return {name: _entry(found, f"{path}: {name!r}") for name, found in _object(raw["checkpoints"], path).items()}


def lock_path(path: str | os.PathLike[str]) -> Path:
    """The path of a lock as the user gave it; LockError if it is none."""
    if not isinstance(path, str | os.PathLike):
        raise LockError(f"lock is {path!r}, expected the path of a file that `zoo lock` wrote")
    if not os.fspath(path):
        raise LockError("the lock's path is empty, expected the path of a file that `zoo lock` wrote or is to write")
    return Path(path)


def entry_in(
    entries: Mapping[str, LockEntry], path: str | os.PathLike[str], name: CheckpointRef, revision: str | None = None
) -> LockEntry:
    """The entry of a checkpoint among those of the lock at `path`.

    LockError if there is none, or if it is of another commit than the `revision` that was asked for, or of a folder
    where the name is one of the hub, or of the hub where it is a folder's.
    """
    key = key_of(name)
    if key not in entries:
        raise LockError(f"{path} has no {key!r}{nearest(key, entries) or f': `zoo lock {key} -o {path}` adds it'}")
    entry = entries[key]
    if revision is not None and revision != entry.revision:
        locked = f"commit {entry.revision}" if entry.revision else "a folder"
        raise LockError(f"{path}: revision {revision!r} of {key!r} was asked for, and {locked} is locked")
    if name.is_local and entry.revision is not None:
        raise LockError(f"{entry.where} is a folder here, and the lock names commit {entry.revision} of the hub")
    if not name.is_local and entry.revision is None:
        raise LockError(f"{entry.where} was locked as a folder, and there is no such folder here{_relative_to_here()}")
    return entry


def locked_checkpoint(name: CheckpointRef, entry: LockEntry) -> Checkpoint:
    """The checkpoint or the adapter in the folder of an entry, with which it is not compared yet; LockError if there is
    none."""
    try:
        return local_checkpoint(name, adapters=True)
    except NotFoundError as e:
        hint = "" if os.path.isabs(os.path.expanduser(name.text)) else _relative_to_here()
        raise LockError(f"{entry.where}: {e}{hint}") from e


def _relative_to_here() -> str:
    """The sentence on where the folders of a lock are."""
    return f" (a lock's folders are relative to the working directory, {Path.cwd()})"


def compare(found: Checkpoint, entry: LockEntry) -> Checkpoint:
    """The checkpoint with its fingerprint; LockError if its files are not those of its lock entry."""
    if problems := differences(entry, found):
        others = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise LockError(f"{entry.where}: {problems[0]}{others}")
    return replace(found, fingerprint=entry.fingerprint)


def differences(entry: LockEntry, found: Checkpoint) -> list[str]:
    """The differences between a checkpoint and its lock entry: file, what was found, what was expected."""
    folder, problems = found.folder, []
    if found.revision != entry.revision:
        problems.append(f"{folder} is of commit {found.revision}, the lock names {entry.revision}")
    there = used_files(found)
    extra = sorted(set(there) - set(entry.files))
    others = sorted(set(entry.files) - set(there))
    missing = [name for name in others if not (folder / name).is_file()]
    problems += [f"{folder / name} is missing, which the lock names{nearest(name, extra)}" for name in missing]
    problems += [f"{folder / name} would be loaded, and the lock does not name it" for name in extra]
    problems += [
        f"{folder / name} would not be loaded, and the lock names it" for name in others if name not in missing
    ]
    same_size = []
    for name in sorted(set(there) & set(entry.files)):
        size, wanted = os.path.getsize(folder / name), entry.files[name].size
        if size == wanted:
            same_size.append(name)
        else:
            problems.append(f"{folder / name} has {size} bytes, the lock names {wanted}")
    for name, file in _hash_files(folder, same_size).items():
        if file != entry.files[name]:
            problems.append(f"{folder / name} has sha256 {file.sha256}, the lock names {entry.files[name].sha256}")
    return problems


def key_of(name: CheckpointRef) -> str:
    """The name of a checkpoint in a lock."""
    try:
        name.text.encode()
    except UnicodeEncodeError:
        raise LockError(f"the path {name.text!r} is not UTF-8, which a lock is") from None
    return Path(os.path.normpath(name.text)).as_posix() if name.is_path else name.text


def _hash_files(folder: Path, names: Collection[str]) -> dict[str, LockedFile]:
    """The sizes and hashes of files, by name; hashing releases the interpreter, so four are read at once."""
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(names, pool.map(lambda name: _hash_file(folder / name), names), strict=True))


def _hash_file(path: Path) -> LockedFile:
    digest, size, buffer = hashlib.sha256(), 0, bytearray(_CHUNK)
    try:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                digest.update(memoryview(buffer)[:count])
                size += count
    except OSError as e:
        raise LockError(f"{path}: cannot be read: {e.strerror or e}") from e
    return LockedFile(size, digest.hexdigest())


def _as_json(entry: LockEntry) -> dict[str, Any]:
    files = {name: {"size": file.size, "sha256": file.sha256} for name, file in sorted(entry.files.items())}
    return {"revision": entry.revision, "fingerprint": entry.fingerprint, "files": files}


def _entry(found: Any, where: str) -> LockEntry:
    _expect_fields(found, ("revision", "fingerprint", "files"), where)
    revision = found["revision"]
    if revision is not None and not (isinstance(revision, str) and _COMMIT.fullmatch(revision)):
        raise LockError(f"{where}: revision {revision!r}, expected 40 hexadecimal digits, or null for a folder")
    files: dict[str, LockedFile] = {}
    for name, file in _object(found["files"], where).items():
        if not all(is_file_name(part) for part in name.split("/")):
            raise LockError(
                f"{where}: {name!r} is not the name of a file in a checkpoint: expected 'file' or 'folder/file'"
            )
        _expect_fields(file, ("size", "sha256"), f"{where}: {name}")
        size, sha256 = file["size"], file["sha256"]
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise LockError(f"{where}: {name}: size {size!r}, expected a number of bytes")
        if not isinstance(sha256, str) or not _HASH.fullmatch(sha256):
            raise LockError(f"{where}: {name}: sha256 {sha256!r}, expected 64 hexadecimal digits")
        files[name] = LockedFile(size, sha256)
    entry = LockEntry(revision, files, where)
    if found["fingerprint"] != entry.fingerprint:
        raise LockError(
            f"{where}: fingerprint {found['fingerprint']!r}, and revision and files give {entry.fingerprint}: "
            "edited by hand? `zoo lock` writes it anew"
        )
    return entry


def _expect_fields(found: Any, fields: tuple[str, ...], where: str) -> None:
    """Raise LockError unless a value is an object with these fields and no other."""
    for name in _object(found, where):
        if name not in fields:
            raise LockError(f"{where}: the field {name!r} is not known{nearest(name, fields)}")
    for name in fields:
        if name not in found:
            raise LockError(f"{where}: no {name!r}{nearest(name, found)}")


def _object(found: Any, where: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise LockError(f"{where}: a {type(found).__name__}, expected an object")
    return found
