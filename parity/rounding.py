"""`zoo parity NAME --weights int8`: a model with rounded weights, against itself in float32.

On ONNX Runtime activations are rounded too, text by text: only their common cost can be measured.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import zoo
from zoo.apps.gguf_export.export import TYPES, export, package
from zoo.checkpoint.files import Checkpoint
from zoo.checkpoint.modules import is_sentence_encoder
from zoo.devices import placement
from zoo.hub import find
from zoo.loading import model_of
from zoo.options import Options
from zoo.quant import QUANT_TYPES, QuantRows
from zoo.weights.gguf.parts import read_parts
from zoo.weights.gguf.source import read_entry

from .cases import RANDOM_PREFIX, Case, short_name
from .inputs import given_to
from .quality import EXACT_TOLERANCE, LIMITS, Limit, Measure, arithmetic, broken_limits, quality, ranking

# The limits of a GGUF type are those of zoo's own blocks of as many bits.
LIMITS_BY_TYPE = {kind: LIMITS["int8" if kind in ("f32", "f16", "bf16", "q8_0", "q6_k") else "int4"] for kind in TYPES}
ALL_LIMITS = {**LIMITS_BY_TYPE, **LIMITS}
EXACT_LIMIT = Limit("error beside gguf's numbers", 0.0, True)


class Rounded(NamedTuple):
    """The result of one checkpoint: its table, and the figures beyond their limits."""

    name: str
    weights: str
    device: str | None
    measures: list[Measure]
    wrong: list[str]


def run_rounded(case: Case, weights: str, *, device: str | None = None, seed: int = 0) -> Rounded:
    """On random checkpoints only the arithmetic has a limit: their rounding errors say nothing about real ones."""
    with case.files(seed) as checkpoint, _open_checkpoint(checkpoint, weights) as (other, said):
        on_onnx = placement(device).engine is not None
        wide = model_of(checkpoint, device=None if on_onnx else device, dtype="float32")
        rounded = model_of(other, device=device, **said)
        given = given_to(wide, checkpoint.folder, seed)
        measures = [] if on_onnx else [arithmetic(rounded, given)]
        measures += quality(wide, rounded, given)
        if other is not checkpoint:
            measures.append(beside_the_package(other))
        if is_sentence_encoder(checkpoint.modules):
            from zoo.tasks.embed import Embed

            make: Any = Embed.from_checkpoint
            pair = (
                make(checkpoint, options=Options(device=None if on_onnx else device)),
                make(other, options=Options(device=device, **said)),
            )
            found = ranking(*pair)
            names = {m.name for m in found}
            measures = [m for m in measures if m.name not in names] + found
    limits = () if case.name.startswith(RANDOM_PREFIX) else ALL_LIMITS[weights]
    exact = Limit("error of arithmetic", EXACT_TOLERANCE, True)
    return Rounded(short_name(case), weights, device, measures, broken_limits(measures, (exact, EXACT_LIMIT, *limits)))


@contextmanager
def _open_checkpoint(checkpoint: Checkpoint, weights: str) -> Iterator[tuple[Checkpoint, dict[str, Any]]]:
    """The checkpoint that is held against itself, and what to load of it: a GGUF file says its types."""
    if weights in LIMITS:
        yield checkpoint, {"weights": weights}
        return
    with tempfile.TemporaryDirectory() as folder:
        yield find(export(zoo.load(checkpoint.folder), Path(folder) / "model.gguf", weights)), {}


def beside_the_package(checkpoint: Checkpoint) -> Measure:
    """The largest difference between the numbers of a file's tensors here and by the gguf package's dequantisation."""
    gguf = package()
    header, worst, count = read_parts(checkpoint.weights[0]), 0.0, 0
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(checkpoint.weights[0]).tensors}
    for name, entry in header.tensors.items():
        stored = read_entry(header, entry)
        rows = stored if len(entry.shape) == 2 or not QUANT_TYPES[entry.dtype].is_plain else stored.reshape(1, -1)
        ours = QuantRows(QUANT_TYPES[entry.dtype], entry.shape[-1], (rows,)).dequantise()
        theirs = gguf.quants.dequantize(tensors[name].data, tensors[name].tensor_type).reshape(ours.shape)
        worst, count = max(worst, float(np.abs(ours - theirs).max(initial=0))), count + ours.size
    return Measure(EXACT_LIMIT.name, worst, count)


def text_of(found: Rounded) -> str:
    head = f"{found.name}, weights {found.weights}: " + ("; ".join(found.wrong) or "holds")
    width = max(len(m.name) for m in found.measures)
    return "\n".join([head, *(f"  {m.name:<{width}}  {m.value:<12.6g} of {m.number:,}" for m in found.measures)])


def write_json(path: Path, results: Sequence[Rounded]) -> None:
    every = [{**found._asdict(), "measures": [m._asdict() for m in found.measures]} for found in results]
    path.write_text(json.dumps(every, indent=2) + "\n", encoding="utf-8")
