"""Tables to files, each complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..checkpoint.atomic_write import atomic_write
from ..errors import TableError, ZooError, nearest
from .table import Table

# So that a browser takes the file for what it is.
PAGE = '<!DOCTYPE html>\n<meta charset="utf-8">\n<title>Table</title>\n'

TEXTS: dict[str, Callable[[Table], str]] = {
    ".csv": lambda table: table.to_csv(),
    ".html": lambda table: PAGE + table.to_html(),
    ".md": lambda table: table.to_markdown(),
    ".json": lambda table: table.to_json() + "\n",
}
SUFFIXES = (*TEXTS, ".xlsx")


def save(table: Table, path: str | os.PathLike[str]) -> None:
    """Write the table in the format that the path's suffix names, with the defaults of that export.  Text is UTF-8."""
    suffix = suffix_of(path)
    if suffix == ".xlsx":
        table.to_xlsx(path)
    else:
        write_text(TEXTS[suffix](table), path)


def suffix_of(path: str | os.PathLike[str]) -> str:
    """One of SUFFIXES; TableError if the path ends in none of them."""
    suffix = Path(path).suffix
    if suffix.lower() not in SUFFIXES:
        found = f"the suffix {suffix!r}" if suffix else "no suffix"
        guess = nearest(suffix.lower(), SUFFIXES, 1)
        raise TableError(f"cannot write to {Path(path)}: {found}, expected {', '.join(SUFFIXES)}{guess}")
    return suffix.lower()


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """UTF-8, line ends as they are."""
    data = text.encode()
    write(path, lambda part: part.write_bytes(data))


def write(path: str | os.PathLike[str], writing: Callable[[Path], object]) -> None:
    """Let `writing` write a file that takes the place of `path` once it is complete; TableError if it cannot."""
    path = Path(path)
    try:
        if path.is_dir():
            raise TableError(f"cannot write to {path}: it is a folder")
        if path.exists() and not path.is_file():
            raise TableError(f"cannot write to {path}: it is not a regular file")
        # A file is replaced, which the folder has to permit: its own permissions are asked for all the same.
        if path.exists() and not os.access(path, os.W_OK):
            raise TableError(f"cannot write to {path}: it is read-only")
        with atomic_write(path) as part:
            writing(part)
    except (OSError, ValueError) as e:
        if isinstance(e, ZooError):
            raise
        raise TableError(f"cannot write to {path}: {getattr(e, 'strerror', None) or e}") from e
