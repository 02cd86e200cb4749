"""The state of a run on disk."""

from __future__ import annotations

import contextlib
import io
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


class _File(io.FileIO):
    """A file that notes why it could not be written: torch has words of its own for a full disk."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as e:
            self.error = e
            raise


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write a state whole or not at all: after a kill or on a full disk the previous state remains."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial, _File(partial, "wb") as raw, io.BufferedWriter(raw) as file:
            try:
                torch.save(state, file)
            except RuntimeError as e:
                raise raw.error or e from e
    except (OSError, RuntimeError) as e:
        kept = "the previous state is still there" if path.exists() else "nothing was written"
        why = e.strerror if isinstance(e, OSError) and e.strerror else str(e).partition("\n")[0]
        raise ZooError(f"cannot write {path}: {why}; {kept}") from e
