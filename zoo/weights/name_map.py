"""NameMap: the tensor names of a model family; RenamedSource: a file's tensors under those names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..errors import CheckpointError
from ..files.pages import release
from ..quant import QUANT_TYPES, QuantRows
from ..typing import RawTensor
from .source import Random, Source, stored_arrays


@dataclass(frozen=True)
class NameMap:
    """The tensor names in one family's checkpoints.

    prefix: the base model's prefix in a checkpoint with a head ("bert" in `bert.embeddings...`).
    base: the first parts of the base model's names, to tell them from a head's in a file without the prefix.
    renames: patterns of legacy names -> their replacement.
    part_renames: a part's prefix ("backbone") -> the renames below it, as those of a model of its own.
    ignored: patterns of canonical names that some files have and no model needs.
    by_heads: patterns of the names of matrices whose columns files have by heads, as (rows, heads, size of a head).
    transposed: patterns of the names of matrices that files have as (inputs, outputs), and models as (outputs, inputs).
    stacks_experts: True if files have one tensor of all experts (see `zoo.weights.stacked_experts`).
    """

    prefix: str
    base: tuple[str, ...]
    renames: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    transposed: tuple[str, ...] = ()
    by_heads: tuple[str, ...] = ()
    part_renames: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stacks_experts: bool = False

    def rename(self, name: str) -> str:
        """The canonical name of a tensor of a file."""
        for part, renames in self.part_renames.items():
            if name.startswith(f"{part}."):
                name = f"{part}.{_apply_renames(name.removeprefix(f'{part}.'), renames)}"
        return _apply_renames(name, self.renames)

    def splits(self, name: str, dtype: str) -> bool:
        """True if files have this matrix by heads."""
        kind = QUANT_TYPES.get(dtype)
        return (kind is None or kind.is_plain) and any(re.search(pattern, name) for pattern in self.by_heads)

    def transposes(self, name: str, dtype: str) -> bool:
        """True if files have this tensor transposed.  Matrices that zoo has quantised have the model's order."""
        kind = QUANT_TYPES.get(dtype)
        return (kind is None or kind.is_plain) and any(re.search(pattern, name) for pattern in self.transposed)


def _apply_renames(name: str, renames: Mapping[str, str]) -> str:
    for pattern, new in renames.items():
        name = re.sub(pattern, new, name)
    return name


class RenamedSource:
    """A source under the names that a model asks for: resolves legacy names, a missing or extra prefix, tied tensors.

    origin: canonical name -> name in the file.  own: the same, only of names that the file has.
    tied: canonical name -> the one whose array it shares.
    """

    def __init__(self, source: Source | Random, name_map: NameMap, *, is_base_model: bool, tied: Mapping[str, str]):
        if name_map.stacks_experts:
            from .stacked_experts import separate_experts

            source = separate_experts(source)
        self.source, self.name_map = source, name_map
        self.origin: dict[str, str] = {}
        self.tied: dict[str, str] = {}
        self.copies: dict[str, list[str]] = {}  # name in the file -> other names of the same array
        self.heads: list[str] = []  # a head's tensors that have the name of one of the base model's
        self._align(is_base_model)
        self.own = dict(self.origin)  # before names share arrays
        # First the pairs that the file has one of, so that the array of a third name serves the others.
        for target, owner in sorted(tied.items(), key=lambda pair: self.origin.keys().isdisjoint(pair)):
            self._tie(target, owner)

    def names(self) -> Collection[str]:
        return self.origin.keys()

    def __contains__(self, name: object) -> bool:
        return name in self.origin or (isinstance(self.source, Random) and name in self.source)

    def resolve(self, name: str) -> str:
        """The name in the file."""
        return self.origin.get(name, name)

    def read(self, name: str, shape: tuple[int, ...]) -> RawTensor | QuantRows:
        if isinstance(self.source, Random):
            return self.source.make(self.resolve(name), shape)
        stored = self.source.read(self.origin[name])
        if isinstance(stored, RawTensor) and stored.array.ndim == 3 and self.name_map.splits(name, stored.dtype):
            stored = RawTensor(stored.array.reshape(len(stored.array), -1), stored.dtype)
        if isinstance(stored, RawTensor) and self.name_map.transposes(name, stored.dtype):
            turned = np.ascontiguousarray(stored.array.T)
            release(stored.array)
            return RawTensor(turned, stored.dtype)
        return stored

    def shape(self, name: str, expected: tuple[int, ...]) -> tuple[int, ...]:
        if isinstance(self.source, Random):
            return expected
        shape = self.source.shape(self.origin[name])
        if len(shape) == 3 and self.name_map.splits(name, self.dtype(name)):
            shape = (shape[0], shape[1] * shape[2])
        return shape[::-1] if self.name_map.transposes(name, self.dtype(name)) else shape

    def dtype(self, name: str) -> str:
        return self.source.dtype(self.resolve(name))

    def copy_tied(self) -> None:
        """Let tied names that the file lacks be names of their own in a file that is saved."""
        prefix = self.name_map.prefix + "."
        for name, owner in self.tied.items():
            file_name = self.origin[owner]
            if name not in self.own:
                copy = (
                    name if file_name.startswith(prefix) or not owner.startswith(prefix) else name.removeprefix(prefix)
                )
                self.copies.setdefault(file_name, []).append(copy)

    def _align(self, is_base_model: bool) -> None:
        """Map each canonical name to its name in the file."""
        prefix = self.name_map.prefix + "."
        files = dict.fromkeys(self.source.names())
        prefixed = any(name.startswith(prefix) for name in files)
        for file_name in files:
            name = self.name_map.rename(file_name)
            if is_base_model and prefixed and not name.startswith(prefix) and prefix + name in files:
                self.heads.append(file_name)
                continue
            if is_base_model:
                name = name.removeprefix(prefix)
            elif not prefixed and name.partition(".")[0] in self.name_map.base:
                name = prefix + name
            if name in self.origin:
                both = f"{self.origin[name]!r} and {file_name!r}"
                raise CheckpointError(f"{both} are two spellings of the same tensor, {name!r}: expected one")
            self.origin[name] = file_name

    def _tie(self, target: str, owner: str) -> None:
        """Let two names share one array if the file has only one of them, or both are equal (transformers' rule)."""
        if isinstance(self.source, Random):
            self.origin[target] = self.resolve(owner)
        elif owner not in self.origin and target not in self.origin:
            return  # the model's read raises MissingWeightError
        elif owner not in self.origin:
            self.origin[owner] = self.origin[target]
        elif target not in self.origin:
            self.origin[target] = self.origin[owner]
        elif _are_equal(self.source, self.origin[target], self.origin[owner]):
            self.copies.setdefault(self.origin[owner], []).append(self.origin[target])
            self.origin[target] = self.origin[owner]
        else:
            return  # both are in the file and differ: they are not tied
        self.tied[target] = owner


def _are_equal(source: Source, a: str, b: str) -> bool:
    if source.shape(a) != source.shape(b) or source.dtype(a) != source.dtype(b):
        return False
    pairs = zip(stored_arrays(source.read(a)), stored_arrays(source.read(b)), strict=True)
    return all(_is_view_of_the_same(x, y) or np.array_equal(x, y) for x, y in pairs)


def _is_view_of_the_same(x: np.ndarray, y: np.ndarray) -> bool:
    """True for two names of one array in a file of torch."""
    return x.__array_interface__ == y.__array_interface__
