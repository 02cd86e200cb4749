"""From the name or path that a user gives to files on disk: a local folder, or a checkpoint of the hub.

huggingface_hub does all downloading and caching, so HF_ENDPOINT, proxies, HF_HUB_OFFLINE, HF_HOME and HF_TOKEN mean
what they mean to it.  Decided here: which files are needed, that all are of one commit, and what an error says.
"""

from __future__ import annotations

import inspect
import os
import re
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .checkpoint.files import Checkpoint, beside_weights, beside_weights_among
from .errors import AccessError, CheckpointError, HubError, NotFoundError, OfflineError, nearest
from .files.deadline import within
from .files.folder import CheckpointFolder
from .files.inside import LFS_POINTER, checkpoint_file
from .guards.names import is_file_name
from .options import DEFAULTS, HUB, Options
from .warning import warn
from .weights.files import choose_weight_files, read_index

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import HubOptions


_REPO_PART = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?")
_NOT_IN_REVISION = re.compile(r"^$|^[/.-]|\.\.|[\x00-\x20\x7f\\:?*\[~^]")  # what git forbids in a reference
_COMMIT = re.compile(r"[0-9a-f]{40}")
# Checkpoints that come with zoo, by name: folders in zoo/data.
EMBEDDED = ("stories260k", "zoo-read", "zoo-table-structure", "zoo-table-detect")
GGUF = ".gguf"
# Seconds for an answer of the hub and the beginning of a file; bytes a second of the rest, at the slowest; and where
# an older huggingface_hub does not tell how large a file is.
PATIENCE, PACE, DAY = 120.0, 10_000, 86_400.0


@dataclass(frozen=True)
class _Request:
    """A request to the hub, with huggingface_hub's arguments."""

    repo: str
    revision: str | None
    cache_dir: str | None
    token: str | bool | None
    weights: bool
    file: str | None = None  # the GGUF file of the repository, if one is asked for

    @property
    def display(self) -> str:
        return f"{self.repo}:{self.file}" if self.file else self.repo

    def __str__(self) -> str:
        return repr(self.display) + (f" at revision {self.revision!r}" if self.revision else "")


def find(
    name_or_folder: str | os.PathLike[str],
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
    revision, weights = options.revision, with_weights
    given, is_path = display_name(name_or_folder)
    if is_path or given in EMBEDDED:
        if revision is not None:
            raise HubError(f"revision {revision!r} was asked for the folder {given!r}: only hub names have revisions")
        if not is_path:
            return _gather(given, Path(__file__).parent / "data" / given, None, weights)
        return _in_folder(given, weights)

    repo, file = _repo_and_file(given)
    _check_name(repo)
    if revision is not None and (not isinstance(revision, str) or _NOT_IN_REVISION.search(revision)):
        raise HubError(f"revision {revision!r} of {given!r} is not the name of a branch, a tag or a commit")
    cache = None if options.cache_dir is None else os.path.abspath(os.path.expanduser(options.cache_dir))
    request = _Request(repo, revision, cache, options.token, weights, file)
    return _in_cache(request) if options.local_files_only else _on_hub(request)


def display_name(name_or_folder: str | os.PathLike[str]) -> tuple[str, bool]:
    """The user's name or path as a text, and True if it is a path (and neither a hub name nor EMBEDDED)."""
    given = os.fspath(name_or_folder) if isinstance(name_or_folder, str | os.PathLike) else None
    if not isinstance(given, str) or not given.strip():
        raise HubError(f"{name_or_folder!r} is not a checkpoint: expected a hub name, 'org/name', or a folder's path")
    looks_gguf = given.endswith(GGUF) and ":" not in given
    # os.path.exists answers False where pathlib raises: NUL bytes, names that are too long.
    looks = given.startswith((".", "/", "\\", "~")) or re.match(r"[A-Za-z]:[\\/]", given) or os.path.exists(given)
    return given, isinstance(name_or_folder, os.PathLike) or bool(looks) or looks_gguf


def is_lfs_pointer(path: str | os.PathLike[str]) -> bool:
    """Return True if the file is git's placeholder for a large file that `git lfs` has not fetched."""
    with open(path, "rb") as file:
        return file.read(len(LFS_POINTER)) == LFS_POINTER


def _repo_and_file(given: str) -> tuple[str, str | None]:
    repo, colon, file = given.partition(":")
    if not colon or not file.endswith(GGUF):
        return given, None
    if not all(is_file_name(part) for part in file.split("/")):
        raise HubError(f"{file!r} is not the name of a file in a repository: expected 'org/name:file{GGUF}'")
    return repo, file


def _check_name(given: str) -> None:
    parts = given.split("/")
    sound = len(parts) <= 2 and all(_REPO_PART.fullmatch(part) for part in parts)
    if not sound or len(given) > 96 or "--" in given or ".." in given or given.endswith(".git"):
        raise HubError(
            f"{given!r} is neither a folder here nor a hub name: a hub name is 'org/name', of letters, digits and -_."
        )


def _in_folder(given: str, weights: bool) -> Checkpoint:
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
        if "config.json" not in small:
            found = [name for name in sorted(names) if name.endswith(GGUF)]
            instead = f": did you mean the file, {str(folder / found[0])!r}?" if found else ""
            raise NotFoundError(f"{folder} has no config.json{instead or nearest('config.json', names)}")
        chosen = _choose(names, folder) if weights else []
        for name_there in small:
            checkpoint_file(folder, name_there)
        paths = [checkpoint_file(folder, n) for n in chosen]
        for path in list(paths):
            if _is_index(path.name):
                _refuse_lfs_pointers([path])
                paths += [checkpoint_file(folder, shard) for shard in read_index(path)]
        for path in paths:
            if not path.is_file():
                raise NotFoundError(f"{folder} has no {path.name}, which the index names{nearest(path.name, names)}")
        _refuse_lfs_pointers([folder / n for n in small] + paths)
    except OSError as error:
        raise HubError(f"cannot read the folder {folder}: {error}") from error
    files = [*small, *(path.relative_to(folder).as_posix() for path in paths)]
    return Checkpoint(name, folder, revision, tuple(files), tuple(paths), CheckpointFolder(folder))


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


def _in_cache(request: _Request) -> Checkpoint:
    """The snapshot that the cache holds, without any network access."""
    from huggingface_hub import constants, try_to_load_from_cache

    revision = request.revision or constants.DEFAULT_REVISION
    cache = request.cache_dir or constants.HF_HUB_CACHE
    first = request.file or "config.json"
    found = try_to_load_from_cache(request.repo, first, cache_dir=cache, revision=revision)
    if not isinstance(found, str):
        raise OfflineError(f"{request} is not in the cache {cache} (no {first}), and no download was possible")
    folder = _without(Path(found), first)
    try:
        if request.file:
            return _of_gguf(request.display, folder, request.file, folder.name)
        return _gather(request.repo, folder, folder.name, request.weights)
    except NotFoundError as error:
        raise OfflineError(
            f"the cache holds only a part of {request}, and no download was possible: {error}"
        ) from error


def _on_hub(request: _Request) -> Checkpoint:
    from huggingface_hub.errors import OfflineModeIsEnabled, RevisionNotFoundError

    try:
        commit, listed = _listing(request)
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


def _listing(request: _Request) -> tuple[str, list[str]]:
    """The commit that the revision stands for now, and the names of its files."""
    from huggingface_hub import HfApi, constants

    def ask() -> Any:
        return HfApi(token=request.token).model_info(
            request.repo, revision=request.revision, timeout=constants.HF_HUB_ETAG_TIMEOUT
        )

    try:
        info = within(lambda: PATIENCE, ask)
    except Exception as error:  # whatever a server, a proxy or one of several HTTP libraries comes up with
        raise _explained(error, request) from error
    if not isinstance(info.sha, str) or not _COMMIT.fullmatch(info.sha):
        raise HubError(f"the hub answers with commit {info.sha!r} for {request}: expected 40 hexadecimal digits")
    listed = [str(sibling.rfilename) for sibling in info.siblings or ()]
    for name in listed:
        if name.startswith("/") or ".." in name.split("/"):
            raise HubError(f"the hub lists {name!r} among the files of {request}: no path may leave the checkpoint")
    return info.sha, listed


def _download(request: _Request, commit: str, listed: list[str]) -> Checkpoint:
    """Fetch what is needed and not cached; the weights last, so that a cache which has them has everything."""
    from .weights.gguf.parts import check_all, parts_of

    first = request.file or "config.json"
    if first not in listed:
        files = [name for name in listed if name.endswith(GGUF)]
        instead = f"; 'name:file{GGUF}' means one of {', '.join(files[:5])}" if files and not request.file else ""
        raise NotFoundError(f"{request} has no {first} on the hub{instead or nearest(first, listed)}")

    # Asked for by the user's word for the revision: that makes huggingface_hub note which commit it stands for, which
    # offline loads go by.  Where somebody has pushed since the listing, we move on to what was pushed.
    folder = _without(_fetch(request, first, request.revision), first)
    if folder.name != commit:
        commit, listed = _listing(request)
        if folder.name != commit:
            raise HubError(f"the hub lists commit {commit} for {request}, but hands out files of {folder.name}")

    def fetch(name: str) -> Path:
        return _fetch(request, name, commit)

    if request.file:
        check_all(request.file, listed)
        for part in parts_of(request.file):
            if part != request.file:
                fetch(part)
        return _of_gguf(request.display, folder, request.file, commit)
    chosen = _choose([n for n in listed if "/" not in n], request) if request.weights else []
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fetch, beside_weights_among(listed)))
    for name in chosen:
        path = fetch(name)
        shards = read_index(path) if _is_index(name) else ()
        for shard in shards:
            if shard not in listed:
                raise NotFoundError(f"{request} has no {shard}, which {name} names{nearest(shard, listed)}")
        for shard in shards:
            fetch(shard)
    return _gather(request.repo, folder, commit, request.weights)


def _without(path: Path, name: str) -> Path:
    """The folder that a file of a repository is relative to."""
    return path.parents[name.count("/")]


def _fetch(request: _Request, name: str, revision: str | None) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import tqdm

    seconds, is_late = [PATIENCE], threading.Event()

    class Bar(tqdm):
        """A progress bar that tells how long the file may take, and ends a download that nobody waits for."""

        def __init__(self, *args: Any, total: float | None = None, **options: Any):
            seconds.append(PATIENCE + (total or 0) / PACE)
            super().__init__(*args, total=total, **options)

        def update(self, n: float | None = 1) -> bool | None:
            if is_late.is_set():
                raise TimeoutError("the download takes too long")
            return super().update(n)

    options: dict[str, Any] = {"revision": revision, "cache_dir": request.cache_dir, "token": request.token}
    if "tqdm_class" in inspect.signature(hf_hub_download).parameters:
        options["tqdm_class"] = Bar
    else:
        seconds.append(DAY)
    try:
        path = within(lambda: max(seconds), lambda: hf_hub_download(request.repo, name, **options))
    except Exception as error:
        raise _explained(error, request, name) from error
    finally:
        is_late.set()
    return Path(path)


def _explained(error: Exception, request: _Request, name: str | None = None) -> HubError:
    """The one error that says what the user can do about a failure in huggingface_hub."""
    from huggingface_hub import constants, errors

    # "Not in the cache" is what huggingface_hub says last; why it could not download is the cause of that.
    while isinstance(error, errors.LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    hub = constants.ENDPOINT
    what = f"{name} of {request}" if name else str(request)
    lines = str(error).strip().splitlines()
    detail = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    # The HTTP library's own errors, whichever library this release of huggingface_hub stands on.
    http_errors = tuple(c for c in errors.HfHubHTTPError.__mro__[1:] if c.__module__ != "builtins")

    if isinstance(error, errors.GatedRepoError):
        return AccessError(
            f"{request} is gated: accept its licence at {hub}/{request.repo} while logged in, then set HF_TOKEN to a "
            "token of that account (or pass token=...)"
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return NotFoundError(
            f"{hub} has no repository {request.repo!r} that you may see (nor is there a folder of that name here); "
            "if it is private, set HF_TOKEN or pass token=..."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return NotFoundError(f"{request.repo!r} has no branch, tag or commit {request.revision or 'main'!r} on {hub}")
    if isinstance(error, errors.OfflineModeIsEnabled | errors.LocalEntryNotFoundError):
        return OfflineError(f"{what} is not in the cache, and no download was possible")

    status = getattr(getattr(error, "response", None), "status_code", None)
    if status == 401:
        return AccessError(f"{hub} refuses the token for {what}: set HF_TOKEN to a valid one, or pass token=...")
    if status == 403:
        return AccessError(f"{hub} forbids access to {what}: the token (HF_TOKEN, token=...) lacks the permission")
    if status == 404:
        return NotFoundError(f"{hub} has no {what}")
    if status in (408, 429) or (status or 0) >= 500:
        why = "asks for fewer requests" if status == 429 else "is in trouble"
        return OfflineError(f"{hub} {why} (HTTP {status}) at {what}: try again later")
    if status is not None:
        return HubError(f"{hub} answers {what} with HTTP {status}: {detail}")

    if isinstance(error, ValueError | TypeError | KeyError):
        return HubError(f"{hub} does not answer as a hub does to {what} (see HF_ENDPOINT, proxies): {detail}")
    if isinstance(error, (*http_errors, ConnectionError, TimeoutError)):
        return OfflineError(f"no connection to {hub} for {what}: {detail}")
    if isinstance(error, OSError) and error.errno is not None:
        cache = request.cache_dir or constants.HF_HUB_CACHE
        return HubError(f"cannot write {what} to the cache {cache}: {error}")
    return HubError(f"the download of {what} failed: {detail}")
