"""Writing files so that each appears complete or not at all, also where the power fails."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` (of the link itself, if it is one) when all is written.

    File and folder are on the disk when this returns: a rename alone may reach it before the bytes do.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield partial
        _to_disk(partial)
        os.replace(partial, path)
        _to_disk(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def _to_disk(path: Path) -> None:
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":  # Windows opens no folders, and writes its renames down by itself
        return
    file = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(file)
    except OSError as e:
        # Some file systems know no fsync of folders; a disk that is full or broken says so in other words.
        if e.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(file)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, unless source and target are the same."""
    if not (target.exists() and target.samefile(source)):
        with atomic_write(target) as path:
            shutil.copyfile(source, path)
