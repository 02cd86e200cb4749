"""`python -m parity NAME --weights int8`: a model with rounded weights, against itself in float32.

On ONNX Runtime activations are rounded too, text by text: what that costs is all that can be told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from zoo.checkpoint.files import Checkpoint
from zoo.checkpoint.modules import is_sentence_encoder
from zoo.loading import model_of

from .cases import RANDOM, Case, short_name
from .gguf_types import EQUAL, OF_TYPE, beside_the_package, written
from .quality import EXACT, LIMITS, Limit, Measure, arithmetic, broken, quality, ranking
from .run import given_to

ALL_LIMITS = {**OF_TYPE, **LIMITS}


class Rounded(NamedTuple):
    """What was found of one checkpoint: the table, and what does not keep to its limit."""

    name: str
    weights: str
    device: str | None
    measures: list[Measure]
    wrong: list[str]


def run_rounded(case: Case, weights: str, *, device: str | None = None, seed: int = 0) -> Rounded:
    """Of random checkpoints the arithmetic alone has a limit: what rounding costs these says nothing of real ones."""
    with case.files(seed) as checkpoint, _rounded(checkpoint, weights) as (other, said):
        on_onnx = device is not None and device.startswith("onnx")
        wide = model_of(checkpoint, device=None if on_onnx else device, dtype="float32")
        rounded = model_of(other, device=device, **said)
        given = given_to(wide, checkpoint.folder, seed)
        measures = [] if on_onnx else [arithmetic(rounded, given)]
        measures += quality(wide, rounded, given)
        if other is not checkpoint:
            measures.append(beside_the_package(other))
        if is_sentence_encoder(checkpoint.modules):
            from zoo.tasks import task_class

            make: Any = task_class("embed").from_checkpoint
            pair = make(checkpoint, device=None if on_onnx else device), make(other, device=device, **said)
            found = ranking(*pair)
            names = {m.name for m in found}
            measures = [m for m in measures if m.name not in names] + found
    limits = () if case.name.startswith(RANDOM) else ALL_LIMITS[weights]
    exact = Limit("error of arithmetic", EXACT, True)
    return Rounded(short_name(case), weights, device, measures, broken(measures, (exact, EQUAL, *limits)))


@contextmanager
def _rounded(checkpoint: Checkpoint, weights: str) -> Iterator[tuple[Checkpoint, dict[str, Any]]]:
    """The checkpoint that is held against itself, and what to load of it: a GGUF file says its types."""
    if weights in LIMITS:
        yield checkpoint, {"weights": weights}
        return
    with written(checkpoint, weights) as other:
        yield other, {}


def text_of(found: Rounded) -> str:
    head = f"{found.name}, weights {found.weights}: " + ("; ".join(found.wrong) or "holds")
    width = max(len(m.name) for m in found.measures)
    return "\n".join([head, *(f"  {m.name:<{width}}  {m.value:<12.6g} of {m.number:,}" for m in found.measures)])


def write_json(path: Path, results: Sequence[Rounded]) -> None:
    every = [{**found._asdict(), "measures": [m._asdict() for m in found.measures]} for found in results]
    path.write_text(json.dumps(every, indent=2) + "\n", encoding="utf-8")
