"""The results of cases, and the file that keeps them until a case or a kernel changes."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from zoo.files.atomic_write import atomic_write

from .cases import Case
from .sass import Measured

HERE = Path(__file__).parent
KERNELS = HERE.parent / "zoo" / "engines" / "triton"
GATE = tuple(HERE / name for name in ("capture.py", "sass.py", "architectures.py"))  # what measures


class CompileJob(NamedTuple):
    """One compilation: of a case, for an architecture, in an element type."""

    case: Case
    arch: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.case.function} [{self.case.name}] {self.dtype} {self.arch}"


@dataclass(frozen=True)
class JobResult:
    """The result of a job: the kernels that it launches, in order, or the error that stopped it."""

    launches: tuple[Measured, ...] = ()
    error: str = ""


def digest(folders: Iterable[Path] = (KERNELS,)) -> str:
    """A number that changes with the sources of the kernels, what measures them, and Triton's release."""
    found = hashlib.sha256(importlib.metadata.version("triton").encode())
    for path in (*GATE, *(path for folder in folders for path in sorted(folder.glob("*.py")))):
        found.update(path.read_bytes())
    return found.hexdigest()


class Store:
    """Results in a JSON file, by job, as long as the digest stays the same."""

    def __init__(self, path: Path, digest: str) -> None:
        self.path, self.digest, self._kept = path, digest, {}
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # not there, or damaged: made again
            kept = json.loads(path.read_text(encoding="utf-8"))
            self._kept: dict[str, Any] = dict(kept["found"]) if kept["digest"] == digest else {}

    def get(self, job: CompileJob) -> JobResult | None:
        kept = self._kept.get(f"{job} {job.case.arguments}")
        return None if kept is None else JobResult(tuple(Measured(**launch) for launch in kept))

    def put(self, job: CompileJob, found: JobResult) -> None:
        if not found.error:
            self._kept[f"{job} {job.case.arguments}"] = [asdict(launch) for launch in found.launches]

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path) as partial:
            partial.write_text(json.dumps({"digest": self.digest, "found": self._kept}), encoding="utf-8")
