"""The state of a run on disk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ...errors import CheckpointError, ZooError
from ...files.atomic_write import atomic_write


@contextlib.contextmanager
def write_errors(folder: Path) -> Iterator[None]:
    """Errors of the system become a ZooError that names the folder of the run."""
    try:
        yield
    except OSError as e:
        raise ZooError(f"cannot write to {folder}: {e.strerror or e}") from e


def read_state(path: Path) -> dict[str, Any]:
    """Read a state written by `write_state`: tensors and plain values, no code."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as e:
        raise CheckpointError(f"{path} is not the state of a run, or is damaged: {type(e).__name__}") from e
    if not isinstance(state, dict):
        raise CheckpointError(f"{path} is not the state of a run, but a {type(state).__name__}")
    return state


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write a state whole or not at all: after a kill or on a full disk the previous state remains."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial:
            torch.save(state, partial)
    except (OSError, RuntimeError) as e:  # torch raises RuntimeError on a full disk
        kept = "the previous state is still there" if path.exists() else "nothing was written"
        why = e.strerror if isinstance(e, OSError) and e.strerror else str(e).partition("\n")[0]
        raise ZooError(f"cannot write {path}: {why}; {kept}") from e
