"""A repository of the hub as a checkpoint: from the cache, or downloaded.

huggingface_hub does all downloading and caching, so HF_ENDPOINT, proxies, HF_HUB_OFFLINE, HF_HOME and HF_TOKEN mean
what they mean to it.  Decided here: which files are needed, that all are of one commit, and what an error says.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from ..errors import HubError, NotFoundError, OfflineError, nearest
from ..files.download import Request, fetch_file, listing, no_download
from ..files.folder import CheckpointFolder
from ..optional import import_optional
from ..options import Options
from ..warning import warn
from ..weights.files import choose_weight_file, is_index, read_index
from .files import NESTED_FOLDER, Checkpoint, beside_weights_among, first_file, in_folder, in_gguf, model_folder
from .lock_file import LockEntry, used_files
from .modules import MODULES
from .names import GGUF, CheckpointRef
from .static_folder import static_folder

MAX_BESIDE = 1000  # files of a repository that are fetched beside its weights


def from_hub(name: CheckpointRef, options: Options, entry: LockEntry | None, with_weights: bool = True) -> Checkpoint:
    """The checkpoint of a repository's name, or of its entry in a lock, with which it is not compared yet."""
    repo, file = name.repository
    import_optional("huggingface_hub", f"{repo!r}, a name of the Hub,")  # which folders do without
    revision = options.revision if entry is None else entry.revision
    cache = None if options.cache_dir is None else os.path.abspath(os.path.expanduser(options.cache_dir))
    request = Request(repo, revision, cache, options.token, with_weights, file)
    try:
        if options.local_files_only:
            return _in_cache(request)
        if entry is not None:  # the hub is asked only for what the cache lacks
            with suppress(OfflineError):
                cached = _in_cache(request)
                if entry.files.keys() <= set(used_files(cached)):
                    return cached
        return _on_hub(request)
    except (NotFoundError, OfflineError) as error:
        if guess := name.embedded_guess:
            raise type(error)(f"{error}{guess}") from error.__cause__
        raise


def _in_cache(request: Request) -> Checkpoint:
    """The snapshot that the cache holds, without any network access."""
    from huggingface_hub import constants, try_to_load_from_cache

    revision = request.revision or constants.DEFAULT_REVISION
    cache = request.cache_dir or constants.HF_HUB_CACHE
    first, found = request.file or "config.json", None
    for name in (request.file,) if request.file else ("config.json", f"{NESTED_FOLDER}/config.json", MODULES):
        found = try_to_load_from_cache(request.repo, name, cache_dir=cache, revision=revision)
        if isinstance(found, str):
            first = name
            break
    if not isinstance(found, str):
        raise OfflineError(f"{request} is not in the cache {cache} (no {first}), and {no_download()}")
    folder = _folder_of(Path(found), first)
    try:
        if request.file:
            return in_gguf(request.display, folder, request.file, folder.name)
        return in_folder(request.repo, folder, folder.name, request.weights)
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
    from ..weights.gguf.parts import check_all, parts_of

    first = request.file or first_file(listed)
    if first not in listed:
        files = [name for name in listed if name.endswith(GGUF)]
        instead = f"; 'name:file{GGUF}' means one of {', '.join(files[:5])}" if files and not request.file else ""
        raise NotFoundError(f"{request} has no {first} on the hub{instead or nearest(first, listed)}")

    # Asked for by the user's word for the revision: that makes huggingface_hub note which commit it stands for, which
    # offline loads go by.  Where somebody has pushed since the listing, we move on to what was pushed.
    folder = _folder_of(fetch_file(request, first, request.revision), first)
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
        return in_gguf(request.display, folder, request.file, commit)
    start = f"{inner}/" if (inner := model_folder(listed)) else ""
    inside = [n.removeprefix(start) for n in listed if n.startswith(start) and "/" not in n.removeprefix(start)]
    chosen = _weights_among(inside, request) if request.weights else None
    beside = beside_weights_among(listed)
    if len(beside) > MAX_BESIDE:
        raise HubError(f"{request} has {len(beside):,} files beside its weights, expected {MAX_BESIDE:,} at most")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fetch, beside))
    if chosen is None and static_folder(CheckpointFolder(folder)) is not None:  # whose sizes its weights say
        chosen = _weights_among(inside, request)
    index = None
    if chosen is not None:
        path = fetch(start + chosen)
        index = read_index(path) if is_index(chosen) else None
        shards = [start + shard for shard in index or ()]
        for shard in shards:
            if shard not in listed:
                raise NotFoundError(f"{request} has no {shard}, which {chosen} names{nearest(shard, listed)}")
        for shard in shards:
            fetch(shard)
    return in_folder(request.repo, folder, commit, request.weights, index)


def _weights_among(names: list[str], request: Request) -> str:
    try:
        return choose_weight_file(names)
    except NotFoundError as error:
        raise NotFoundError(f"{request} has {error}") from error


def _folder_of(path: Path, name: str) -> Path:
    """The folder that a file of a repository is relative to."""
    return path.parents[name.count("/")]
