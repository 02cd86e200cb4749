"""A checkpoint in a folder or a GGUF file on this machine: which of its files are needed, and that they are there."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import HubError, NotFoundError, nearest
from ..files.folder import CheckpointFolder
from ..files.inside import checkpoint_file
from ..weights.files import choose_weight_files, read_index
from .files import Checkpoint, NestedFolder, beside_weights, nested_transformer
from .names import GGUF, Name


def local_checkpoint(name: Name, weights: bool) -> Checkpoint:
    """The checkpoint at a path, or one that comes with zoo; NotFoundError or HubError if there is none."""
    given = name.text
    if not name.is_path:
        return in_folder(given, Path(__file__).parent.parent / "data" / given, None, weights)
    path = os.path.abspath(os.path.expanduser(given))
    if not os.path.exists(path):
        parent, last = os.path.split(path)
        try:
            near = nearest(last, os.listdir(parent))
        except (OSError, ValueError):
            near = f": nor is there a folder {parent!r} that can be read"
        raise NotFoundError(f"there is no folder {given!r}{near}")
    if path.endswith(GGUF) and os.path.isfile(path):
        return in_gguf(given, Path(os.path.dirname(path)), os.path.basename(path), None)
    if not os.path.isdir(path):
        raise HubError(
            f"{given!r} is a file: pass the folder that holds it and its config.json, {os.path.dirname(path)!r}"
        )
    return in_folder(given, Path(path), None, weights)


def in_gguf(name: str, folder: Path, file: str, revision: str | None) -> Checkpoint:
    """The checkpoint in a GGUF file."""
    from ..weights.gguf.folder import GGUFFolder
    from ..weights.gguf.parts import check_all, parts_of
    from ..weights.gguf.source import GGUFFile

    try:
        parts = parts_of(file)
        check_all(file, [part for part in parts if (folder / part).exists()] if len(parts) > 1 else parts)
        if revision is not None:
            for part in parts:
                checkpoint_file(folder, part)  # a user's own file may be a link to another disk
        source = GGUFFile(folder / file)
        paths, contents = tuple(folder / part for part in parts), GGUFFolder(source.path, source.header)
        return Checkpoint(name, folder, revision, tuple(parts), paths, contents, opened=source)
    except OSError as error:
        raise HubError(f"cannot read {folder / file}: {error}") from error


def in_folder(name: str, folder: Path, revision: str | None, weights: bool) -> Checkpoint:
    """The checkpoint in a folder; NotFoundError if a file that it needs is missing."""
    try:
        small = beside_weights(folder)
        nested = nested_transformer(small)
        within_it = folder / nested if nested else folder
        names = os.listdir(within_it)
        if "config.json" not in small and nested is None:
            found = [name for name in sorted(names) if name.endswith(GGUF)]
            instead = f": did you mean the file, {str(folder / found[0])!r}?" if found else ""
            raise NotFoundError(f"{folder} has no config.json{instead or nearest('config.json', names)}")
        chosen = choose_weights(names, within_it) if weights else []
        for file in small:
            checkpoint_file(folder, file)
        paths = [checkpoint_file(within_it, n) for n in chosen]
        for path in list(paths):
            if is_index(path.name):
                paths += [checkpoint_file(within_it, shard) for shard in read_index(path)]
        for path in paths:
            if not path.is_file():
                raise NotFoundError(f"{folder} has no {path.name}, which the index names{nearest(path.name, names)}")
    except OSError as error:
        raise HubError(f"cannot read the folder {folder}: {error}") from error
    files = [*small, *(path.relative_to(folder).as_posix() for path in paths)]
    contents = NestedFolder(folder) if nested else CheckpointFolder(folder)
    return Checkpoint(name, folder, revision, tuple(files), tuple(paths), contents)


def choose_weights(names: list[str], where: object) -> list[str]:
    """The weight files to read among the files of a folder; NotFoundError if there are none."""
    try:
        return choose_weight_files(names)
    except NotFoundError as error:
        raise NotFoundError(f"{where} has {error}") from error


def is_index(name: str) -> bool:
    """Return True for the file that names the shards of weights."""
    return name.endswith(".index.json")
