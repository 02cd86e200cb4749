"""Many inputs at once: shared among processes or machines, stopped and gone on with, errors as rows.

`map_files` calls a checkpoint's task with every row of files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine import Summary
    from .mapping import map_files

__all__ = ["Summary", "map_files"]


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: others use files and processes from here."""
    if name == "Summary":
        from .engine import Summary

        return Summary
    if name == "map_files":
        from .mapping import map_files

        return map_files
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
