"""The vectors of `zoo embed` on the disk until all are there, from which a job that was stopped goes on."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from ...errors import ZooError
from ...files.atomic_write import atomic_write
from ...files.json_file import parse_json

SAVE_INTERVAL = 10.0  # seconds after which what was written is saved, so that a killed job loses no more
STATE = "state.json"


class VectorSpool:
    """A folder beside the output with the vectors (float32), a line of JSON for each input, and a count of both.

    What lies beyond the count may be cut off or, after a power failure, not on the disk: it is written anew.  The
    folder stays where the job is stopped, if there are vectors in it.
    """

    def __init__(self, output: Path, key: str, resume: bool, record: Callable[[Any], Any] = lambda item: item):
        """key: a hash of all but the inputs that decides the vectors.  resume: keep those of the same key.

        record: what JSON holds of an input, by which it is known again: a text, or a list that begins with one.
        """
        self.folder, self.key, self.record = output.with_name(output.name + ".parts"), key, record
        self.count = self.size = self.known = 0
        if not resume:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(exist_ok=True)
        with suppress(FileNotFoundError, ZooError):
            state = parse_json((self.folder / STATE).read_bytes(), self.folder / STATE)
            if state["key"] == key:
                self.known, self.size = state["count"], state["size"]
        self._vectors, self._inputs = self._file("vectors"), self._file("inputs")
        self.known = min(self.known, self._vectors.seek(0, os.SEEK_END) // max(1, 4 * self.size))
        self._saved = time.monotonic()

    def _file(self, name: str) -> IO[bytes]:
        path = self.folder / name
        return open(path, "r+b" if path.exists() else "w+b")

    def new_inputs(self, items: Iterator[Any]) -> Iterator[Any]:
        """The inputs whose vectors are not known, each recorded as it passes: those after the first that differs."""
        lines = islice(iter(self._inputs.readline, b""), self.known)
        same, changed = 0, list[Any]()
        for line in lines:
            item = next(items, None)
            if item is None or self._line(item) != line:
                changed = [] if item is None else [item]
                break
            same += 1
        self.known = self.count = same
        self._inputs.seek(0)
        for _ in range(same):
            self._inputs.readline()
        self._inputs.truncate()
        self._vectors.truncate(4 * self.size * same)
        self._vectors.seek(0, os.SEEK_END)
        return self._record_inputs(changed, items)

    def _record_inputs(self, *parts: Any) -> Iterator[Any]:
        for part in parts:
            for item in part:
                self._inputs.write(self._line(item))
                yield item

    def add(self, vectors: Iterator[np.ndarray]) -> None:
        """Write vectors, one after the other."""
        for vector in vectors:
            self.size = len(vector)
            self._vectors.write(vector.astype(np.float32, copy=False).tobytes())
            self.count += 1
            if time.monotonic() - self._saved > SAVE_INTERVAL:
                self._save()

    def array(self) -> np.ndarray:
        """All vectors (N, E), mapped from the disk."""
        self._vectors.flush()
        return np.memmap(self.folder / "vectors", np.float32, "r", shape=(self.count, self.size))

    def texts(self) -> Iterator[str]:
        """The inputs, in the order of their vectors."""
        self._inputs.seek(0)
        for line in self._inputs:
            item = json.loads(line)
            yield item if isinstance(item, str) else item[0]

    def _line(self, item: Any) -> bytes:
        return json.dumps(self.record(item)).encode() + b"\n"

    def _save(self) -> None:
        for file in (self._vectors, self._inputs):
            file.flush()
            os.fsync(file.fileno())
        state = {"key": self.key, "count": self.count, "size": self.size}
        with atomic_write(self.folder / STATE) as part:
            part.write_text(json.dumps(state), encoding="utf-8")
        self._saved = time.monotonic()

    def __enter__(self) -> VectorSpool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        keeps = error is not None and self.count > 1  # a single one is no loss
        if keeps:
            with suppress(OSError):  # a full disk: what was saved before remains
                self._save()
        for file in (self._vectors, self._inputs):
            with suppress(OSError):
                file.close()
        if not keeps:
            shutil.rmtree(self.folder, ignore_errors=True)
