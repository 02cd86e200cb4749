"""Experts that a file has as one tensor of all (gpt-oss), each under names of its own: EXPERTS.3.gate_proj.weight.

Of E experts, D features, F of an expert:

EXPERTS.gate_up_proj        (E, D, 2 F): inputs before outputs, of which gate_proj has the even and up_proj the odd ones
EXPERTS.down_proj           (E, F, D)
EXPERTS.gate_up_proj_bias   (E, 2 F), and EXPERTS.down_proj_bias (E, D)
NAME_blocks, NAME_scales    in place of gate_up_proj and down_proj: the fields of the QuantType FP4_32, as (E, outputs,
                            inputs / 32, 16) and (E, outputs, inputs / 32) uint8
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import CheckpointError, MissingWeightError, nearest
from ..files.pages import release
from ..quant import QUANT_TYPES, QuantRows
from ..typing import RawTensor
from .source import Random, Source, stored_arrays

_STACK = re.compile(r"(.*\bexperts)\.(gate_up_proj|down_proj)(_bias|_blocks|)")
_EXPERT = re.compile(r"(.*\bexperts)\.([0-9]+)\.(gate_proj|up_proj|down_proj)\.(weight|bias)")
_PARTS = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}
_STACK_OF = {"gate_proj": ("gate_up_proj", 0), "up_proj": ("gate_up_proj", 1), "down_proj": ("down_proj", 0)}
PACKED_TYPE = QUANT_TYPES["FP4_32"]


class _Place(NamedTuple):
    """Where a tensor is: the outputs from `first` on, every `step`-th, of an expert in a stack."""

    stack: str
    expert: int
    first: int
    step: int


class ExpertsSource:
    """A Source with a tensor for each expert in place of those of all."""

    def __init__(self, source: Source):
        self.source, self.files = source, source.files
        self._own: dict[str, _Place] = {}
        found, names = set(), []
        for name in source.names():
            match = _STACK.fullmatch(name)
            if match is None:
                names.append(name)
                continue
            found.add(name)
            shape, parts = source.shape(name), _PARTS[match[2]]
            if match[3] == "_blocks":
                found.add(_scales(name))
                self._check_packed(name, shape)
            elif len(shape) != (2 if match[3] else 3):
                raise CheckpointError(f"{name!r} has shape {shape}, expected a stack of the experts' tensors")
            kind = "bias" if match[3] == "_bias" else "weight"
            for i in range(shape[0]):
                for first, part in enumerate(parts):
                    self._own[f"{match[1]}.{i}.{part}.{kind}"] = _Place(name, i, first, len(parts))
        if twice := next((name for name in self._own if name in source), None):
            raise CheckpointError(f"{twice!r} is stored twice: by itself, and in {self._own[twice].stack!r}")
        self._names = [name for name in names if name not in found] + list(self._own)

    def _check_packed(self, name: str, shape: tuple[int, ...]) -> None:
        other = _scales(name)
        if other not in self.source:
            raise MissingWeightError(
                f"{name!r} is there, but {other!r} is missing{nearest(other, self.source.names())}"
            )
        scales = self.source.shape(other)
        if len(shape) != 4 or shape != (*scales, 16):
            raise CheckpointError(f"{name!r} has shape {shape}, and {other!r} {scales}: expected (*scales, 16)")
        for one in (name, other):
            if self.source.dtype(one) != "U8":
                raise CheckpointError(f"{one!r} is of {self.source.dtype(one)}, expected U8")

    def names(self) -> Collection[str]:
        return self._names

    def __contains__(self, name: object) -> bool:
        return name in self._own or (name in self.source and not _STACK.fullmatch(str(name)))

    def shape(self, name: str) -> tuple[int, ...]:
        if name not in self._own:
            return self.source.shape(name)
        at = self._own[name]
        shape, is_packed = self.source.shape(at.stack), at.stack.endswith("_blocks")
        outputs = len(range(at.first, shape[1 if is_packed or len(shape) == 2 else 2], at.step))
        if len(shape) == 2:
            return (outputs,)
        return outputs, shape[2] * PACKED_TYPE.block if is_packed else shape[1]

    def dtype(self, name: str) -> str:
        if name not in self._own:
            return self.source.dtype(name)
        stack = self._own[name].stack
        return PACKED_TYPE.name if stack.endswith("_blocks") else self.source.dtype(stack)

    def read(self, name: str) -> RawTensor | QuantRows:
        if name not in self._own:
            return self.source.read(name)
        at = self._own[name]
        rows = slice(at.first, None, at.step)
        (array,) = stored_arrays(stored := self.source.read(at.stack))
        if at.stack.endswith("_blocks"):
            (scales,) = stored_arrays(self.source.read(_scales(at.stack)))
            blocks, scales = array[at.expert, rows], scales[at.expert, rows]
            return QuantRows(
                PACKED_TYPE, scales.shape[1] * PACKED_TYPE.block, (blocks.reshape(len(blocks), -1), scales)
            )
        assert isinstance(stored, RawTensor)
        one = array[at.expert]
        copy = np.ascontiguousarray(one[rows] if one.ndim == 1 else one[:, rows].T)
        release(one)
        return RawTensor(copy, stored.dtype)


def separate_experts(source: Source | Random) -> Any:
    """The source with a tensor for each expert; one without a file has these as it is."""
    return source if isinstance(source, (Random, ExpertsSource)) else ExpertsSource(source)


def _scales(blocks: str) -> str:
    return blocks.removesuffix("_blocks") + "_scales"


def stacks_of(names: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """The stacks that a file has in place of tensors of these names: name -> of each expert the parts of its tensor."""
    found: dict[str, dict[int, dict[int, str]]] = {}
    for name in names:
        if match := _EXPERT.fullmatch(name):
            whole, first = _STACK_OF[match[3]]
            stack = f"{match[1]}.{whole}{'_bias' if match[4] == 'bias' else ''}"
            found.setdefault(stack, {}).setdefault(int(match[2]), {})[first] = name
    return {
        stack: [[parts[k] for k in sorted(parts)] for _, parts in sorted(experts.items())]
        for stack, experts in found.items()
    }


def stack(experts: list[list[np.ndarray]]) -> np.ndarray:
    """The stack of the parts of each expert's tensor, each (outputs,) or (outputs, inputs)."""
    E, parts, one = len(experts), len(experts[0]), experts[0][0]
    whole = np.empty((E, *one.shape[1:], parts * one.shape[0]), one.dtype)
    for i, expert in enumerate(experts):
        for first, part in enumerate(expert):
            whole[i, ..., first::parts] = part.T
    return whole
