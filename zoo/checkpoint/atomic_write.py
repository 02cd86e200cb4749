"""Writing files so that each appears complete or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` (of the link itself, if it is one) when all is written."""
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, unless it lies there already."""
    if not (target.exists() and target.samefile(source)):
        with atomic_write(target) as path:
            shutil.copyfile(source, path)
