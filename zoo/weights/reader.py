"""Reader: reads the tensors of one checkpoint by name and shape, places them on a device, and records each read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..errors import CheckpointError, MissingWeightError, UnsupportedError, WeightShapeError, nearest
from ..files.pages import release
from ..quant import QUANT_TYPES, QuantRows
from ..typing import Array, RawTensor
from .name_map import RenamedSource
from .source import NewHead, stored_arrays


class TensorPart(NamedTuple):
    """The rows of an array that came from one tensor of the checkpoint."""

    name: str
    rows: int
    dtype: str


class QuantChoice(NamedTuple):
    """The QuantTypes that a checkpoint's matrices are quantised to."""

    matrices: str
    embeddings: str


# The values of `weights=`.  Embeddings in int4 would add half as much error again as all else, in int8 next to none.
QUANT_CHOICES = {"int8": QuantChoice("INT8", "INT8"), "int4": QuantChoice("INT4_32", "INT8")}


@dataclass
class Reads:
    """The tensors read so far, by all `Weights` of one checkpoint."""

    arrays: dict[tuple[str, ...], Any] = field(default_factory=dict)  # names in the file -> the array made of them
    parts: dict[tuple[str, ...], list[TensorPart]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def parts_of(self, leaves: Iterable[tuple[str, Any]]) -> list[list[TensorPart]]:
        """The tensors that the rows of each array or quantised matrix came from; leaves: all (path, array) of a model.

        UnsupportedError: an array was not read, but computed, or was read and is not among them.
        """
        origins = {id(one): origins for origins, one in self.arrays.items()}  # they are alive, so ids are unique
        lost, found = dict(origins), []
        for path, array in leaves:
            if id(array) not in origins:
                raise computed_array(path, array)
            found.append(self.parts[origins[id(array)]])
            lost.pop(id(array), None)
        if lost:
            names = " and ".join(map(repr, next(iter(lost.values()))))
            raise UnsupportedError(
                f"the model has read {names} and would be saved without: expected it as an attribute without an "
                "underscore of a Module, or in a list or tuple there"
            )
        return found


def computed_array(path: str, array: Any) -> UnsupportedError:
    """The error for an attribute that a model would be saved with, and that no tensor of the checkpoint is."""
    parts = path.split(".")
    while parts[-1].isdecimal():  # an item of a list
        parts.pop()
    own = ".".join([*parts[:-1], f"_{parts[-1]}"])
    return UnsupportedError(
        f"the model's attribute {path} is an array of shape {tuple(array.shape)} that was not read from the "
        f"checkpoint: call what is computed {own}, so that it is neither counted nor saved, and read weights by w.get "
        "or w.linear"
    )


@dataclass(frozen=True)
class Report:
    """Lists what was done with each tensor of a checkpoint.

    renamed: canonical name -> legacy name in the file.  tied: name -> the one whose array it shares.
    ignored: in the file, and known to be unneeded.  unused: in the file, and unknown to the model.
    new: not in the file, but initialised at random (see `NewHead`).
    fingerprint: of the checkpoint's files, where they were compared with a lock (see `zoo.lock`).
    """

    renamed: dict[str, str]
    tied: dict[str, str]
    ignored: tuple[str, ...]
    unused: tuple[str, ...]
    new: tuple[str, ...] = ()
    fingerprint: str | None = None


@dataclass
class Reader:
    """Reads the tensors of one checkpoint with these options, and records the reads."""

    named: RenamedSource
    backend: ModuleType
    dtype: str | None = None
    device: str = "cpu"
    sizes: Mapping[str, int] = field(default_factory=dict)  # config field -> value, to explain a wrong shape
    keep_16bit: bool = False  # matrices of 16-bit numbers stay as the file has them
    keep_quantised: bool = False  # quantised matrices, too
    keep_order: bool = False  # their rows, too, keep their order, and are reordered when they are used
    fuse: bool = True  # matrices that are used together become one array, not a tuple
    new_head: NewHead | None = None
    choice: QuantChoice | None = None  # the types that floating-point matrices are quantised to
    only_saved: Sequence[str] = ()  # patterns of canonical names: see `Pretrained`
    reads: Reads = field(default_factory=Reads)

    def read(
        self,
        names: Sequence[str],
        shapes: Sequence[tuple[int, ...]],
        join: Callable[[list[Any]], Any],
        is_matrix: bool = False,
        kind: str | None = None,
    ) -> Any:
        """The array that `join` makes of the tensors of these full names, or the one that it made before."""
        origins = tuple(self.named.resolve(name) for name in names)
        if origins in self.reads.arrays:
            for name, shape in zip(names, shapes, strict=True):
                self._check(name, shape)
            return self.reads.arrays[origins]
        placed = [self._place(name, shape, is_matrix, kind) for name, shape in zip(names, shapes, strict=True)]
        parts = [
            TensorPart(origin, shape[0] if shape else 1, "F32" if self._is_new(name, shape) else self.named.dtype(name))
            for name, origin, shape in zip(names, origins, shapes, strict=True)
        ]
        self.reads.names.update(origins)
        if not self.fuse and len(placed) > 1:
            for origin, one, part in zip(origins, placed, parts, strict=True):
                self.reads.arrays[origin,], self.reads.parts[origin,] = one, [part]
            return tuple(placed)
        array = _freeze(join(placed)) if is_matrix or len(placed) > 1 else placed[0]
        self.reads.arrays[origins], self.reads.parts[origins] = array, parts
        return array

    def _is_new(self, name: str, shape: tuple[int, ...]) -> bool:
        """True if a tensor belongs to a new head: the checkpoint lacks it, or has it for other labels."""
        if self.new_head is None or not self.new_head.covers(name):
            return False
        return name not in self.named or self.named.shape(name, shape) != shape

    def _check(self, name: str, shape: tuple[int, ...]) -> None:
        if self._is_new(name, shape):
            return
        if name not in self.named:
            before = f"{self.named.name_map.prefix}."  # of the base model's tensors in a model with a head
            is_of_head = not name.startswith(before) and any(n.startswith(before) for n in self.named.names())
            hint = " (new_head=True would draw the head's at random)" if is_of_head else ""
            raise MissingWeightError(f"the checkpoint has no tensor {name!r}{hint}{nearest(name, self.named.names())}")
        found = self.named.shape(name, shape)
        kind, expected = QUANT_TYPES.get(self.named.dtype(name)), shape
        if kind is not None and len(shape) == 2:  # a row's last block may hold more columns
            expected = (shape[0], -(-shape[1] // kind.block) * kind.block)
        if found != expected:
            fields = [f"{k} = {v}" for k, v in self.sizes.items() if v in shape and v not in found]
            because = f" (by {', '.join(fields)} in the config)" if fields else ""
            raise WeightShapeError(f"tensor {self.named.resolve(name)!r} has shape {found}, expected {shape}{because}")

    def _place(self, name: str, shape: tuple[int, ...], is_matrix: bool, kind: str | None) -> Array | QuantRows:
        self._check(name, shape)
        try:
            is_new = self._is_new(name, shape)
            stored = self.new_head.draw(name, shape) if self.new_head and is_new else self.named.read(name, shape)
            file = stored_arrays(stored)
            if isinstance(stored, QuantRows):
                stored = replace(stored, columns=shape[-1]).check(name)
                stored = stored if self.keep_order else stored.in_order()
            elif kind is not None:
                from ..ops.on_numpy.quantise import quantise

                stored = quantise(stored, kind, name)
            elif is_matrix and self.keep_16bit and stored.dtype in ("F16", "BF16"):
                stored = QuantRows(QUANT_TYPES[stored.dtype], shape[1], (stored.array,))
            if isinstance(stored, RawTensor):
                placed = self.backend.to_parameter(stored, name, self.dtype, self.device)
            elif is_matrix and (stored.kind.is_plain or self.keep_quantised):
                placed = self.backend.keep(stored, self.device)
            else:
                wide = RawTensor(stored.dequantise(), "F32")
                placed = self.backend.to_parameter(wide, name, self.dtype, self.device)
        except MemoryError:
            raise CheckpointError(f"not enough memory for tensor {name!r} of shape {shape}") from None
        for array in file:
            if not any(np.may_share_memory(one, array) for one in _of_numpy(placed)):
                release(array)
        return _freeze(placed)

    def read_only_saved(self) -> dict[str, RawTensor]:
        """The tensors, by their names in the file, that no model computes with and `save_model` writes again.

        Floats are widened; `dtype` is the file's.  Call it when the model is complete.
        """
        from ..ops import on_numpy

        source: Any = self.named.source  # one with names has numbers
        found: dict[str, RawTensor] = {}
        for name, origin in self._unread_tensors().items():
            if _matches(name, self.only_saved) and isinstance(stored := source.read(origin), RawTensor):
                is_float = stored.dtype in ("F64", "F32", "F16", "BF16")
                array = on_numpy.to_parameter(stored, origin, None, "cpu") if is_float else stored.array
                found[origin] = RawTensor(np.array(array), stored.dtype)
        return found

    def _unread_tensors(self) -> dict[str, str]:
        """Canonical name -> name in the file of each tensor that was not read."""
        taken = self.reads.names | {copy for copies in self.named.copies.values() for copy in copies}
        return {name: origin for name, origin in self.named.origin.items() if origin not in taken}

    def report(self) -> Report:
        """The names renamed, tied, ignored and left unread.  Call it when the model is complete."""
        unread, patterns = self._unread_tensors(), (*self.named.name_map.ignored, *self.only_saved)
        ignored = [origin for name, origin in unread.items() if _matches(name, patterns)]
        return Report(
            renamed={n: o for n, o in self.named.origin.items() if n != o and n not in self.named.tied},
            tied=dict(self.named.tied),
            ignored=(*ignored, *self.named.heads),
            unused=tuple(o for o in unread.values() if o not in ignored),
            new=() if self.new_head is None else tuple(self.new_head.drawn),
        )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(re.search(pattern, name) for pattern in patterns)


def _freeze(placed: Any) -> Any:
    """The same arrays, which NumPy does not let anyone write to: they are the file's, or stand for what is in it."""
    for array in _of_numpy(placed):
        array.flags.writeable = False
    return placed


def _of_numpy(placed: Array | QuantRows) -> list[np.ndarray]:
    arrays = placed.arrays if isinstance(placed, QuantRows) else (placed,)
    return [array for array in arrays if isinstance(array, np.ndarray)]
