"""Writes several files of a folder that change at once: a reader sees all of the old ones or all of the new ones."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from .atomic_write import replace, to_disk
from .leftovers import keep_from_cleaning, part_name, remove_leftovers

LAST_FILE = "config.json"  # without it nobody loads a folder
MAX_LINKS = 10_000  # other files in the folder: it may be a home
_placing = threading.Lock()  # several threads may write the same folder: each takes its place alone


@contextlib.contextmanager
def atomic_folder(folder: Path, replaces: Collection[str] = ()) -> Iterator[Path]:
    """A context with an empty folder to write to; at its end `folder` has these files, after an exception the old ones.

    Other files of `folder` stay, except those that match a pattern of `replaces`.  The new folder is written beside the
    old one and takes its place in one step, so that a kill at any moment leaves one of the two.  Where that is not
    possible (`folder` is the working directory or a mount point, or the file system has no exchange), files are moved
    one by one, those of before into .before-PID inside of it, LAST first; after a kill they are there.
    """
    target = Path(os.path.realpath(folder))
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    own = part_name(target.name, threading.get_ident())
    beside, inside = target.with_name(own), target / own
    for one in (target.parent, target):
        remove_leftovers(one)
    staged = _make_folder(beside) if not target.is_dir() or _may_move(target) else _make_folder(inside)
    try:
        with keep_from_cleaning(staged):
            yield staged
            new = sorted(_files(staged), key=lambda path: path == Path(LAST_FILE))
            for path in new:
                to_disk(staged / path)
            with _placing:
                if not _is_first(staged, target):
                    earlier = [path.relative_to(target) for one in replaces for path in target.glob(one)]
                    old = {path for path in (*new, *earlier) if os.path.lexists(target / path)}
                    if not (old and staged == beside and _swap(staged, target, {*new, *old})):
                        last = sorted(old, key=lambda path: path != Path(LAST_FILE))
                        _move(staged, target, new, last, target / f".before-{os.getpid()}-{threading.get_ident()}")
            to_disk(target)
            to_disk(target.parent)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _is_first(staged: Path, target: Path) -> bool:
    """Rename a folder to one that does not exist; False if there is one, which another process may have made by now."""
    if target.is_dir():
        return False
    to_disk(staged)
    try:
        os.rename(staged, target)
    except OSError as e:
        if e.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _make_folder(folder: Path) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)  # of a killed process with this number
    folder.mkdir()
    return folder


def _may_move(folder: Path) -> bool:
    """Return True if a folder can be renamed, and nobody notices: the user's shell is not in it."""
    is_here = Path(os.path.realpath(os.curdir)).is_relative_to(folder)
    return not is_here and not os.path.ismount(folder) and os.access(folder.parent, os.W_OK)


def _files(folder: Path) -> list[Path]:
    """The files below a folder, relative to it."""
    return [Path(parent, name).relative_to(folder) for parent, _, files in os.walk(folder) for name in files]


def _swap(staged: Path, target: Path, but: Collection[Path]) -> bool:
    """Exchange two folders, once `staged` has links to the files of `target`; False if the system cannot."""
    if sys.platform not in ("linux", "darwin"):
        return False
    links = 0
    try:
        shutil.copymode(target, staged)
        for parent, folders, files in os.walk(target):
            to = staged / Path(parent).relative_to(target)
            for name in folders:
                if os.path.islink(Path(parent, name)):
                    files.append(name)
                else:
                    (to / name).mkdir(exist_ok=True)
            for name in files:
                if (to / name).relative_to(staged) not in but:
                    os.link(Path(parent, name), to / name, follow_symlinks=False)
                    links += 1
            if links > MAX_LINKS:
                return False
    except OSError:  # no links, or on several devices
        return False
    to_disk(staged)
    return _exchange(staged, target)


def _exchange(a: Path, b: Path) -> bool:
    libc, names = ctypes.CDLL(None), (os.fsencode(a), os.fsencode(b))
    try:
        if sys.platform == "darwin":
            return libc.renamex_np(*names, 2) == 0  # RENAME_SWAP
        return libc.renameat2(-100, names[0], -100, names[1], 2) == 0  # AT_FDCWD, RENAME_EXCHANGE
    except AttributeError:
        return False


def _move(staged: Path, target: Path, new: Sequence[Path], old: Sequence[Path], kept: Path) -> None:
    """Move files one by one; after an exception the old ones are back."""
    moved: list[tuple[Path, Path]] = []

    def move(a: Path, b: Path) -> None:
        b.parent.mkdir(parents=True, exist_ok=True)
        moved.append((a, b))
        replace(a, b)

    try:
        for path in old:
            move(target / path, kept / path)
        for path in new:
            move(staged / path, target / path)
    except BaseException:
        for a, b in reversed(moved):
            if b.exists() and not a.exists():
                replace(b, a)
        if not _files(kept):
            shutil.rmtree(kept, ignore_errors=True)
        raise
    shutil.rmtree(kept, ignore_errors=True)
