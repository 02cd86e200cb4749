"""From a name or path to the files of a checkpoint: the user's own folder, or a repository of the hub."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .checkpoint.files import Checkpoint, in_folder, local_checkpoint, with_mmproj
from .checkpoint.lock_file import compare, entry_in, locked_checkpoint, read_lock
from .checkpoint.names import as_name
from .checkpoint.repository import from_hub
from .errors import InputError, NotFoundError
from .files.download import Request, fetch_file, safetensors_headers
from .options import DEFAULTS, FIND, Options
from .weights.files import read_index
from .weights.memory import TensorHeader

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .keywords import FindOptions


def find(
    name_or_folder: str | os.PathLike[str],
    options: Options = DEFAULTS,
    *,
    with_weights: bool = True,
    **more: Unpack[FindOptions],
) -> Checkpoint:
    """The files of a checkpoint, downloaded if need be.

    `name_or_folder` is a folder if it exists, is a `Path`, or looks like one (starts with `.`, `/`, `~`, a drive
    letter); then a checkpoint that comes with zoo (EMBEDDED); otherwise it is a hub name, `org/name` or the older
    `name`.  A GGUF file is named by its path, or as "org/name:file.gguf".  `revision` is a branch, tag or commit; all
    files are of the one commit that it stands for now.  Where the hub is out of reach or refuses, cached files are
    used, with a warning; `local_files_only` and HF_HUB_OFFLINE ask for that, without one.  `with_weights=False` leaves
    out the weight files.  `cache_dir` and `token` mean what they mean to huggingface_hub.

    `lock`: the files are those of the commit that the lock names, the hub is asked only for what the cache lacks, and
    all bytes are compared with the lock.

    The option `mmproj` is the file of images of a GGUF file, where its name does not say so.

    Raises `NotFoundError`, `AccessError`, `OfflineError`, another `HubError` (server or disk trouble), or
    `CheckpointError` where files are not what their names say; `LockError` where the lock does not name the checkpoint,
    where `revision` is not the locked commit, and where a file is missing, different, or not in the lock.
    """
    options = options.update(more, FIND)
    if options.mmproj is not None and options.lock is not None:
        raise InputError(
            "a lock names no mmproj of another name: give one of the two, or call the file mmproj-MODEL.gguf"
        )
    name = as_name(name_or_folder, options.revision if options.lock is None else None)
    entry = None if options.lock is None else entry_in(read_lock(options.lock), options.lock, name, options.revision)
    if name.is_local:
        found = local_checkpoint(name, with_weights) if entry is None else locked_checkpoint(name, entry)
    else:
        found = from_hub(name, options, entry, with_weights)
    if options.mmproj is not None:
        found = with_mmproj(found, options.mmproj)
    return found if entry is None else compare(found, entry)


def find_adapter(folder: str | os.PathLike[str], lock: str | os.PathLike[str] | None) -> Path:
    """The folder of an adapter; with a lock, LockError where this does not name it, or names other files."""
    if lock is not None:
        find(folder, lock=lock)
    return Path(folder).expanduser()


def find_headers(
    name_or_folder: str | os.PathLike[str], **more: Unpack[FindOptions]
) -> tuple[Checkpoint, list[TensorHeader] | None]:
    """A checkpoint, and the headers of its tensors if its weights are on the hub alone; None: they are here.

    Arguments and errors as for `find`.
    """
    options = DEFAULTS.update(more, FIND)
    name = as_name(name_or_folder)
    if options.lock is not None or name.is_local or options.local_files_only or name.repository[1]:
        return find(name_or_folder, options), None
    found = find(name_or_folder, options, with_weights=False)
    with suppress(NotFoundError):
        return in_folder(name.text, found.folder, found.revision, True), None
    request, commit = Request(name.text, options.revision, None, options.token, False), found.revision or "main"
    try:
        headers = [safetensors_headers(request, "model.safetensors", commit)]
    except NotFoundError:
        index = read_index(fetch_file(request, "model.safetensors.index.json", commit))
        with ThreadPoolExecutor(8) as pool:
            headers = list(pool.map(lambda shard: safetensors_headers(request, shard, commit), index))
    tensors = [item for header in headers for item in header.items()]
    return found, [TensorHeader(name, dtype, shape) for name, (dtype, shape) in tensors]
