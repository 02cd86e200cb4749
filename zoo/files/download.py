"""One request to the hub: the names of its files, a file of it, and the one error that says what went wrong.

huggingface_hub does the downloading; a deadline that it has not is set here.
"""

from __future__ import annotations

import inspect
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import AccessError, HubError, NotFoundError, OfflineError
from .deadline import run_within
from .hub_limits import MAX_FILES, MAX_LISTING, TooLongError, limit_answers

_COMMIT = re.compile(r"[0-9a-f]{40}")
# Seconds for an answer of the hub and the beginning of a file; bytes a second of the rest, at the slowest; and where
# an older huggingface_hub does not give a file's size.
MIN_TIMEOUT, MIN_BYTES_PER_SECOND, DAY = 120.0, 10_000, 86_400.0
# Bytes of a file beyond its size: older releases of huggingface_hub take that of a compressed answer for it.
SLACK = 64 << 20


@dataclass(frozen=True)
class Request:
    """A checkpoint of the hub, with huggingface_hub's arguments; weights: True if they are wanted too."""

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


def listing(request: Request) -> tuple[str, list[str]]:
    """The commit that the revision stands for now, and the names of its files."""
    from huggingface_hub import HfApi, constants

    def ask() -> Any:
        limit_answers(MAX_LISTING)
        return HfApi(token=request.token).model_info(
            request.repo, revision=request.revision, timeout=constants.HF_HUB_ETAG_TIMEOUT
        )

    try:
        info = run_within(lambda: MIN_TIMEOUT, ask)
    except Exception as error:  # whatever a server, a proxy or one of several HTTP libraries comes up with
        raise _explain(error, request) from error
    if not isinstance(info.sha, str) or not _COMMIT.fullmatch(info.sha):
        raise HubError(f"the hub answers with commit {info.sha!r} for {request}: expected 40 hexadecimal digits")
    listed = [str(sibling.rfilename) for sibling in info.siblings or ()]
    if len(listed) > MAX_FILES:
        raise HubError(f"the hub lists {len(listed):,} files of {request}, expected {MAX_FILES:,} at most")
    for name in listed:
        if name.startswith("/") or ".." in name.split("/"):
            raise HubError(f"the hub lists {name!r} among the files of {request}: no path may leave the checkpoint")
    return info.sha, listed


def fetch_file(request: Request, name: str, revision: str | None) -> Path:
    """The path of a file of the repository in the cache, downloaded if it is not there."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import tqdm

    seconds, is_late = [MIN_TIMEOUT], threading.Event()

    class Bar(tqdm):
        """A progress bar with the time and bytes that the file may have; it ends a download that nobody waits for."""

        def __init__(self, *args: Any, total: float | None = None, **options: Any):
            seconds.append(MIN_TIMEOUT + (total or 0) / MIN_BYTES_PER_SECOND)
            self.left = (total or 0) + SLACK - options.get("initial", 0)
            super().__init__(*args, total=total, **options)

        def update(self, n: float | None = 1) -> bool | None:
            self.left -= n or 0
            if is_late.is_set():
                raise TimeoutError("the download takes too long")
            if self.left < 0:
                raise TooLongError("the file is longer than its size says")
            return super().update(n)

    options: dict[str, Any] = {"revision": revision, "cache_dir": request.cache_dir, "token": request.token}
    if "tqdm_class" in inspect.signature(hf_hub_download).parameters:
        options["tqdm_class"] = Bar
    else:
        seconds.append(DAY)

    def download() -> str:
        limit_answers()
        return hf_hub_download(request.repo, name, **options)

    try:
        path = run_within(lambda: max(seconds), download)
    except Exception as error:
        raise _explain(error, request, name) from error
    finally:
        is_late.set()
    return Path(path)


def _explain(error: Exception, request: Request, name: str | None = None) -> HubError:
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
        return OfflineError(f"{what} is not in the cache, and {no_download()}")

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
        return OfflineError(f"no connection to {hub} for {what}{_by_proxy(hub)}: {detail}")
    cache = request.cache_dir or constants.HF_HUB_CACHE
    if "Consistency check failed" in detail:  # below 2.2 the part is kept, and a part that is too long fails for ever
        part = Path(cache) / f"models--{request.repo.replace('/', '--')}" / "blobs" / "*.incomplete"
        return HubError(
            f"the download of {what} failed: {detail}; if it fails again, remove {part}, which it would resume, or "
            "update huggingface_hub to 2.2 or newer, which does"
        )
    if isinstance(error, OSError) and error.errno is not None:
        return HubError(f"cannot write {what} to the cache {cache}: {error}")
    return HubError(f"the download of {what} failed: {detail}")


def no_download() -> str:
    """The reason why nothing was downloaded, and what to do instead."""
    from huggingface_hub import constants

    why = "HF_HUB_OFFLINE forbids a download" if constants.HF_HUB_OFFLINE else "no download was possible"
    return f"{why}: give a folder with its files, or set HF_HOME to a cache that has them"


def _by_proxy(hub: str) -> str:
    """The proxy of the environment, without its password, or how to name one; of no use for this machine's own hub."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    host = urlsplit(hub).hostname or ""
    if proxy_bypass(host) or host in ("localhost", "127.0.0.1", "::1"):
        return ""
    proxy = getproxies().get(urlsplit(hub).scheme)
    return f" by the proxy {proxy.rpartition('@')[2]}" if proxy else " (set HTTPS_PROXY if there is a proxy)"


def safetensors_headers(request: Request, file: str, commit: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The (element type, shape) of each tensor in a safetensors file of the repository; only its header is read."""
    from huggingface_hub import HfApi

    def ask() -> Any:
        limit_answers()
        return HfApi(token=request.token).parse_safetensors_file_metadata(request.repo, file, revision=commit)

    try:
        found = run_within(lambda: MIN_TIMEOUT, ask)
    except Exception as error:
        raise _explain(error, request, file) from error
    return {name: (str(tensor.dtype), tuple(tensor.shape)) for name, tensor in found.tensors.items()}
