"""Mapping a task over files: `map_files` calls it with every row, in parts that processes or machines share."""

from .engine import Summary
from .mapping import map_files

__all__ = ["Summary", "map_files"]
