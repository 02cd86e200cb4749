"""What a graph takes and gives: how its inputs follow from the records of a model's door, and its outputs from what
`forward` returns.

Names, and the order of axes of images, are those of Hugging Face: input_ids, pixel_values (B, C, Y, X), logits, ...
"""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...inputs import ImageInputs, TextInputs
from .ops.dims import evaluate

VERSION = 1


class Field(NamedTuple):
    """A place in a record that holds an array."""

    path: str
    name: str
    dims: tuple[str, ...]  # by the letters of the record's legend
    dtype: str
    fill: int = 0  # what an absent one is filled with


FIELDS: dict[type, tuple[Field, ...]] = {
    TextInputs: (
        Field("input_ids", "input_ids", ("B", "T"), "int64"),
        Field("inputs_embeds", "inputs_embeds", ("B", "T", "D"), "float32"),
        Field("context.mask", "attention_mask", ("B", "T"), "int64", 1),
        Field("token_type_ids", "token_type_ids", ("B", "T"), "int64"),
        Field("position_ids", "position_ids", ("B", "T"), "int64"),
        Field("context.encoder_states", "encoder_hidden_states", ("C", "M", "E"), "float32"),
        Field("context.encoder_mask", "encoder_attention_mask", ("C", "M"), "int64", 1),
    ),
    ImageInputs: (
        Field("pixel_values", "pixel_values", ("C", "Y", "X", "channels"), "float32"),
        Field("pixel_mask", "pixel_mask", ("C", "Y", "X"), "int64", 1),
        Field("bool_masked_pos", "bool_masked_pos", ("C", "N"), "bool"),
    ),
}


def get(record: Any, path: str) -> Any:
    for name in path.split("."):
        record = getattr(record, name)
    return record


def put(record: Any, path: str, value: Any) -> Any:
    """A copy of a record with another value in one place."""
    name, _, rest = path.partition(".")
    return record._replace(**{name: put(getattr(record, name), rest, value) if rest else value})


@dataclass(frozen=True)
class Input:
    name: str
    dims: tuple[int | str, ...]  # a fixed length, or a name; of images (B, C, Y, X)
    dtype: str
    record: int  # which of the records
    path: str  # where in it
    fill: int = 0


@dataclass(frozen=True)
class Output:
    name: str
    dims: tuple[int | str, ...]  # a fixed length, or an expression of the inputs' names
    dtype: str
    is_image: bool = False  # (B, C, Y, X) in the graph, (B, Y, X, C) in the model


@dataclass(frozen=True)
class Signature:
    """Inputs, outputs, and the guards: what the graph assumes of the lengths, as "T <= 512"."""

    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    guards: tuple[str, ...]

    def to_json(self) -> str:
        return json.dumps({"version": VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Signature:
        raw = json.loads(text)
        if raw["version"] != VERSION:
            raise ValueError(f"version {raw['version']}, expected {VERSION}")
        return cls(
            tuple(Input(**{**i, "dims": tuple(i["dims"])}) for i in raw["inputs"]),
            tuple(Output(**{**o, "dims": tuple(o["dims"])}) for o in raw["outputs"]),
            tuple(raw["guards"]),
        )

    def feed(self, *records: Any) -> dict[str, np.ndarray]:
        """The graph's inputs, of records like those it was traced with; an absent mask hides nothing.

        InputError: a record holds what the graph does not take.
        """
        known = {(one.record, one.path) for one in self.inputs}
        for i, record in enumerate(records):
            for field in FIELDS[type(record)]:
                value = get(record, field.path)
                if value is not None and (i, field.path) not in known and (value != field.fill).any():
                    raise InputError(f"the graph takes no {field.name}, only {', '.join(o.name for o in self.inputs)}")
        found, lengths = {}, {}
        for one in self.inputs:
            value = get(records[one.record], one.path)
            if value is not None:
                value = planes(value) if one.path == "pixel_values" else value
                found[one.name] = np.ascontiguousarray(value, one.dtype)
                lengths.update(zip(one.dims, found[one.name].shape, strict=True))
        for one in self.inputs:
            if one.name not in found:
                shape = [lengths[n] if isinstance(n, str) else n for n in one.dims]
                found[one.name] = np.full(shape, one.fill, one.dtype)
        return found

    def broken(self, feed: Mapping[str, np.ndarray]) -> str | None:
        """What these inputs break of what the graph assumes: a fixed length, or a guard; None for nothing."""
        lengths: dict[str, int] = {}
        for one in self.inputs:
            for n, found in zip(one.dims, feed[one.name].shape, strict=True):
                if isinstance(n, str):
                    lengths[n] = found
                elif n != found:
                    return f"{one.name} of shape {one.dims}"
        return next((guard for guard in self.guards if not evaluate(guard, lengths)), None)

    def result(self, fn: Callable[..., Any], arrays: Sequence[np.ndarray]) -> Any:
        """What `fn`, the method that was traced, returns: its outputs in their order as its record, or its array."""
        found = {}
        for one, array in zip(self.outputs, arrays, strict=True):
            found[one.name] = array.transpose(0, 2, 3, 1) if one.is_image else array
        cls = typing.get_type_hints(fn)["return"]
        if not (isinstance(cls, type) and hasattr(cls, "_fields")):
            return next(iter(found.values()))
        return cls(*(_field(name, found) for name in cls._fields))  # type: ignore[attr-defined]


def _field(name: str, found: Mapping[str, np.ndarray]) -> Any:
    if name in found:
        return found[name]
    return tuple(array for key, array in found.items() if key.startswith(f"{name}.")) or None


def planes(x: np.ndarray) -> np.ndarray:
    return x.transpose(0, 3, 1, 2)
