"""CheckpointFolder: the small files of a checkpoint (configs, vocabularies, templates) by their names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import ConfigError, ZooError
from .atomic_write import copy_file
from .inside import checkpoint_file, is_file_inside
from .json_file import MAX_BYTES, MAX_VALUES, parse_json, parse_json_list, read_bounded


class CheckpointFolder:
    """A folder whose files are read by their names, "1_Pooling/config.json"; no link is followed out of it.

    Checkpoints in another form than a folder are subclasses (see `zoo.weights.gguf.folder`).
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)

    @classmethod
    def of(cls, folder: str | os.PathLike[str] | CheckpointFolder) -> CheckpointFolder:
        """The folder at a path, or the one that is given."""
        return folder if isinstance(folder, CheckpointFolder) else CheckpointFolder(folder)

    def __str__(self) -> str:
        return str(self.path)

    def at(self, name: str) -> Path:
        """The path of a file or folder; CheckpointError if it is a link out of the folder."""
        return checkpoint_file(self.path, name)

    def where(self, name: str) -> str:
        """The place of a file, for messages."""
        return str(self.path / name)

    def has(self, name: str) -> bool:
        """True if there is such a file; CheckpointError if it is a link out of the folder."""
        return is_file_inside(self.path, name)

    def names(self, inside: str = "") -> list[str]:
        """The names, in order, of the files and folders in the folder or in one `inside` it; none if it is missing."""
        path = self.at(inside)
        return sorted(os.listdir(path)) if path.is_dir() else []

    def read(self, name: str, limit: int = MAX_BYTES, error: type[ZooError] = ConfigError) -> bytes:
        """The bytes of a file; `error` if there are more than `limit`, NotFoundError if there is no such file."""
        return read_bounded(self.at(name), limit, error)

    def json(
        self,
        name: str,
        limit: int = MAX_BYTES,
        error: type[ZooError] = ConfigError,
        max_values: int | None = MAX_VALUES,
        exact: bool = True,
    ) -> dict[str, Any]:
        """The object in a JSON file, which `parse_json` checks."""
        data, infinity = self.read(name, limit, error), name == "config.json"
        return parse_json(data, self.where(name), error, max_values=max_values, exact=exact, infinity=infinity)

    def json_list(self, name: str) -> list[Any]:
        """The list in a JSON file of at most a MiB."""
        return parse_json_list(self.read(name, 1 << 20), self.where(name))

    def copy(self, name: str, target: Path) -> None:
        """Write a file to another place, whole or not at all."""
        copy_file(self.at(name), target)
