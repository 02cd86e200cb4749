"""Fingerprints of weights: hashes of all their bytes, by which a saved cache or a graph knows the model that it is of.

What a file holds is hashed once.  Its digests are kept in `assets/zoo/digests` beside the hub's cache, with the file's
device, inode, size and times of change (`mapped.FileState`), and are used while all of these are the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .. import ops
from ..files.assets import assets_folder
from ..files.atomic_write import atomic_write
from ..quant import QuantTensor
from .mapped import FileState, file_state, region_of

CHUNK = 8 << 20  # bytes that one thread hashes
MIN_FILE_SIZE = 4 << 20  # bytes from which on a file's digests are kept: smaller ones are hashed as fast as looked up
SETTLE_SECONDS = 2.0  # seconds after a change in which a file may change again without another time of change
MAX_FILES = 1000  # files whose digests are kept

Pending = Callable[[], str]  # a digest that threads are computing


def files_digest(paths: Iterable[Path]) -> str:
    """A hash of all bytes of some files, in their order.  OSError: one cannot be read."""
    with _Hasher() as hasher:
        return _sha256(found() for found in [hasher.file(path) for path in paths])


def weights_digest(leaves: Iterable[tuple[str, Any]]) -> str:
    """A hash of the path, shape, type and all bytes of each array or QuantTensor (see `nn.leaves`)."""
    with _Hasher() as hasher:
        found: list[tuple[str, list[Pending]]] = []
        for path, leaf in leaves:
            parts = leaf.parts if isinstance(leaf, QuantTensor) else ()
            kinds = [part.kind.name for part in parts]
            arrays = [array for part in parts for array in (*part.arrays, part.order) if array is not None]
            about = f"{path} {tuple(leaf.shape)} {leaf.dtype} {kinds}"
            found.append((about, [hasher.array(array) for array in arrays if parts] or [hasher.array(leaf)]))
        return _sha256(text for about, digests in found for text in (about, *(digest() for digest in digests)))


class _Hasher:
    """Threads that hash chunks, and the kept digests of the files that the chunks are from."""

    def __enter__(self) -> _Hasher:
        self._pool = ThreadPoolExecutor(min(8, os.cpu_count() or 1))
        self._files: dict[Path, _DigestFile] = {}
        self._arrays: dict[int, tuple[Any, Pending]] = {}
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        if error[0] is None:
            for kept in self._files.values():
                kept.save()

    def file(self, path: Path) -> Pending:
        state = file_state(os.stat(path))
        chunks = ((path, begin) for begin in range(0, state.size, CHUNK))
        return self._look_up(path, state, "all", lambda: self._submit(_hash_of_file, chunks))

    def array(self, array: Any) -> Pending:
        """The digest of an array of NumPy or torch, looked up if it is a part of a mapped file."""
        if id(array) not in self._arrays:  # else shared, such as a tied embedding
            region = region_of(array) if isinstance(array, np.ndarray) else None
            if region is None:
                found = self._submit(_hash_of_array, _chunks(array))
            else:
                key = f"{region.begin} {array.dtype.str} {array.shape} {array.strides}"
                found = self._look_up(
                    region.path, region.state, key, lambda: self._submit(_hash_of_array, _chunks(array))
                )
            self._arrays[id(array)] = array, found
        return self._arrays[id(array)][1]

    def _look_up(self, path: Path, state: FileState, key: str, compute: Callable[[], Pending]) -> Pending:
        if state.size < MIN_FILE_SIZE:
            return compute()
        if path not in self._files:
            self._files[path] = _DigestFile(path, state)
        kept = self._files[path]
        if key in kept.digests:
            return lambda: kept.digests[key]
        pending = compute()

        def finish() -> str:
            kept.new[key] = digest = pending()
            return digest

        return finish

    def _submit(self, hash_of: Callable[..., bytes], chunks: Iterable[Any]) -> Pending:
        futures: list[Future[bytes]] = [self._pool.submit(hash_of, chunk) for chunk in chunks]
        return lambda: hashlib.sha256(b"".join(future.result() for future in futures)).hexdigest()


class _DigestFile:
    """The digests of one file's parts that are kept on disk, and the new ones."""

    def __init__(self, path: Path, state: FileState):
        self._path, self._state, self._began = path, state, time.time()
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
        self._kept = assets_folder() / "digests" / f"{name}.json"
        self.digests: dict[str, str] = {}
        self.new: dict[str, str] = {}
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            raw = json.loads(self._kept.read_bytes())
            digests = raw["digests"]
            if raw["state"] == list(state) and all(type(digest) is str for digest in digests.values()):
                self.digests = digests

    def save(self) -> None:
        """Keep the new digests, if the file has certainly not changed while they were computed."""
        if not self.new or self._began - self._state.change_time < SETTLE_SECONDS:
            return
        with suppress(OSError):
            if file_state(os.stat(self._path)) != self._state:
                return
            folder = self._kept.parent
            folder.mkdir(parents=True, exist_ok=True)
            others = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for old in others[: max(0, len(others) - MAX_FILES)]:
                old.unlink()
            with atomic_write(self._kept) as part:
                about = {"path": str(self._path), "state": self._state, "digests": {**self.digests, **self.new}}
                part.write_text(json.dumps(about), encoding="utf-8")


def _chunks(array: Any) -> Iterator[Any]:
    """Views of an array along its first axis, of about CHUNK bytes: nothing is copied."""
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous or array.ndim < 2:
        array = array.reshape(-1)
    rows = len(array)
    step = max(1, CHUNK * rows // max(1, array.nbytes))
    return (array[begin : begin + step] for begin in range(0, rows, step))


def _hash_of_array(chunk: Any) -> bytes:
    array: Any = np.ascontiguousarray(chunk if isinstance(chunk, np.ndarray) else ops.to_numpy(chunk))
    return hashlib.sha256(array).digest()


def _hash_of_file(chunk: tuple[Path, int]) -> bytes:
    path, begin = chunk
    with path.open("rb") as file:
        file.seek(begin)
        return hashlib.sha256(file.read(CHUNK)).digest()


def _sha256(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
