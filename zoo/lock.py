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
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import hub
from .checkpoint.files import Checkpoint
from .checkpoint.modules import leaves_folder
from .checkpoint.names import Name, as_name
from .errors import LockError, NotFoundError, OfflineError, ZooError, nearest
from .files.atomic_write import atomic_write, one_writer
from .files.folder import CheckpointFolder
from .files.inside import checkpoint_file
from .files.json_file import read_json
from .guards.names import is_file_name
from .options import DEFAULTS, FIND, Options
from .weights.adapter import FILES as ADAPTER_FILES
from .weights.files import WEIGHT_FILES, read_index

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import FindOptions, HubOptions

NAME = "zoo.lock"
VERSION = 1
MAX_BYTES = 16 << 20
_CHUNK = 1 << 20
_HASH = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
PATIENCE = 10  # seconds to wait for another process that writes the same lock


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

    @property
    def fingerprint(self) -> str:
        """The digest of a canonical text of the commit, all names and all hashes, after "sha256:"."""
        files = {name: file.sha256 for name, file in self.files.items()}
        text = json.dumps({"version": VERSION, "revision": self.revision, "files": files}, sort_keys=True)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def fingerprint(checkpoint: Checkpoint) -> str:
    """One digest of a checkpoint whose files are at hand: the one that its lock entry has.  Reads all files."""
    return entry_of(checkpoint).fingerprint


def entry_of(checkpoint: Checkpoint) -> LockEntry:
    """A checkpoint's entry for a lock.  All files are read, four at a time and a MiB of each."""
    return LockEntry(checkpoint.revision, _hashed(checkpoint.folder, used_files(checkpoint)))


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
    path = _path(path)
    try:
        target = Path(os.path.realpath(path))
        with one_writer(target, PATIENCE, LockError):
            merged = {**(read_lock(path) if path.exists() else {}), **entries}
            checkpoints = {name: _as_json(merged[name]) for name in sorted(merged)}
            text = json.dumps({"version": VERSION, "checkpoints": checkpoints}, indent=1, ensure_ascii=False) + "\n"
            with atomic_write(target) as part:
                part.write_text(text, encoding="utf-8")
    except OSError as e:
        raise LockError(f"cannot write {path}: {e.strerror or e}") from e


def read_lock(path: str | os.PathLike[str]) -> dict[str, LockEntry]:
    """The entries of a lock file by name; LockError where it is not one, or is another version's."""
    path = _path(path)
    try:
        raw = read_json(path, MAX_BYTES, LockError)
    except NotFoundError:
        raise LockError(f"{path}: no such file; `zoo lock NAME -o {path}` writes one") from None
    _expect_fields(raw, ("version", "checkpoints"), str(path))
    if type(raw["version"]) is not int or raw["version"] != VERSION:
        raise LockError(f"{path}: version {raw['version']!r}, expected {VERSION}")
    return {name: _entry(found, f"{path}: {name!r}") for name, found in _object(raw["checkpoints"], path).items()}


def _path(path: str | os.PathLike[str]) -> Path:
    """The path of a lock as the user gave it; LockError if it is none."""
    if not isinstance(path, str | os.PathLike):
        raise LockError(f"lock is {path!r}, expected the path of a file that `zoo lock` wrote")
    if not os.fspath(path):
        raise LockError("the lock's path is empty, expected the path of a file that `zoo lock` wrote or is to write")
    return Path(path)


def lock(
    names: Iterable[str | os.PathLike[str]],
    path: str | os.PathLike[str] = NAME,
    **options: Unpack[HubOptions],
) -> dict[str, LockEntry]:
    """Find checkpoints, hash their files, and write them to a lock file; arguments as for `zoo.load`.

    The key of a folder is its path as it was given, "./model/" being "model": it is found again under the same working
    directory, wherever the lock file is.
    """
    entries: dict[str, LockEntry] = {}
    if _path(path).exists():
        read_lock(path)  # a damaged one is an error before anything is downloaded
    for name in map(as_name, names):
        found = _adapter(name) or hub.find(name, **options)
        entries[_key(name)] = entry_of(found)
    write_lock(path, entries)
    return entries


def find(
    name_or_folder: str | os.PathLike[str], options: Options = DEFAULTS, **more: Unpack[FindOptions]
) -> Checkpoint:
    """`hub.find`; with a lock for the commit that it names, and all bytes of the files compared with it.

    The hub is asked only for what the cache lacks.  LockError where the lock does not name the checkpoint, where
    `revision` is not the locked commit, and where a file is missing, different, or not in the lock.
    """
    options = options.update(more, FIND)
    if options.lock is None:
        return hub.find(name_or_folder, options)
    name, lock, revision = as_name(name_or_folder), options.lock, options.revision
    entries, key = read_lock(lock), _key(name)
    if key not in entries:
        raise LockError(f"{lock} has no {key!r}{nearest(key, entries) or f': `zoo lock {key} -o {lock}` adds it'}")
    entry = entries[key]
    if revision is not None and revision != entry.revision:
        locked = f"commit {entry.revision}" if entry.revision else "a folder"
        raise LockError(f"{lock}: revision {revision!r} of {key!r} was asked for, and {locked} is locked")
    found = _located(name, entry, f"{lock}: {key!r}", options)
    if problems := differences(entry, found):
        others = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise LockError(f"{lock}: {key!r}: {problems[0]}{others}")
    return replace(found, fingerprint=entry.fingerprint)


def find_adapter(folder: str | os.PathLike[str], lock: str | os.PathLike[str] | None) -> Path:
    """The folder of an adapter; with a lock, LockError where this does not name it, or names other files."""
    if lock is not None:
        find(folder, Options(lock=lock))
    return Path(folder).expanduser()


def _adapter(name: Name) -> Checkpoint | None:
    """A folder with a LoRA adapter and no checkpoint, as a checkpoint without weights."""
    contents = CheckpointFolder(Path(name.text).expanduser())
    if not name.is_path or not contents.has(ADAPTER_FILES[0]) or contents.has("config.json"):
        return None
    files = tuple(name for name in ADAPTER_FILES if contents.has(name))
    return Checkpoint(name.text, contents.path, None, files, (), contents)


def check(
    path: str | os.PathLike[str] = NAME,
    names: Collection[str | os.PathLike[str]] = (),
    *,
    cache_dir: str | os.PathLike[str] | None = None,
) -> dict[str, list[str]]:
    """The differences between the files on disk and a lock, by name; empty if there are none.  No names: all of it.

    The network is not used.  LockError where a name is not in the lock.
    """
    entries = read_lock(path)
    keys = [_key(as_name(name)) for name in names] or list(entries)
    offline = Options(local_files_only=True, cache_dir=cache_dir)
    for key in keys:
        if key not in entries:
            raise LockError(f"{path} has no {key!r}{nearest(key, entries)}; it names {', '.join(entries) or 'nothing'}")
    found: dict[str, list[str]] = {}
    for key in keys:
        try:
            checkpoint = _located(as_name(key), entries[key], f"{path}: {key!r}", offline)
            found[key] = differences(entries[key], checkpoint)
        except ZooError as e:
            found[key] = [str(e)]
    return found


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
    for name, file in _hashed(folder, same_size).items():
        if file != entry.files[name]:
            problems.append(f"{folder / name} has sha256 {file.sha256}, the lock names {entry.files[name].sha256}")
    return problems


def _located(name: Name, entry: LockEntry, where: str, options: Options) -> Checkpoint:
    """The checkpoint at the locked commit; from the hub only if the cache does not have all that is locked."""
    if name.is_local:
        if entry.revision is not None:
            raise LockError(f"{where} is a folder here, and the lock names commit {entry.revision} of the hub")
        try:
            return _adapter(name) or hub.find(name)
        except NotFoundError as e:
            hint = "" if os.path.isabs(os.path.expanduser(name.text)) else _relative()
            raise LockError(f"{where}: {e}{hint}") from e
    if entry.revision is None:
        raise LockError(f"{where} was locked as a folder, and there is no such folder here{_relative()}")
    options = replace(options, revision=entry.revision)
    try:
        cached = hub.find(name, replace(options, local_files_only=True))
        if options.local_files_only or entry.files.keys() <= set(used_files(cached)):
            return cached
    except OfflineError:
        if options.local_files_only:
            raise
    return hub.find(name, options)


def _relative() -> str:
    return f" (a lock's folders are relative to the working directory, {Path.cwd()})"


def _key(name: Name) -> str:
    """The name of a checkpoint in a lock."""
    try:
        name.text.encode()
    except UnicodeEncodeError:
        raise LockError(f"the path {name.text!r} is not UTF-8, which a lock is") from None
    return Path(os.path.normpath(name.text)).as_posix() if name.is_path else name.text


def _hashed(folder: Path, names: Collection[str]) -> dict[str, LockedFile]:
    """The sizes and hashes of files, by name; hashing releases the interpreter, so four are read at once."""
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(names, pool.map(lambda name: _hashed_file(folder / name), names), strict=True))


def _hashed_file(path: Path) -> LockedFile:
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
            raise LockError(f"{where}: {name!r} is no name of a file in a checkpoint: expected 'file' or 'folder/file'")
        _expect_fields(file, ("size", "sha256"), f"{where}: {name}")
        size, sha256 = file["size"], file["sha256"]
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise LockError(f"{where}: {name}: size {size!r}, expected a number of bytes")
        if not isinstance(sha256, str) or not _HASH.fullmatch(sha256):
            raise LockError(f"{where}: {name}: sha256 {sha256!r}, expected 64 hexadecimal digits")
        files[name] = LockedFile(size, sha256)
    entry = LockEntry(revision, files)
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
    for field in fields:
        if field not in found:
            raise LockError(f"{where}: no {field!r}{nearest(field, found)}")


def _object(found: Any, where: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise LockError(f"{where}: a {type(found).__name__}, expected an object")
    return found
