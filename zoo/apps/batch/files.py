"""Files of this machine, and of others by a URI: s3://, gs://, hdfs://, file:// and what else pyarrow knows."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import io
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote

from ...errors import InputError, NotFoundError, ZooError
from ...files.atomic_write import atomic_write
from ...optional import optional

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# Where a file appears once it was written whole: elsewhere it is written under another name first.
_AT_ONCE = ("s3", "gcs", "abfs")
BLOCK = 1 << 20  # bytes that are read at once


def is_uri(name: str) -> bool:
    return _URI.match(name) is not None


def join(folder: str, name: str) -> str:
    """name below a folder, unless it says itself where it is."""
    if is_uri(name) or os.path.isabs(name):
        return name
    return f"{folder.rstrip('/')}/{quote(name)}" if is_uri(folder) else os.path.join(folder, name)


def open_file(name: str) -> IO[bytes]:
    """To read, from any place in it.  NotFoundError, InputError."""
    try:
        if not is_uri(name):
            return open(name, "rb")
        found, path = _filesystem(name)
        return io.BufferedReader(found.open_input_file(path))
    except FileNotFoundError:
        raise NotFoundError(f"{name}: no such file") from None
    except OSError as e:
        raise InputError(f"{name} cannot be read: {e.strerror or _first_line(e)}") from None


def read(name: str, limit: int) -> bytes:
    """All of a file; InputError if that is more than `limit` bytes."""
    with open_file(name) as file:
        try:
            data = file.read(limit + 1)
        except OSError as e:
            raise InputError(f"{name} cannot be read: {e.strerror or _first_line(e)}") from None
    if len(data) > limit:
        raise InputError(f"{name}: more than {limit} bytes")
    return data


def digest_of(name: str) -> str:
    """sha256 of a file; of one that cannot be read, what is wrong with it, which is said where it is used."""
    found = hashlib.sha256()
    try:
        with open_file(name) as file:
            while block := file.read(BLOCK):
                found.update(block)
    except (ZooError, OSError) as e:
        return type(e).__name__
    return found.hexdigest()


def find(uri: str) -> list[tuple[str, str]]:
    """The files that a URI names, sorted: one, all below a folder, or those that fit a pattern.

    -> (URI, place below the folder).  InputError where there are none.
    """
    scheme, _, rest = uri.partition("://")
    parts = rest.split("/")
    at = next((i for i, part in enumerate(parts) if re.search(r"[*?\[]", part)), None)
    base = uri if at is None else f"{scheme}://{'/'.join(parts[:at])}/"
    found, path = _filesystem(base)
    from pyarrow import fs  # which is there, since the file system is

    try:
        info = found.get_file_info(path)
        if info.type == fs.FileType.File and at is None:
            return [(uri, path.rpartition("/")[2])]
        if info.type != fs.FileType.Directory:
            raise NotFoundError(f"{uri}: there is no such {'folder' if at is not None else 'file or folder'}")
        infos = found.get_file_info(fs.FileSelector(path, recursive=True))
    except OSError as e:
        raise InputError(f"{uri} cannot be read: {_first_line(e)}") from None
    prefix = _prefix(base, path)
    files = []
    for info in infos:
        place = info.path[len(path.rstrip("/")) + 1 :]
        hidden = any(part.startswith(".") for part in place.split("/"))
        if info.type == fs.FileType.File and not hidden and (at is None or _fits(place.split("/"), parts[at:])):
            files.append((prefix + quote(info.path), place))
    if not files:
        raise InputError(f"{uri}: {'a folder without files' if at is None else 'no file is named so'}")
    return sorted(files)


class Folder:
    """A folder to write to.  Files appear in it whole, or not at all."""

    def __init__(self, name: str):
        """name: a path or a URI; it is made at the first `write`."""
        self.name = name
        self._made = False

    def list(self) -> list[str]:
        """The names of its files."""
        if not is_uri(self.name):
            try:
                return sorted(entry.name for entry in os.scandir(self.name) if entry.is_file())
            except FileNotFoundError:
                return []
            except OSError as e:
                raise ZooError(f"cannot write to {self.name}: {e.strerror or e}") from None
        found, path = _filesystem(self.name)
        from pyarrow import fs

        infos = found.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(info.base_name for info in infos if info.type == fs.FileType.File)

    def path(self, name: str) -> str:
        return join(self.name, name)

    def write(self, name: str, data: bytes) -> None:
        """ZooError if it cannot be written."""
        try:
            if not self._made:
                _make_folder(self.name)
                self._made = True
            with writing(self.path(name)) as file:
                file.write(data)
        except OSError as e:
            raise ZooError(f"cannot write to {self.path(name)}: {e.strerror or _first_line(e)}") from None

    def remove(self, names: Sequence[str]) -> None:
        for name in names:
            if not is_uri(self.name):
                Path(self.name, name).unlink(missing_ok=True)
            else:
                found, path = _filesystem(self.path(name))
                found.delete_file(path)

    def remove_empty(self) -> None:
        """The folder itself, if nothing is in it any more."""
        try:
            if not is_uri(self.name):
                os.rmdir(self.name)
            elif not self.list():
                found, path = _filesystem(self.name)
                found.delete_dir(path)
        except OSError:
            return


@contextlib.contextmanager
def writing(name: str) -> Iterator[Any]:
    """A file to write to, which takes the place of `name` when all is written."""
    if not is_uri(name):
        with atomic_write(Path(name)) as part, open(part, "wb") as file:
            yield file
        return
    found, path = _filesystem(name)
    folder, _, last = path.rpartition("/")
    part = path if found.type_name in _AT_ONCE else f"{folder}/.{last}.{os.getpid()}.part"
    file = found.open_output_stream(part)
    try:
        yield file
    except BaseException:
        file.close()
        found.delete_file(part)
        raise
    file.close()
    if part != path:
        found.move(part, path)


def _make_folder(name: str) -> None:
    if not is_uri(name):
        os.makedirs(name, exist_ok=True)
    else:
        found, path = _filesystem(name)
        if found.type_name not in _AT_ONCE:  # these have no folders
            found.create_dir(path, recursive=True)


def _filesystem(uri: str) -> tuple[Any, str]:
    """pyarrow's filesystem of a URI, and the path in it."""
    optional("pyarrow", f"{uri}: a URI")
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(uri)
    except (ValueError, OSError, NotImplementedError) as e:
        raise InputError(f"{uri}: {_first_line(e)}") from None


def _prefix(uri: str, path: str) -> str:
    """What stands before the path of a URI: the rest of its files' URIs begin so too."""
    plain = unquote(uri.partition("?")[0]).rstrip("/")
    path = path.rstrip("/")
    if not plain.endswith(path):
        raise InputError(f"{uri}: expected a URI that ends in {path}")
    return plain[: len(plain) - len(path)]


def _fits(place: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a path fit those of a pattern, of which ** stands for any number."""
    if not pattern:
        return not place
    if pattern[0] == "**":
        return any(_fits(place[i:], pattern[1:]) for i in range(len(place) + 1))
    return bool(place) and fnmatch.fnmatchcase(place[0], pattern[0]) and _fits(place[1:], pattern[1:])


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
