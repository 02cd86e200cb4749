"""Paths of a checkpoint's files; links that lead out of its folder are refused."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from ..errors import CheckpointError

_COMMIT = re.compile(r"[0-9a-f]{40}")


def checkpoint_file(folder: Path, name: str) -> Path:
    """The path of a file or folder of a checkpoint, which may not exist.

    CheckpointError where it, or a folder on the way to it, is a link that leaves `folder`: a checkpoint from a stranger
    could have the user's own files read, and copied by a save.  `folder` itself may be a link.  The hub's cache is the
    exception: a snapshot's files are links into the blobs of its repository, which are beside `snapshots`, or, since
    huggingface_hub 2, at the top of the cache for all repositories.
    """
    path = folder / name
    inside = Path(name)
    if not inside.is_absolute() and ".." not in inside.parts:
        steps = [folder.joinpath(*inside.parts[: i + 1]) for i in range(len(inside.parts))]
        if not any(_may_be_link(step) for step in steps):
            return path  # most are no links, and to look at all of a path's folders takes longer
    try:
        root, real = folder.resolve(), path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return path
    except (OSError, RuntimeError, ValueError) as e:
        raise CheckpointError(f"{path}: cannot be followed: {e}") from None
    if not any(real.is_relative_to(place) for place in (root, *_blobs(root))):
        raise CheckpointError(f"{path}: a link out of its folder, to {real}: put the file itself there")
    return path


def _may_be_link(path: Path) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True  # a name that is none: to follow it says why


def _blobs(root: Path) -> list[Path]:
    """The folders with the files of <cache>/models--<name>/snapshots/<commit>, or of a folder in it."""
    for snapshot in (root, *root.parents):
        snapshots = snapshot.parent
        repository = snapshots.parent
        named = snapshots.name == "snapshots" and repository.name.startswith("models--")
        if named and _COMMIT.fullmatch(snapshot.name):
            return [repository / "blobs", repository.parent / "blobs"]
    return []
