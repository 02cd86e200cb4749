"""Names and paths of a checkpoint's files, which may not lead out of its folder."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from ..errors import CheckpointError, ZooError

LFS_POINTER = b"version https://git-lfs"  # what git has in place of a large file that `git lfs` has not fetched
_COMMIT = re.compile(r"[0-9a-f]{40}")
_FORBIDDEN = re.compile(r'[\x00-\x1f/\\:*?"<>|]')
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)


def checkpoint_file(folder: Path, name: str) -> Path:
    """The path of a file or folder of a checkpoint; it need not exist.

    Raises CheckpointError if it, or a folder on the way to it, is a link out of `folder`: a checkpoint from a stranger
    could have the user's own files read, and copied by a save.  `folder` itself may be a link.  The hub's cache is an
    exception: a snapshot's files are links into its repository's `blobs`, next to `snapshots`, or, since
    huggingface_hub 2, at the top of the cache for all repositories.
    """
    path = folder / name
    inside = Path(name)
    if not inside.anchor and ".." not in inside.parts:  # Windows: "\\x" and "C:x" lead out, and are not absolute
        step, steps = os.fspath(folder), []
        for part in inside.parts:
            step = os.path.join(step, part)
            steps.append(step)
        if not any(map(_may_be_link, steps)):
            return path  # the usual case: resolving all of a path's folders takes longer
    try:
        root, real = folder.resolve(), path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return path
    except (OSError, RuntimeError, ValueError) as e:
        raise CheckpointError(f"{path}: cannot be followed: {e}") from None
    if not any(real.is_relative_to(place) for place in (root, *_blobs(root))):
        raise CheckpointError(f"{path}: a link out of its folder, to {real}: replace the link by the file")
    return path


def is_file_inside(folder: Path, name: str) -> bool:
    """True if a checkpoint has a file of this name; CheckpointError for a link out of `folder`, as `checkpoint_file`.

    One look tells both for a name that is no link, in no folder that might be one.
    """
    if os.path.basename(name) == name:
        try:
            mode = os.lstat(os.path.join(folder, name)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError):
            mode = stat.S_IFLNK  # an invalid name: below
        if not stat.S_ISLNK(mode):
            return stat.S_ISREG(mode)
    return checkpoint_file(folder, name).is_file()


def is_file_name(name: str) -> bool:
    """True if a name from an index, a lock or a server is a plain file name on every system: no path, no device."""
    return (
        bool(name.strip(" ."))
        and len(name.encode("utf-8", "replace")) <= 255
        and not (_FORBIDDEN.search(name) or _DEVICE.fullmatch(name))
    )


def check_regular(mode: int, path: object, error: type[ZooError]) -> None:
    """Raise `error` unless a file's mode is that of a regular file: a FIFO may never answer, a device never end."""
    if not stat.S_ISREG(mode):
        raise error(f"{path}: expected a file, found a {'folder' if stat.S_ISDIR(mode) else 'special file'}")


def _may_be_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True  # an invalid name: resolve() raises the reason


def _blobs(root: Path) -> list[Path]:
    """The folders of blobs for the files of <cache>/models--<name>/snapshots/<commit>, or of a folder in it."""
    for snapshot in (root, *root.parents):
        snapshots = snapshot.parent
        repository = snapshots.parent
        named = snapshots.name == "snapshots" and repository.name.startswith("models--")
        if named and _COMMIT.fullmatch(snapshot.name):
            return [repository / "blobs", repository.parent / "blobs"]
    return []
