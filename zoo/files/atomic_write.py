"""Writes files that appear complete or not at all, even if the power fails."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import ZooError
from .leftovers import new_file, part_name, remove_leftovers


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A context with a path to write to; at its end the file replaces `path` (the link itself, if it is one).

    Both file and folder are then on the disk: a rename alone may reach it before the bytes do.
    """
    partial = path.with_name(part_name(path.name, threading.get_ident()))
    remove_leftovers(path.parent)
    try:
        with new_file(partial):
            yield partial
            to_disk(partial)
            replace(partial, path)
            to_disk(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def one_writer(path: Path, patience: float, error: type[ZooError] = ZooError) -> Iterator[None]:
    """One process or thread writes `path` at a time, by a lock of the file beside it which ends with the process.

    patience: seconds to wait for another one.  Raises `error`.
    """
    from filelock import FileLock, Timeout

    mark = path.with_name(f".{path.name}.writing")
    if not path.parent.is_dir():  # which filelock would make
        raise error(f"cannot write {path}: there is no folder {path.parent}")
    lock = FileLock(mark)
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        waited = f", for more than {patience:g} s" if patience else ""
        raise error(f"{path} is being written by another process{waited}") from None
    except OSError as e:
        raise error(f"cannot write {path}: {e.strerror or e}") from e
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows removes no open file: it stays, unlocked
            mark.unlink()
        lock.release()


def replace(source: Path, target: Path) -> None:
    """`os.replace`; on Windows, where an open file cannot be replaced, it waits a little for others to close theirs."""
    waits = [0.5, 0.1, 0.02] if os.name == "nt" else []
    while True:
        try:
            return os.replace(source, target)
        except PermissionError as e:
            if os.name != "nt":
                raise
            if not waits:
                advice = "is in use, as by a model that was loaded from it: close that, or choose another place"
                raise PermissionError(e.errno, f"{target.name} {advice}", str(target)) from None
        time.sleep(waits.pop())


def to_disk(path: Path) -> None:
    """Wait until a file or a folder is on the disk."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":  # Windows cannot open folders, and flushes renames itself
        return
    file = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(file)
    except OSError as e:
        # Some file systems have no fsync of folders; other errors mean a full or broken disk.
        if e.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(file)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, unless `target` is the same file."""
    if not (target.exists() and target.samefile(source)):
        with atomic_write(target) as path:
            shutil.copyfile(source, path)
