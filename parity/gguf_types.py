"""What GGUF's types cost: a checkpoint written as a file of one, and that file's numbers as llama.cpp reads them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import zoo
from zoo.apps.gguf_export.export import TYPES, export, package
from zoo.checkpoint.files import Checkpoint
from zoo.lock import find
from zoo.packed import KINDS, Rows
from zoo.weights.gguf.parts import read_parts
from zoo.weights.gguf.source import read_entry

from .quality import LIMITS, Limit, Measure

# The limits that hold of a type: what a block of as many bits of zoo's own may cost.
OF_TYPE = {kind: LIMITS["int8" if kind in ("f32", "f16", "bf16", "q8_0", "q6_k") else "int4"] for kind in TYPES}
EQUAL = Limit("error beside gguf's numbers", 0.0, True)


@contextmanager
def written(checkpoint: Checkpoint, kind: str) -> Iterator[Checkpoint]:
    """The checkpoint as a GGUF file, for as long as it is looked at."""
    with tempfile.TemporaryDirectory() as folder:
        yield find(export(zoo.load(checkpoint.folder), Path(folder) / "model.gguf", kind))


def beside_the_package(checkpoint: Checkpoint) -> Measure:
    """The largest difference between the numbers of a file's tensors here and by the gguf package's dequantisation."""
    gguf = package()
    header, worst, count = read_parts(checkpoint.weights[0]), 0.0, 0
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(checkpoint.weights[0]).tensors}
    for name, entry in header.tensors.items():
        stored = read_entry(header, entry)
        rows = stored if len(entry.shape) == 2 or not KINDS[entry.dtype].plain else stored.reshape(1, -1)
        ours = Rows(KINDS[entry.dtype], entry.shape[-1], (rows,)).dequantise()
        theirs = gguf.quants.dequantize(tensors[name].data, tensors[name].tensor_type).reshape(ours.shape)
        worst, count = max(worst, float(np.abs(ours - theirs).max(initial=0))), count + ours.size
    return Measure(EQUAL.name, worst, count)
