"""Files by path or by URI: file://, s3://, gs://, hdfs:// and the others of SCHEMES, through fsspec.

Where pyarrow has a file system for the scheme, fsspec uses that; otherwise fsspec's own package (s3fs, gcsfs, ...).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from ...errors import InputError, NotFoundError, ZooError, nearest, nearest_file
from ...files.atomic_write import atomic_write
from ...files.inside import check_regular
from ...optional import import_optional
from ...weights.fingerprint import files_digest

if TYPE_CHECKING:
    from ...checkpoint.files import Checkpoint

# Objects appear in these stores once they are complete; elsewhere a file is written under another name first.
STORES = ("s3", "gs", "gcs", "abfs", "abfss")
ARROW = (*STORES, "hdfs", "viewfs")
SCHEMES = ("file", *ARROW, "az", "hf")
BLOCK = 1 << 20  # bytes read at once
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def is_uri(name: str) -> bool:
    return _URI.match(name) is not None


def join(folder: str, name: str) -> str:
    """`name` below a folder, or `name` itself if it is absolute or a URI."""
    if is_uri(name) or os.path.isabs(name):
        return name
    return f"{folder.rstrip('/')}/{quote(name)}" if is_uri(folder) else os.path.join(folder, name)


def filesystem(name: str) -> tuple[Any, str]:
    """fsspec's file system for a path or URI, and the path in it; % escapes of a URI are decoded.  InputError."""
    fsspec = import_optional("fsspec", f"{name}: a URI")
    scheme = scheme_of(name)
    if not is_uri(name):
        return fsspec.filesystem("file"), os.path.abspath(name)
    if scheme not in SCHEMES:
        raise InputError(f"{name}: {scheme}:// is not one of {', '.join(SCHEMES)}{nearest(scheme, SCHEMES)}")
    try:
        if scheme in ARROW and find_spec("pyarrow") is not None:
            from fsspec.implementations.arrow import ArrowFSWrapper
            from pyarrow import fs

            found, path = fs.FileSystem.from_uri(name)
            return ArrowFSWrapper(found), path
        found, path = fsspec.url_to_fs(name)
        return found, unquote(path)
    except ImportError as e:
        raise InputError(f"{name}: a URI requires the package pyarrow: pip install pyarrow ({first_line(e)})") from None
    except (ValueError, OSError, NotImplementedError) as e:
        raise InputError(f"{name}: {first_line(e)}") from None


def scheme_of(name: str) -> str:
    match = _URI.match(name)
    return "file" if match is None else match[1].lower()


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Errors of the system about a file become NotFoundError and InputError."""
    try:
        yield
    except FileNotFoundError:
        raise NotFoundError(f"{name}: no such file{nearest_file(name)}") from None
    except ZooError:
        raise
    except (OSError, ValueError) as e:  # ValueError: a name with U+0000 or half of a surrogate pair
        why = getattr(e, "strerror", None) or first_line(e)
        raise InputError(f"{name!r:.500} cannot be read: {why}") from None


def open_file(name: str) -> IO[bytes]:
    """A file opened to read, seekable.  NotFoundError, InputError."""
    with reading(name):
        found, path = filesystem(name) if is_uri(name) else (None, name)
        if scheme_of(name) == "file":
            check_regular(os.stat(path).st_mode, name, InputError)
            return open(path, "rb")
        arrow: Any = getattr(found, "fs", None)
        if hasattr(arrow, "open_input_file"):  # fsspec's file on top of it reads lines byte by byte
            return io.BufferedReader(arrow.open_input_file(path))
        other: Any = found
        return other.open(path, "rb")


def read(name: str, limit: int) -> bytes:
    """The bytes of a file; InputError if there are more than `limit`."""
    with reading(name), open_file(name) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise InputError(f"{name}: more than {limit} bytes")
    return data


def sha256_of(name: str, limit: int) -> str:
    """The sha256 of a file, or of its first `limit` bytes if it has more, which no reader takes.

    If it cannot be read, the name of the error, which is raised where the file is used.
    """
    digest = hashlib.sha256()
    try:
        with open_file(name) as file:
            while limit >= 0 and (block := file.read(BLOCK)):
                digest.update(block)
                limit -= len(block)
    except (ZooError, OSError) as e:
        return type(e).__name__
    return digest.hexdigest()


def folder_digest(checkpoint: Checkpoint) -> str | None:
    """A hash of all files of a checkpoint in a folder; None for one of the hub, whose revision says what it holds."""
    return files_digest(checkpoint.folder / name for name in checkpoint.files) if checkpoint.revision is None else None


def find(uri: str) -> list[tuple[str, str]]:
    """The files that a URI names, sorted, each with its path below the folder: one, all of a folder, or a pattern's.

    Hidden files and folders are left out.  InputError: there are none.
    """
    parts = uri.split("/")
    at = next((i for i, part in enumerate(parts) if re.search(r"[*?\[]", part)), len(parts))
    base, pattern = "/".join(parts[:at]), "/".join(parts[at:])
    found, path = filesystem(base + "/" if pattern else base)
    with reading(uri):
        if not pattern and found.isfile(path):
            return [(uri, path.rpartition("/")[2])]
        if not found.isdir(path):
            raise NotFoundError(f"{uri}: there is no such {'folder' if pattern else 'file or folder'}")
        places = [name[len(path.rstrip("/")) + 1 :] for name in found.find(path)]
    if pattern:
        from fsspec.utils import glob_translate

        places = [place for place in places if re.match(glob_translate(pattern), place)]
    places = [place for place in places if not any(part.startswith(".") for part in place.split("/"))]
    if not places:
        raise InputError(f"{uri}: {'no file matches' if pattern else 'a folder without files'}")
    return [(join(base, place), place) for place in sorted(places)]


def list_files(folder: str) -> list[str]:
    """The names of the files in a folder; none if there is no folder."""
    found, path = filesystem(folder)
    found.invalidate_cache()
    try:
        return sorted(os.path.basename(one["name"]) for one in found.ls(path, detail=True) if one["type"] == "file")
    except FileNotFoundError:
        return []
    except OSError as e:
        raise ZooError(f"cannot write to {folder}: {e.strerror or first_line(e)}") from None


def remove_files(folder: str, names: Sequence[str]) -> None:
    found, path = filesystem(folder)
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            found.rm_file(f"{path.rstrip('/')}/{name}")


def remove_if_empty(folder: str) -> None:
    found, path = filesystem(folder)
    with contextlib.suppress(OSError):
        found.invalidate_cache()
        if not found.ls(path):
            found.rmdir(path)


@contextlib.contextmanager
def writing(name: str) -> Iterator[Any]:
    """A file to write to, which takes the place of `name` once it is complete; its folder is made.  ZooError."""
    found, path = filesystem(name)
    folder, _, last = path.rpartition("/")
    scheme = scheme_of(name)
    try:
        if scheme not in STORES:  # stores have no folders
            found.makedirs(folder or "/", exist_ok=True)
        if scheme == "file":
            with atomic_write(Path(path)) as part, open(part, "wb") as file:
                yield file
            return
        part = path if scheme in STORES else f"{folder}/.{last}.{os.getpid()}.part"
        file = found.open(part, "wb")
        try:
            yield file
            file.close()
        except BaseException:
            file.close()
            found.rm_file(part)
            raise
        if part != path:
            found.mv(part, path)
    except OSError as e:
        raise ZooError(f"cannot write to {name}: {e.strerror or first_line(e)}") from None


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
