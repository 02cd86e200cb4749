"""What a process was writing under another name as it was killed; the next one that writes there removes it.

A process holds a lock of what it writes, which ends with it.  Where the system has no such locks, nothing is removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

_TEMPORARY_NAME = re.compile(r"\..+\.(\d+)-\d+\.part|zoo-(\d+)-\w{8}\.part")
_looked_at: set[Path] = set()  # folders, each of which is listed once


def part_name(name: str, number: int) -> str:
    """The name under which this process writes a file or folder; number: of the thread."""
    return f".{name}.{os.getpid()}-{number}.part"


@contextlib.contextmanager
def keep_from_cleaning(path: Path) -> Iterator[None]:
    """A context in which nobody takes a file or folder that exists for a leftover."""
    descriptor = _lock(path)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[None]:
    """A context with a new file, to be opened and written, that nobody takes for a leftover."""
    if os.name == "nt":  # no locks, and an open file there cannot be replaced
        yield
        return
    path.touch()
    with keep_from_cleaning(path):
        yield


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed at the end, or by the next process after a kill."""
    import tempfile  # takes a sixth of a load to import

    remove_leftovers(Path(tempfile.gettempdir()))
    own = {"prefix": f"zoo-{os.getpid()}-", "suffix": ".part"}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True, **own) as name, keep_from_cleaning(Path(name)):
        yield Path(name)


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that have ended left in a folder; it is looked at once."""
    folder = folder.absolute()
    if folder in _looked_at:
        return
    _looked_at.add(folder)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY_NAME.fullmatch(entry.name)
            if match and not _runs(int(match[1] or match[2])):
                _remove(Path(entry.path))


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_symlink() or path.stat().st_uid != os.getuid() or (descriptor := _lock(path)) is None:
            return
        try:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        finally:
            os.close(descriptor)


def _lock(path: Path) -> int | None:
    """The descriptor that holds the lock, or None: another has it, or the system has none."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor
    return None


def _runs(pid: int) -> bool:
    """Return True if this machine has a process with this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
