"""A bench for models that are broken on purpose: a tiny checkpoint, and the reference's outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from parity.checkpoints import build
from parity.compare import Multiple, Stage, rule_for
from parity.inputs import given_to
from parity.reference import Reference
from parity.stages import (
    Stages,
    compare_processors,
    compare_stages,
    judge_by_float64,
    needs_float64,
    reference_stages,
    zoo_stages,
)
from zoo.loading import load_model
from zoo.nn import Linear
from zoo.quant import QuantTensor


class Bench:
    """A tiny checkpoint, what both sides are given of it, and what the reference makes of that.

    dtype: in another one than float32 zoo runs on torch, and the reference is also run in that precision.
    """

    def __init__(self, name: str, folder: Path, dtype: str = "float32"):
        self.folder, self.dtype = build(name, folder), dtype
        self.rule = rule_for("numpy" if dtype == "float32" else "torch", dtype)
        model = self.load()
        self.inputs, tokenizer = given_to(model, self.folder, 0)
        self.tokenizer: Any = tokenizer
        self.reference = Reference(self.folder, model.architecture)
        self.theirs = [reference_stages(self.reference, batch) for batch in self.inputs]
        self.own: list[Stages] | None = None
        if isinstance(self.rule, Multiple):
            low = Reference(self.folder, model.architecture, dtype=dtype)
            self.own = [reference_stages(low, batch) for batch in self.inputs]
        self.prepared: list[Stage] = []
        if self.reference.has_processor and any(batch.images for batch in self.inputs):
            self.prepared.append(compare_processors(self.reference, self.inputs))

    def load(self) -> Any:
        if self.dtype == "float32":
            return load_model(self.folder, strict=True)
        return load_model(self.folder, strict=True, device="torch:cpu", dtype=self.dtype)

    def stages(self, model: Any) -> list[Stage]:
        ours = [zoo_stages(model, batch) for batch in self.inputs]
        stages = compare_stages(self.inputs, ours, self.theirs, self.rule, self.own)
        if self.dtype == "float32" and any(map(needs_float64, stages)):
            stages = judge_by_float64(stages, self.inputs, ours, self.exact, self.theirs)
        return self.prepared + stages

    @cached_property
    def exact(self) -> list[Stages]:
        """The reference's stages in float64."""
        exact = Reference(self.folder, self.reference.architecture, dtype="float64")
        return [reference_stages(exact, batch) for batch in self.inputs]

    def first_wrong(self, model: Any) -> str | None:
        return next((stage.name for stage in self.stages(model) if not stage.holds), None)


def whole(weight: Any) -> np.ndarray:
    """A linear layer's weight as one writable array."""
    return np.array(weight.dequantise() if isinstance(weight, QuantTensor) else weight)


def own(linear: Linear) -> Linear:
    """The layer with its own writable arrays: those of a file are mapped, and may be shared."""
    linear.weight, linear.bias = whole(linear.weight), np.array(linear.bias)
    return linear


def calling(module: Any, call: Callable[..., Any]) -> None:
    """Another call of this one module, whose attributes stay."""
    cls = type(module)
    module.__class__ = type(cls.__name__, (cls,), {"__call__": call})


def joined(parts: Sequence[Any]) -> Any:
    """Arrays of either kind, one after the other along the last axis."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, -1)
    import torch

    return torch.cat(list(parts), -1)
