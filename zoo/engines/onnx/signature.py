"""The inputs of a graph, made from TextInputs and ImageInputs, and its outputs, returned as `forward` returns them.

Names and the order of image axes are Hugging Face's: input_ids, pixel_values (B, C, Y, X), logits, ...
"""

from __future__ import annotations

import json
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...errors import InputError
from .ops.dims import evaluate

VERSION = 2


DTYPES = ("bool", "int32", "int64", "float32")


def get(record: Any, path: str) -> Any:
    for name in path.split("."):
        record = getattr(record, name)
    return record


def put(record: Any, path: str, value: Any) -> Any:
    """A copy of a record with another value in one place."""
    name, _, rest = path.partition(".")
    return record._replace(**{name: put(getattr(record, name), rest, value) if rest else value})


@dataclass(frozen=True)
class GraphInput:
    name: str
    dims: tuple[int | str, ...]  # a fixed length, or a name; (B, C, Y, X) for images
    dtype: str
    record: int  # the number of the record
    path: str  # the field's, in the record
    fill: int | None = None  # what stands for a missing array: see `RecordField`


@dataclass(frozen=True)
class GraphOutput:
    name: str
    dims: tuple[int | str, ...]  # a fixed length, or an expression of the inputs' names
    dtype: str
    is_image: bool = False  # (B, C, Y, X) in the graph, (B, Y, X, C) in the model


@dataclass(frozen=True)
class Signature:
    """Inputs, outputs and guards, which are what the graph assumes about lengths, such as "T <= 512"."""

    inputs: tuple[GraphInput, ...]
    outputs: tuple[GraphOutput, ...]
    guards: tuple[str, ...]

    def to_json(self) -> str:
        return json.dumps({"version": VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Signature:
        """ValueError: a field is missing, or is not of its kind."""
        try:
            raw = json.loads(text)
            if raw["version"] != VERSION:
                raise ValueError(f"version {raw['version']}, expected {VERSION}")
            inputs = tuple(GraphInput(**{**i, "dims": tuple(i["dims"])}) for i in raw["inputs"])
            outputs = tuple(GraphOutput(**{**o, "dims": tuple(o["dims"])}) for o in raw["outputs"])
            guards = tuple(raw["guards"])
        except (LookupError, RecursionError, TypeError) as e:
            raise ValueError(f"a signature that is damaged: {e!r}") from None
        for one in (*inputs, *outputs):
            sides = [isinstance(n, str) or (type(n) is int and 0 <= n < 1 << 31) for n in one.dims]
            if not isinstance(one.name, str) or one.dtype not in DTYPES or not all(sides):
                raise ValueError(f"{one!r:.300} is not an input or output of a graph")
        for one in inputs:
            is_fill = one.fill is None or (type(one.fill) is int and abs(one.fill) < 1 << 31)
            known = type(one.record) is int and -1 <= one.record < 8 and is_fill
            if not known or (one.record < 0 and one.path != one.name):
                raise ValueError(f"{one!r:.300} is not a field of a model's inputs")
        if not inputs or not outputs or not all(isinstance(guard, str) for guard in guards):
            raise ValueError("a signature without inputs or outputs, or with guards that are not texts")
        return cls(inputs, outputs, guards)

    def fits(self, *records: Any) -> bool:
        """True if the graph is for records like these."""
        if self._unknown_input(records) is not None or self._missing_input(records) is not None:
            return False
        return self.broken_guard(self._arrays(records)) is None

    def feed(self, *records: Any) -> dict[str, np.ndarray]:
        """The graph's inputs from records like those it was traced with; a missing mask hides nothing.

        InputError: a record has an input that the graph does not take, or lacks one that means something.
        """
        if (unknown := self._unknown_input(records)) is not None:
            raise InputError(f"the graph has no input {unknown}, only {', '.join(one.name for one in self.inputs)}")
        if (missing := self._missing_input(records)) is not None:
            raise InputError(f"the graph needs {missing}, which the model computes otherwise without: pass it")
        return self._arrays(records)

    def _unknown_input(self, records: Sequence[Any]) -> str | None:
        """The name of an input of records that the graph does not take."""
        known = {(one.record, one.path) for one in self.inputs}
        for i, record in enumerate(records):
            for field in record.fields:
                value = get(record, field.path)
                if value is None or (i, field.path) in known:
                    continue
                if field.fill is None or (value != field.fill).any():
                    return field.name
        return None

    def _missing_input(self, records: Sequence[Any]) -> str | None:
        """The name of an input that records lack, and that nothing can stand for."""
        for one in self.inputs:
            paths = [field.path for field in records[one.record].fields]
            if one.fill is None and one.path in paths and get(records[one.record], one.path) is None:
                return one.name
        return None

    def _arrays(self, records: Sequence[Any]) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        lengths: dict[Any, int] = {}
        for record in records:
            if hasattr(record, "grid"):  # images have N patches
                lengths["N"] = math.prod(record.grid)
        for one in self.inputs:
            record = records[one.record]
            if all(field.path != one.path for field in record.fields):
                raise ValueError(f"{type(record).__name__} has no field {one.path!r:.100}")
            value = get(record, one.path)
            if value is not None:
                value = planes(value) if one.path == "pixel_values" else value
                found[one.name] = np.ascontiguousarray(value, one.dtype)
                lengths.update(zip(one.dims, found[one.name].shape, strict=True))
        for one in self.inputs:
            if one.name not in found:
                shape = [lengths[n] if isinstance(n, str) else n for n in one.dims]
                if math.prod(shape) > max(array.size for array in found.values()):
                    raise ValueError(f"the input {one.name} {one.dims} is larger than those that are given")
                found[one.name] = np.full(shape, one.fill, one.dtype)
        return found

    def lengths(self, feed: Mapping[str, np.ndarray]) -> dict[str, int]:
        """The lengths that are named in the inputs' dims."""
        found: dict[str, int] = {}
        for one in self.inputs:
            found.update(
                (n, size) for n, size in zip(one.dims, feed[one.name].shape, strict=True) if isinstance(n, str)
            )
        return found

    def broken_guard(self, feed: Mapping[str, np.ndarray]) -> str | None:
        """The fixed shape or the guard that these inputs break, as text; None if they fit the graph."""
        for one in self.inputs:
            if any(isinstance(n, int) and n != found for n, found in zip(one.dims, feed[one.name].shape, strict=True)):
                return f"{one.name} of shape {one.dims}"
        lengths = self.lengths(feed)
        return next((guard for guard in self.guards if not evaluate(guard, lengths)), None)

    def check_outputs(self, feed: Mapping[str, np.ndarray], arrays: Sequence[Any]) -> None:
        """ValueError: outputs are not those of the signature, or are not numbers."""
        lengths = self.lengths(feed)
        for one, array in zip(self.outputs, arrays, strict=True):
            shape = tuple(n if isinstance(n, int) else evaluate(n, lengths) for n in one.dims)
            if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != one.dtype:
                found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
                raise ValueError(f"its output {one.name} is {found}, expected {one.dtype} {shape}")
            if array.dtype.kind == "f" and array.size and np.isnan(array.max()):
                raise ValueError(f"its output {one.name} has values that are not numbers (NaN)")

    def result(self, fn: Callable[..., Any], arrays: Sequence[np.ndarray]) -> Any:
        """The graph's outputs as `fn`, the traced method, returns them: an array or a named tuple."""
        found = {}
        for one, array in zip(self.outputs, arrays, strict=True):
            found[one.name] = array.transpose(0, 2, 3, 1) if one.is_image else array
        cls = typing.get_type_hints(fn)["return"]
        if not (isinstance(cls, type) and hasattr(cls, "_fields")):
            return next(iter(found.values()))
        fields = {name: _field(name, found) for name in cls._fields}  # type: ignore[attr-defined]
        types = typing.get_type_hints(cls)
        if missing := [n for n in fields if fields[n] is None and type(None) not in typing.get_args(types[n])]:
            raise ValueError(f"the graph has no output {missing[0]}, only {', '.join(found)}")
        return cls(**fields)


def _field(name: str, found: Mapping[str, np.ndarray]) -> Any:
    if name in found:
        return found[name]
    return tuple(array for key, array in found.items() if key.startswith(f"{name}.")) or None


def planes(x: np.ndarray) -> np.ndarray:
    return x.transpose(0, 3, 1, 2)
