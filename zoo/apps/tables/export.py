"""Writing files, each complete or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ...errors import TableError, ZooError
from ...files.atomic_write import atomic_write
from ...files.utf8 import to_utf8


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Write a text as UTF-8, with its line ends unchanged."""
    data = to_utf8(text)
    write(path, lambda part: part.write_bytes(data))


def write(path: str | os.PathLike[str], writing: Callable[[Path], object]) -> None:
    """Call `writing` with a temporary path, which replaces `path` once it is complete; TableError if that fails."""
    path = Path(path)
    check_place(path)
    with write_errors(path), atomic_write(path) as part:
        writing(part)


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors into a TableError that names the path."""
    try:
        yield
    except ZooError:
        raise
    except (OSError, ValueError) as e:
        raise TableError(f"cannot write to {path}: {getattr(e, 'strerror', None) or e}") from e


def check_place(path: Path) -> None:
    """TableError if a file cannot be written there, as far as this shows beforehand."""
    with write_errors(path):
        if path.is_dir():
            raise TableError(f"cannot write to {path}: it is a folder")
        if path.exists() and not path.is_file():
            raise TableError(f"cannot write to {path}: it is not a regular file")
        # Replacing a file needs permission for its folder alone; a read-only file is respected all the same.
        if path.exists() and not os.access(path, os.W_OK):
            raise TableError(f"cannot write to {path}: it is read-only")
        if not path.parent.is_dir():
            raise TableError(f"cannot write to {path}: No such file or directory")
        if not os.access(path.parent, os.W_OK):
            raise TableError(f"cannot write to {path}: Permission denied")
