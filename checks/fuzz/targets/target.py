"""The class of a target, and helper functions of several targets."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zoo
from zoo.errors import ZooError

from .. import mutate

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
STORIES = Path(zoo.__file__).parent / "data" / "stories260k"


@dataclass
class Target:
    """`run` takes an input; a ZooError is a refusal.  `prepare` gets a folder of the target's own first."""

    seeds: Callable[[], list[bytes]]
    mutate: mutate.Mutator
    run: Callable[[bytes, Path], object]
    prepare: Callable[[Path], None] = lambda folder: None
    weight: float = 1.0  # its share of the time
    seconds: float = 5.0  # processor time for one input
    megabytes: int = 1500  # address space beside what the process has when it begins
    starts: bool = False  # whether it has a Python process of its own, as templates have
    found: dict[str, Any] = field(default_factory=dict)


TARGETS: dict[str, Target] = {}


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def tolerant(run: Callable[[bytes, Path], object]) -> Callable[[bytes, Path], object]:
    """For inputs that are several files in one JSON, which is the harness's own and not a checkpoint's."""

    def tolerant(data: bytes, at: Path) -> object:
        try:
            json.loads(data)
        except (ValueError, RecursionError):
            raise ZooError("not an input") from None
        return run(data, at)

    return tolerant
