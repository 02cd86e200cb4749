"""From the name or path that a user gives to files on disk: a local folder, or a checkpoint of the hub.

huggingface_hub does all downloading and caching, so HF_ENDPOINT, proxies, HF_HUB_OFFLINE, HF_HOME and HF_TOKEN mean
what they mean to it.  Decided here: which files are needed, that all are of one commit, and what an error says.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .checkpoint.files import (
    NESTED,
    Checkpoint,
    NestedFolder,
    beside_weights,
    beside_weights_among,
    nested_transformer,
)
from .checkpoint.names import EMBEDDED, GGUF, Name, as_name, check_revision, repository
from .errors import CheckpointError, HubError, NotFoundError, OfflineError, nearest
from .files.download import Request, fetch_file, listing, no_download, safetensors_headers
from .files.folder import CheckpointFolder
from .files.inside import LFS_POINTER, checkpoint_file
from .options import DEFAULTS, HUB, Options
from .warning import warn
from .weights.files import choose_weight_files, read_index
from .weights.memory import TensorHeader

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import HubOptions


def find(
    name_or_folder: str | os.PathLike[str] | Name,
    options: Options = DEFAULTS,
    *,
    with_weights: bool = True,
    **more: Unpack[HubOptions],
) -> Checkpoint:
    """The files of a checkpoint, downloaded if need be.

    `name_or_folder` is a folder if it exists, is a `Path`, or looks like one (starts with `.`, `/`, `~`, a drive
    letter); then a checkpoint that comes with zoo (EMBEDDED); otherwise it is a hub name, `org/name` or the older
    `name`.  A GGUF file is named by its path, or as "org/name:file.gguf".  `revision` is a branch, tag or commit; all
    files are of the one commit that it stands for now.  Where the hub is out of reach or refuses, cached files are
    used, with a warning; `local_files_only` and HF_HUB_OFFLINE ask for that, without one.  `with_weights=False` leaves
    out the weight files.  `cache_dir` and `token` mean what they mean to huggingface_hub.

    Raises `NotFoundError`, `AccessError`, `OfflineError`, another `HubError` (server or disk trouble), or
    `CheckpointError` where files are not what their names say.
    """
    options = options.update(more, HUB)
    name = as_name(name_or_folder)
    check_revision(name, options.revision)
    if name.is_local:
        return _in_folder(name, with_weights)
    repo, file = repository(name)
    cache = None if options.cache_dir is None else os.path.abspath(os.path.expanduser(options.cache_dir))
    request = Request(repo, options.revision, cache, options.token, with_weights, file)
    try:
        return _in_cache(request) if options.local_files_only else _on_hub(request)
    except (NotFoundError, OfflineError) as error:
        if near := nearest(name.text, EMBEDDED):
            raise type(error)(f"{error}{near}") from error.__cause__
        raise


def find_headers(
    name_or_folder: str | os.PathLike[str], **more: Unpack[HubOptions]
) -> tuple[Checkpoint, list[TensorHeader] | None]:
    """A checkpoint, and the headers of its tensors if its weights are on the hub alone; None: they are here.

    Arguments and errors as for `find`.
    """
    options = DEFAULTS.update(more, HUB)
    name = as_name(name_or_folder)
    if name.is_local or options.local_files_only or repository(name)[1]:
        return find(name, options), None
    found = find(name, options, with_weights=False)
    with suppress(NotFoundError):
        return _gather(name.text, found.folder, found.revision, True), None
    request = Request(name.text, options.revision, None, options.token, False)
    tensors = safetensors_headers(request, found.revision or "main")
    return found, [TensorHeader(name, dtype, shape) for name, (dtype, shape) in tensors.items()]


def is_lfs_pointer(path: str | os.PathLike[str]) -> bool:
    """Return True if the file is git's placeholder for a large file that `git lfs` has not fetched."""
    with open(path, "rb") as file:
        return file.read(len(LFS_POINTER)) == LFS_POINTER


def _in_folder(name: Name, weights: bool) -> Checkpoint:
    given = name.text
    if not name.is_path:
        return _gather(given, Path(__file__).parent / "data" / given, None, weights)
    path = os.path.abspath(os.path.expanduser(given))
    if not os.path.exists(path):
        parent, last = os.path.split(path)
        try:
            near = nearest(last, os.listdir(parent))
        except (OSError, ValueError):
            near = f": nor is there a folder {parent!r} that can be read"
        raise NotFoundError(f"there is no folder {given!r}{near}")
    if path.endswith(GGUF) and os.path.isfile(path):
        return _of_gguf(given, Path(os.path.dirname(path)), os.path.basename(path), None)
    if not os.path.isdir(path):
        raise HubError(
            f"{given!r} is a file: pass the folder that holds it and its config.json, {os.path.dirname(path)!r}"
        )
    return _gather(given, Path(path), None, weights)


def _of_gguf(name: str, folder: Path, file: str, revision: str | None) -> Checkpoint:
    """The checkpoint in a GGUF file."""
    from .weights.gguf.folder import GGUFFolder
    from .weights.gguf.parts import check_all, parts_of
    from .weights.gguf.source import GGUFFile

    try:
        parts = parts_of(file)
        check_all(file, [part for part in parts if (folder / part).exists()] if len(parts) > 1 else parts)
        if revision is not None:
            for part in parts:
                checkpoint_file(folder, part)  # a user's own file may be a link to another disk
        _refuse_lfs_pointers([folder / part for part in parts])
        source = GGUFFile(folder / file)
        paths, contents = tuple(folder / part for part in parts), GGUFFolder(source.path, source.header)
        return Checkpoint(name, folder, revision, tuple(parts), paths, contents, opened=source)
    except OSError as error:
        raise HubError(f"cannot read {folder / file}: {error}") from error


def _gather(name: str, folder: Path, revision: str | None, weights: bool) -> Checkpoint:
    """The checkpoint in a folder; NotFoundError if a file that it needs is missing."""
    try:
        names = os.listdir(folder)
        small = beside_weights(folder)
        nested = nested_transformer(small)
        if "config.json" not in small and nested is None:
            found = [name for name in sorted(names) if name.endswith(GGUF)]
            instead = f": did you mean the file, {str(folder / found[0])!r}?" if found else ""
            raise NotFoundError(f"{folder} has no config.json{instead or nearest('config.json', names)}")
        within_it = folder / nested if nested else folder
        chosen = _choose(os.listdir(within_it), within_it) if weights else []
        for name_there in small:
            checkpoint_file(folder, name_there)
        paths = [checkpoint_file(within_it, n) for n in chosen]
        for path in list(paths):
            if _is_index(path.name):
                _refuse_lfs_pointers([path])
                paths += [checkpoint_file(within_it, shard) for shard in read_index(path)]
        for path in paths:
            if not path.is_file():
                raise NotFoundError(f"{folder} has no {path.name}, which the index names{nearest(path.name, names)}")
        _refuse_lfs_pointers([folder / n for n in small] + paths)
    except OSError as error:
        raise HubError(f"cannot read the folder {folder}: {error}") from error
    files = [*small, *(path.relative_to(folder).as_posix() for path in paths)]
    contents = NestedFolder(folder) if nested else CheckpointFolder(folder)
    return Checkpoint(name, folder, revision, tuple(files), tuple(paths), contents)


def _choose(names: list[str], where: object) -> list[str]:
    try:
        return choose_weight_files(names)
    except NotFoundError as error:
        raise NotFoundError(f"{where} has {error}") from error


def _is_index(name: str) -> bool:
    return name.endswith(".index.json")


def _refuse_lfs_pointers(paths: Iterable[Path]) -> None:
    for path in paths:
        if is_lfs_pointer(path):
            raise CheckpointError(
                f"{path} is a git-lfs pointer, not the file itself: run `git lfs pull` where it was cloned"
            )


def _in_cache(request: Request) -> Checkpoint:
    """The snapshot that the cache holds, without any network access."""
    from huggingface_hub import constants, try_to_load_from_cache

    revision = request.revision or constants.DEFAULT_REVISION
    cache = request.cache_dir or constants.HF_HUB_CACHE
    first, found = request.file or "config.json", None
    for name in (request.file,) if request.file else ("config.json", f"{NESTED}/config.json"):
        found = try_to_load_from_cache(request.repo, name, cache_dir=cache, revision=revision)
        if isinstance(found, str):
            first = name
            break
    if not isinstance(found, str):
        raise OfflineError(f"{request} is not in the cache {cache} (no {first}), and {no_download()}")
    folder = _without(Path(found), first)
    try:
        if request.file:
            return _of_gguf(request.display, folder, request.file, folder.name)
        return _gather(request.repo, folder, folder.name, request.weights)
    except NotFoundError as error:
        raise OfflineError(f"the cache holds only a part of {request} ({error}), and {no_download()}") from error


def _on_hub(request: Request) -> Checkpoint:
    from huggingface_hub.errors import OfflineModeIsEnabled, RevisionNotFoundError

    try:
        commit, listed = listing(request)
    except HubError as problem:
        if isinstance(problem.__cause__, RevisionNotFoundError):
            raise  # the hub is well and says no: an older copy is not what was asked for
        if isinstance(problem.__cause__, OfflineModeIsEnabled):
            return _in_cache(request)
        try:
            found = _in_cache(request)
        except OfflineError as absent:
            both = f"{problem}; {absent}" if isinstance(problem, OfflineError) else str(problem)
            raise type(problem)(both) from problem.__cause__
        warn(f"{problem}; using the cached files of commit {found.revision}")
        return found
    return _download(request, commit, listed)


def _download(request: Request, commit: str, listed: list[str]) -> Checkpoint:
    """Fetch what is needed and not cached; the weights last, so that a cache which has them has everything."""
    from .weights.gguf.parts import check_all, parts_of

    nested = None if request.file else nested_transformer(listed)
    start = f"{nested}/" if nested else ""
    first = request.file or f"{start}config.json"
    if first not in listed:
        files = [name for name in listed if name.endswith(GGUF)]
        instead = f"; 'name:file{GGUF}' means one of {', '.join(files[:5])}" if files and not request.file else ""
        raise NotFoundError(f"{request} has no {first} on the hub{instead or nearest(first, listed)}")

    # Asked for by the user's word for the revision: that makes huggingface_hub note which commit it stands for, which
    # offline loads go by.  Where somebody has pushed since the listing, we move on to what was pushed.
    folder = _without(fetch_file(request, first, request.revision), first)
    if folder.name != commit:
        commit, listed = listing(request)
        if folder.name != commit:
            raise HubError(f"the hub lists commit {commit} for {request}, but hands out files of {folder.name}")

    def fetch(name: str) -> Path:
        return fetch_file(request, name, commit)

    if request.file:
        check_all(request.file, listed)
        for part in parts_of(request.file):
            if part != request.file:
                fetch(part)
        return _of_gguf(request.display, folder, request.file, commit)
    inside = [n.removeprefix(start) for n in listed if n.startswith(start)]
    chosen = _choose([n for n in inside if "/" not in n], request) if request.weights else []
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fetch, beside_weights_among(listed)))
    for name in chosen:
        path = fetch(start + name)
        shards = [start + shard for shard in read_index(path)] if _is_index(name) else ()
        for shard in shards:
            if shard not in listed:
                raise NotFoundError(f"{request} has no {shard}, which {name} names{nearest(shard, listed)}")
        for shard in shards:
            fetch(shard)
    return _gather(request.repo, folder, commit, request.weights)


def _without(path: Path, name: str) -> Path:
    """The folder that a file of a repository is relative to."""
    return path.parents[name.count("/")]
