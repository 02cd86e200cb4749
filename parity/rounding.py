"""`python -m parity NAME --weights int8`: a model with rounded weights, against itself in float32."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from zoo.checkpoint.load import model_of
from zoo.tasks.sentence_encoder import is_sentence_encoder

from .cases import RANDOM, Case, short_name
from .quality import EXACT, LIMITS, Limit, Measure, arithmetic, broken, quality, ranking
from .run import given_to


class Rounded(NamedTuple):
    """What was found of one checkpoint: the table, and what does not keep to its limit."""

    name: str
    weights: str
    device: str | None
    measures: list[Measure]
    wrong: list[str]


def run_rounded(case: Case, weights: str, *, device: str | None = None, seed: int = 0) -> Rounded:
    """Of random checkpoints the arithmetic alone has a limit: what rounding costs these says nothing of real ones."""
    with case.files(seed) as checkpoint:
        wide = model_of(checkpoint, device=device, dtype="float32")
        rounded = model_of(checkpoint, device=device, weights=weights)
        given = given_to(wide, checkpoint.folder, seed)
        measures = [arithmetic(rounded, given), *quality(wide, rounded, given)]
        if is_sentence_encoder(checkpoint.folder):
            from zoo.tasks import task_class

            make: Any = task_class("embed").from_checkpoint
            pair = make(checkpoint, device=device), make(checkpoint, device=device, weights=weights)
            found = ranking(*pair)
            names = {m.name for m in found}
            measures = [m for m in measures if m.name not in names] + found
    limits = () if case.name.startswith(RANDOM) else LIMITS[weights]
    exact = Limit("error of arithmetic", EXACT, True)
    return Rounded(short_name(case), weights, device, measures, broken(measures, (exact, *limits)))


def text_of(found: Rounded) -> str:
    head = f"{found.name}, weights {found.weights}: " + ("; ".join(found.wrong) or "holds")
    width = max(len(m.name) for m in found.measures)
    return "\n".join([head, *(f"  {m.name:<{width}}  {m.value:<12.6g} of {m.number:,}" for m in found.measures)])


def write_json(path: Path, results: Sequence[Rounded]) -> None:
    every = [{**found._asdict(), "measures": [m._asdict() for m in found.measures]} for found in results]
    path.write_text(json.dumps(every, indent=2) + "\n", encoding="utf-8")
