"""Writes and checks lock files, which name the files of checkpoints by their hashes: see `zoo.checkpoint.lock_file`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from . import hub
from .checkpoint.files import Checkpoint, local_checkpoint
from .checkpoint.lock_file import (
    LockEntry,
    differences,
    entry_in,
    entry_of,
    key_of,
    lock_path,
    locked_checkpoint,
    read_lock,
    write_lock,
)
from .checkpoint.names import as_name
from .checkpoint.repository import from_hub
from .errors import LockError, ZooError, nearest
from .options import Options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .keywords import HubOptions

NAME = "zoo.lock"


def fingerprint(checkpoint: Checkpoint) -> str:
    """One digest of a checkpoint whose files are at hand: the one that its lock entry has.  Reads all files."""
    return entry_of(checkpoint).fingerprint


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
    if lock_path(path).exists():
        read_lock(path)  # a damaged one is an error before anything is downloaded
    for given in names:
        name = as_name(given, options.get("revision"))
        found = local_checkpoint(name, adapters=True) if name.is_local else hub.find(given, **options)
        entries[key_of(name)] = entry_of(found)
    write_lock(path, entries)
    return entries


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
    keys = [key_of(as_name(name)) for name in names] or list(entries)
    offline = Options(local_files_only=True, cache_dir=cache_dir)
    for key in keys:
        if key not in entries:
            raise LockError(f"{path} has no {key!r}{nearest(key, entries)}; it names {', '.join(entries) or 'nothing'}")
    found: dict[str, list[str]] = {}
    for key in keys:
        try:
            name = as_name(key)
            entry = entry_in(entries, path, name)
            here = locked_checkpoint(name, entry) if name.is_local else from_hub(name, offline, entry)
            found[key] = differences(entry, here)
        except ZooError as e:
            found[key] = [str(e)]
    return found
