"""What a version of transformers makes of checkpoints and inputs: run by that version's process, and kept in files."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from zoo.errors import ZooError

from ..reference import Reference
from ..stages import Stages
from ..texts import Batch
from ..writing import Written, written_by_reference

PARTS = ("load", "tokens", "pixels", "outputs", "texts")  # in this order


class Job(NamedTuple):
    """A checkpoint, its inputs, and what zoo writes after them, which says how the reference is to write."""

    name: str
    folder: Path
    architecture: str
    batches: list[Batch]
    written: list[Written]


@dataclass
class Recording:
    """What a side makes of a job.

    tokens: the ids of each batch that has texts.  pixels: the processor's arrays of each batch that has images.
    outputs: the model's, of every batch.  written: the texts after them.  failed: why a part is not there.
    """

    tokens: dict[str, list[list[int]]] = field(default_factory=dict)
    pixels: dict[str, Stages] = field(default_factory=dict)
    outputs: list[Stages] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def job_files(folder: Path) -> list[Path]:
    """The jobs of a folder, in their order."""
    return sorted(folder.glob("*.job"))


def recording_file(job: Path, name: str) -> Path:
    """The file for a side's recording of a job."""
    return job.with_suffix(f".{name}")


def faults_file(folder: Path, name: str) -> Path:
    """The file for what a version's reproductions of faults print."""
    return folder / f"faults.{name}"


def read_pickle(path: Path) -> Any:
    """What this program has written into its own scratch folder."""
    return pickle.loads(path.read_bytes())


def record(job: Job) -> Recording:
    """What the transformers that this process finds makes of a job."""
    found = Recording()

    def attempt(part: str, compute: Callable[[], Any]) -> Any:
        try:
            return compute()
        except (ZooError, Exception) as e:  # whatever another version raises is what is to be told
            found.failed[part] = " ".join(f"{type(e).__name__}: {e}".split()).replace(str(job.folder), "FOLDER")
            return None

    reference = attempt("load", lambda: Reference(job.folder, job.architecture))
    if reference is None:
        return found
    with_texts = [batch for batch in job.batches if batch.texts and batch.mask is not None]
    with_images = [batch for batch in job.batches if batch.images]
    found.tokens = attempt("tokens", lambda: {batch.name: _ids(reference, batch) for batch in with_texts}) or {}
    found.pixels = attempt("pixels", lambda: {b.name: reference.pixels(b.images) for b in with_images}) or {}
    outputs = attempt("outputs", lambda: [reference.outputs(b.arrays, b.switches) for b in job.batches])
    found.outputs = outputs or []
    found.written = attempt("texts", lambda: written_by_reference(reference, job.written, job.batches)) or []
    return found


def _ids(reference: Reference, batch: Batch) -> list[list[int]]:
    assert batch.mask is not None
    return reference.ids(batch.texts, batch.pairs, batch.mask.shape[1])
