"""What was found out about a case, and the file that keeps it until the case or a source of its kernel changes."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from zoo.files.atomic_write import atomic_write

from .cases import Case
from .sass import Measured

HERE = Path(__file__).parent
KERNELS = HERE.parent / "zoo" / "ops" / "on_torch" / "kernels"
GATE = tuple(HERE / name for name in ("capture.py", "sass.py", "architectures.py"))  # what measures


class Job(NamedTuple):
    """One compilation: of a case, for an architecture, in an element type."""

    case: Case
    arch: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.case.function} [{self.case.name}] {self.dtype} {self.arch}"


@dataclass(frozen=True)
class Found:
    """What came of a job: the kernels that it launches, in their order, or the error that stopped it."""

    launches: tuple[Measured, ...] = ()
    error: str = ""


def sources(module: str, folder: Path = KERNELS) -> tuple[Path, ...]:
    """The files of a kernel's module and of what it imports, directly or not, from its own folder."""
    found: dict[str, Path] = {}
    waiting = ["__init__", module]
    while waiting:
        name = waiting.pop()
        path = folder / f"{name}.py"
        if name in found or not path.is_file():
            continue
        found[name] = path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                waiting += [node.module.partition(".")[0]] if node.module else [alias.name for alias in node.names]
    return tuple(found[name] for name in sorted(found))


def key(job: Job, triton: str, files: Iterable[Path]) -> str:
    """What a result depends on, as one number: the case, the compiler's release, the sources."""
    digest = hashlib.sha256(repr((job.case._replace(budget=None), job.arch, job.dtype, triton)).encode())  # type: ignore[arg-type]
    for path in files:
        digest.update(b"\0" + path.read_bytes())
    return digest.hexdigest()


class Store:
    """Results in a JSON file, by job; one whose key is another one now is as good as none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # not there, or cut off: it holds nothing that cannot be made again
            kept = None
        self._kept: dict[str, Any] = kept if isinstance(kept, dict) else {}

    def get(self, job: Job, key: str) -> Found | None:
        kept = self._kept.get(str(job))
        if not isinstance(kept, dict) or kept.get("key") != key:
            return None
        return Found(tuple(Measured(**launch) for launch in kept["launches"]))

    def put(self, job: Job, key: str, found: Found) -> None:
        if not found.error:
            self._kept[str(job)] = {"key": key, "launches": [asdict(launch) for launch in found.launches]}

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path) as partial:
            partial.write_text(json.dumps(self._kept, indent=1), encoding="utf-8")
