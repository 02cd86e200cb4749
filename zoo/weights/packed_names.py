"""Quantised matrices in a safetensors file: the fields of `NAME` are the tensors `NAME.KIND.FIELD`.

A checkpoint that zoo quantised is a safetensors file, `model.packed.safetensors`: in it `x.weight` of the kind INT4_32
(see `zoo.quant.kinds` for the layout) is stored as `x.weight.INT4_32.data` and `x.weight.INT4_32.scale`; other
tensors have their own names.  `quantization_config` in config.json has the method "zoo", and the file's name keeps
other libraries from reading it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ..errors import CheckpointError, MissingWeightError, nearest
from ..quant import QUANT_TYPES, QuantRows, QuantType
from ..typing import Array, RawTensor
from .source import Source, stored_arrays

QUANT_METHOD = "zoo"  # the value in `quantization_config`

# NumPy's name of a field's type -> that of safetensors.
_TYPES = {"int8": "I8", "uint8": "U8", "uint16": "U16", "float16": "F16", "float32": "F32"}
_NAME = re.compile(r"(.+)\.([A-Z]+[0-9]*[0-9A-Z_]*)\.([a-z_]+)")


def stored_fields(name: str, rows: QuantRows) -> Iterator[tuple[str, str, Array]]:
    """Yield (tensor, element type, array) for each field of a quantised matrix."""
    for field, array in zip(rows.kind.fields, rows.in_order().arrays, strict=True):
        yield f"{name}.{rows.kind.name}.{field.name}", _TYPES[field.dtype], array


def with_packed_tensors(source: Source) -> Source:
    """The source, with the fields of each quantised matrix as one tensor."""
    found: dict[str, QuantType] = {}
    for name in source.names():
        match = _NAME.fullmatch(name)
        kind = QUANT_TYPES.get(match[2]) if match else None
        if match and kind and not kind.is_plain and found.setdefault(match[1], kind) is not kind:
            raise CheckpointError(f"{match[1]!r} is stored both as {found[match[1]].name} and as {kind.name}")
    return PackedSource(source, found) if found else source


class PackedSource:
    """A Source with quantised matrices that are stored as their fields."""

    def __init__(self, source: Source, kinds: dict[str, QuantType]):
        """kinds: name -> QuantType of each quantised matrix."""
        self.source, self.kinds, self.files = source, kinds, source.files
        fields = {f"{name}.{kind.name}.{field.name}": name for name, kind in kinds.items() for field in kind.fields}
        for stored, name in fields.items():
            if stored not in source:
                raise CheckpointError(f"{name!r} is stored as {kinds[name].name}, but {stored!r} is missing")
            if name in source:
                raise CheckpointError(f"{name!r} is stored twice: as {kinds[name].name}, and as it is")
        self._names = list(dict.fromkeys(fields.get(name, name) for name in source.names()))

    def names(self) -> Collection[str]:
        return self._names

    def __contains__(self, name: object) -> bool:
        return name in self.kinds or name in self.source

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape; of a quantised matrix with the columns that fill up its last block."""
        kind = self.kinds.get(name)
        if kind is None:
            return self.source.shape(name)
        shape = self.source.shape(f"{name}.{kind.name}.{kind.fields[0].name}")
        if len(shape) != 2:
            raise CheckpointError(f"{name!r} ({kind.name}) has shape {shape}, expected a matrix")
        return shape[0], shape[1] // kind.fields[0].per_block * kind.block  # QuantRows.check finds missing columns

    def dtype(self, name: str) -> str:
        return self.kinds[name].name if name in self.kinds else self.source.dtype(name)

    def read(self, name: str) -> RawTensor | QuantRows:
        kind = self.kinds.get(name)
        if kind is None:
            if name not in self.source:
                raise MissingWeightError(f"no tensor {name!r}{nearest(name, self._names)}")
            return self.source.read(name)
        fields = (self.source.read(f"{name}.{kind.name}.{field.name}") for field in kind.fields)
        return QuantRows(kind, self.shape(name)[1], tuple(array for field in fields for array in stored_arrays(field)))
