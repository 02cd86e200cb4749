"""One case from its files to a verdict: both models on the same inputs, every stage compared in order."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from zoo.checkpoint.files import Checkpoint
from zoo.checkpoint.lock_file import entry_of
from zoo.checkpoint.names import GGUF
from zoo.devices import placement
from zoo.errors import InputError, ZooError
from zoo.loading import model_of
from zoo.nn import leaves

from .cases import Case
from .compare import Multiple, Rule, Stage, Tolerance, failed_stage, rule_for
from .exhibits import Exhibit, exhibit_texts, exhibits_of
from .inputs import Given, given_to
from .reference import Reference, exact_products, threads_for
from .stages import (
    Stages,
    compare_inputs,
    compare_stages,
    judge_by_float64,
    needs_float64,
    reference_stages,
    zoo_stages,
)
from .writing import Written, compare_written, write_texts, written_by_reference


class File(NamedTuple):
    name: str
    size: int  # bytes
    sha256: str


@dataclass(frozen=True)
class Result:
    """The result of a case.  error: the reason if it could not be run; then all else is unknown.

    exhibits: made only where they are asked for.  lock: the fingerprint of the checkpoint's files, "sha256:...".
    lock_file: where that fingerprint was demanded.
    """

    case: Case
    architecture: str = ""
    revision: str | None = None
    backend: str = ""
    device: str = ""
    dtype: str = ""
    seed: int = 0
    tolerance: Rule | None = None
    files: tuple[File, ...] = ()
    stages: tuple[Stage, ...] = ()
    seconds: float = 0.0
    error: str | None = None
    exhibits: tuple[Exhibit, ...] = ()
    lock: str | None = None
    lock_file: str | None = None

    @property
    def first_divergence(self) -> str | None:
        """The first stage that does not hold."""
        return next((stage.name for stage in self.stages if not stage.holds), None)

    @property
    def holds(self) -> bool:
        return self.error is None and self.first_divergence is None


class Side(NamedTuple):
    """One side's outputs: the stages of each batch, and the text it generates, or why it could not."""

    stages: list[Stages]
    written: list[Written]
    failure: str = ""


def run(
    case: Case,
    *,
    device: str | None = None,
    dtype: str = "float32",
    seed: int = 0,
    exhibits: bool = False,
    explain: bool = False,
) -> Result:
    """Compare zoo with transformers on a case; ZooError where that cannot be done.

    device: where both run; NumPy's other side is torch on the CPU.  dtype: in another one than float32 zoo and
    transformers are both held against transformers in float32.  explain: note each stage's errors to float64 in
    float32; otherwise float64 is only asked about stages that the fixed limits call different.
    """
    began = time.perf_counter()
    rule = rule_for(backend_of(device), dtype)
    where = placement(device).device
    with case.files(seed) as checkpoint, exact_products():
        if any(path.suffix == GGUF for path in checkpoint.weights):
            kind = "a folder or a name of the Hub with transformers' files, which it computes with"
            raise InputError(f"{case.name} is a GGUF file, expected {kind}")
        config, architecture, given, ours = run_zoo(checkpoint, device, dtype, seed)  # one model in memory at a time
        own = None
        if isinstance(rule, Multiple):
            own = _of_reference(Reference(checkpoint.folder, architecture, where, dtype), given, ours)
        reference = Reference(checkpoint.folder, architecture, where)
        stages = compare_inputs(reference, *given)
        shown: list[Exhibit] = []

        def reference_sides() -> Iterator[Stages]:
            for i, batch in enumerate(given.batches):
                found = reference_stages(reference, batch, ours.stages[i])
                if exhibits and i == 0:
                    shown.extend(exhibits_of(config, architecture, batch, ours.stages[0], found, given.tokenizer))
                yield found

        numbers = compare_stages(given.batches, ours.stages, reference_sides(), rule, own and own.stages)
        if isinstance(rule, Tolerance) and (explain or any(map(needs_float64, numbers))):
            numbers = _by_float64(numbers, checkpoint.folder, reference, given, ours, explain)
        stages += numbers
        texts = written_by_reference(reference, ours.written, given.batches)
        stages += compare_written(ours.written, texts, rule, own.written if own else ())
        if ours.failure:
            stages.append(failed_stage("written", given.batches[0].name, ours.failure))
        if exhibits:
            shown += exhibit_texts(ours.written, texts)
        entry = entry_of(checkpoint)
        weights = {path.relative_to(checkpoint.folder).as_posix() for path in checkpoint.weights}
    files = tuple(File(name, file.size, file.sha256) for name, file in entry.files.items() if name in weights)
    revision, seconds = checkpoint.revision, time.perf_counter() - began
    where = backend_of(device), device or "cpu", dtype
    found = Result(case, architecture, revision, *where, seed, rule, files, tuple(stages), seconds)
    return replace(found, exhibits=tuple(shown), lock=entry.fingerprint, lock_file=case.lock_file)


def backend_of(device: str | None) -> str:
    """The back end of a device's name: "numpy", "onnx", "openvino" or "torch"."""
    found = placement(device)
    return str(device).partition(":")[0] if found.engine else found.backend.__name__.rpartition("on_")[2]


def run_zoo(checkpoint: Checkpoint, device: str | None, dtype: str, seed: int) -> tuple[Any, str, Given, Side]:
    """The config, the class's name, what the model is given, and what it makes of it."""
    # NumPy computes in float32, whether it widens 16-bit weights at once or keeps them: as `zoo.load` has it.
    own = dtype if backend_of(device) == "torch" or dtype != "float32" else None
    model = model_of(checkpoint, device=device, dtype=own, strict=True)
    given = given_to(model, checkpoint.folder, seed)
    texts: list[Written] = []
    failure = ""
    with threads_for(sum(math.prod(array.shape) for _, array in leaves(model))):
        stages = [zoo_stages(model, batch) for batch in given.batches]
        try:
            texts = write_texts(model, given.batches, given.tokenizer)
        except ZooError as e:  # of logits that are NaN, say: the stages tell where that began
            failure = " ".join(str(e).split())
    return model.config, model.architecture, given, Side(stages, texts, failure)


def _by_float64(
    stages: list[Stage], folder: Path, reference: Reference, given: Given, ours: Side, every: bool
) -> list[Stage]:
    """The stages as `judge_by_float64` sees them, or as they are where transformers cannot compute in float64."""
    try:
        exact = Reference(folder, reference.architecture, str(reference.device), "float64")
        both = (_each_stages(one, given, ours) for one in (exact, reference))
        return judge_by_float64(stages, given.batches, ours.stages, *both, every=every)
    except (ZooError, RuntimeError) as e:  # torch's, where a model mixes element types
        why = f"transformers has no float64 to compare with: {' '.join(str(e).split())[:200]}"
        return [replace(stage, note=why) if needs_float64(stage) else stage for stage in stages]


def _each_stages(reference: Reference, given: Given, ours: Side) -> Iterator[Stages]:
    return (reference_stages(reference, *one) for one in zip(given.batches, ours.stages, strict=True))


def _of_reference(reference: Reference, given: Given, ours: Side) -> Side:
    return Side(
        list(_each_stages(reference, given, ours)), written_by_reference(reference, ours.written, given.batches)
    )
