"""The names of checkpoints: of a folder, of the hub, of a GGUF file, of one that comes with zoo or with a package."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from ..errors import HubError, nearest
from ..files.inside import is_file_name
from .installed import PACKAGED_FILES

# Checkpoints that come with zoo, by name: folders in zoo/data.
EMBEDDED_NAMES = ("stories260k", "zoo-read", "zoo-table-structure", "zoo-table-detect")
GGUF = ".gguf"
_REPO_PART = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?")
_NOT_IN_REVISION = re.compile(r"^$|^[/.-]|\.\.|[\x00-\x20\x7f\\:?*\[~^]")  # what git forbids in a reference


def mmproj_hint(name: str) -> str:
    """The end of a message about images for a checkpoint that reads texts: where the encoder of a GGUF file may be."""
    if not name.endswith(GGUF):
        return ""
    return "; what reads images for a GGUF file is another one, beside it as mmproj-NAME.gguf or named by --mmproj FILE"


class CheckpointRef(NamedTuple):
    """A user's name of a checkpoint, and True if it is a path (and no hub name, nor one of the two tables)."""

    text: str
    is_path: bool

    @property
    def is_local(self) -> bool:
        """True if no hub is needed."""
        return self.is_path or self.text in EMBEDDED_NAMES or self.text in PACKAGED_FILES

    @property
    def embedded_guess(self) -> str:
        """The end of a message: the checkpoint that comes with zoo, or with a package, and has nearly this name."""
        return nearest(self.text, (*EMBEDDED_NAMES, *PACKAGED_FILES))

    @property
    def repository(self) -> tuple[str, str | None]:
        """The repository of the hub, and the GGUF file in it if one is named; HubError if it is no such name."""
        repo, colon, file = self.text.partition(":")
        if not colon or not file.endswith(GGUF):
            repo, file = self.text, None
        elif not all(is_file_name(part) for part in file.split("/")):
            raise HubError(f"{file!r} is not the name of a file in a repository: expected 'org/name:file{GGUF}'")
        parts = repo.split("/")
        sound = len(parts) <= 2 and all(_REPO_PART.fullmatch(part) for part in parts)
        if not sound or len(repo) > 96 or "--" in repo or ".." in repo or repo.endswith(".git"):
            known = "a hub name is 'org/name', of letters, digits and -_."
            raise HubError(f"{repo!r} is neither a folder here nor a hub name: {known}")
        return repo, file


def as_name(name_or_folder: str | os.PathLike[str], revision: object = None) -> CheckpointRef:
    """The name that a user gave; HubError if it is none, or if a revision was asked for that it cannot have.

    It is a path if it exists, is a `Path`, or looks like one: starts with `.`, `/`, `~` or a drive letter, or is a
    GGUF file.
    """
    given = os.fspath(name_or_folder) if isinstance(name_or_folder, str | os.PathLike) else None
    if not isinstance(given, str) or not given.strip():
        raise HubError(f"{name_or_folder!r} is not a checkpoint: expected a hub name, 'org/name', or a folder's path")
    looks_gguf = given.endswith(GGUF) and ":" not in given
    # os.path.exists answers False where pathlib raises: NUL bytes, names that are too long.
    looks = given.startswith((".", "/", "\\", "~")) or re.match(r"[A-Za-z]:[\\/]", given) or os.path.exists(given)
    name = CheckpointRef(given, isinstance(name_or_folder, os.PathLike) or bool(looks) or looks_gguf)
    if revision is not None and name.is_local:
        raise HubError(f"revision {revision!r} was asked for the folder {given!r}: only hub names have revisions")
    if revision is not None and (not isinstance(revision, str) or _NOT_IN_REVISION.search(revision)):
        raise HubError(f"revision {revision!r} of {given!r} is not the name of a branch, a tag or a commit")
    return name
