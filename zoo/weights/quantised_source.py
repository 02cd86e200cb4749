"""Reads weights by config.json's `quantization_config`: GPTQ and AWQ are repacked, other methods are refused by name.

Both store a linear layer's matrix, E outputs and D inputs, as four bits q, with a scale and a zero for each group of
inputs: number = (q - zero) * scale.

GPTQ    qweight (D / 8, E) int32: input 8 r + i in bits 4 i of row r.  qzeros (D / g, E / 8) likewise along E, minus
        one in the old format ("gptq"), unchanged in "gptq_v2".  scales (D / g, E).  g_idx (D,): an input's group.
AWQ     qweight (D, E / 8) int32: outputs 8 c + 0, 2, 4, 6, 1, 3, 5, 7 from the lowest bits of column c on; qzeros
        (D / g, E / 8) likewise.  scales (D / g, E).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import CheckpointError, ConfigError, MissingWeightError, UnsupportedError, nearest
from ..quant import QUANT_TYPES, QuantRows
from ..typing import RawTensor
from .mapped import shorten
from .packed_names import QUANT_METHOD
from .source import Source

FIELD = "quantization_config"
BLOCK = 32  # numbers with one scale, in INT4_32 and UINT4_32
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
_STORED_FIELDS = ("qweight", "qzeros", "scales", "g_idx")


class Scheme(NamedTuple):
    """The layout of a method's numbers."""

    group: int  # inputs that share a scale; 0: all
    weights: Callable[[np.ndarray], np.ndarray]  # qweight -> four bits each (E, D) uint8
    zeros: Callable[[np.ndarray], np.ndarray]  # qzeros -> (G, E) uint8
    outputs: Callable[[tuple[int, ...]], int]  # qweight's shape -> E


def as_quantised_source(source: Source, stated: Mapping[str, Any]) -> Source:
    """The source under the names and in the QuantTypes that a model reads; stated: config.json's fields.

    Raises UnsupportedError if the weights are of a method that is not implemented: they would be misread.
    """
    if "compression_config" in stated:
        raise UnsupportedError("compression_config (compressed-tensors) is not implemented")
    config = stated.get(FIELD)
    if config is None:
        return source
    if not isinstance(config, dict):
        raise ConfigError(f"{FIELD} is {shorten(config)}, expected an object")
    method = config.get("quant_method")
    if method in (QUANT_METHOD, "mxfp4"):  # whose tensors say what they are
        return source
    if method is None and any(str(key).startswith("load_in_") for key in config):
        method = "bitsandbytes"
    if not isinstance(method, str) or method not in ("gptq", "awq"):
        raise UnsupportedError(
            f"{FIELD}: quant_method {shorten(method)} is not implemented, only gptq and awq of 4 bits and mxfp4 are"
            f"{nearest(method, ('gptq', 'awq', 'mxfp4')) if isinstance(method, str) else ''}"
        )
    scheme = _gptq(config) if method == "gptq" else _awq(config)
    names = [name.removesuffix(".qweight") for name in source.names() if name.endswith(".qweight")]
    return QuantisedSource(source, names, scheme) if names else source


def _group(config: Mapping[str, Any]) -> int:
    bits, group = config.get("bits", config.get("w_bit")), config.get("group_size", config.get("q_group_size"))
    if bits != 4:
        raise UnsupportedError(f"{FIELD}: bits = {shorten(bits)} is not implemented, only 4 is")
    if type(group) is not int or (group != -1 and not 1 <= group < 1 << 31):
        raise ConfigError(f"{FIELD}: group_size = {shorten(group)}, expected a number of inputs, or -1 for all")
    if config.get("dynamic"):
        raise UnsupportedError(f"{FIELD}: dynamic (settings that differ by layer) is not implemented")
    return max(group, 0)


def _gptq(config: Mapping[str, Any]) -> Scheme:
    form = config.get("checkpoint_format", "gptq")
    if form not in ("gptq", "gptq_v2"):
        raise UnsupportedError(
            f"{FIELD}: checkpoint_format {shorten(form)} is not implemented, only gptq and gptq_v2 are"
        )
    less = np.uint8(form == "gptq")
    return Scheme(
        _group(config),
        weights=lambda q: _nibbles(np.ascontiguousarray(q.T)),
        zeros=lambda z: _nibbles(z) + less,
        outputs=lambda shape: shape[1],
    )


def _awq(config: Mapping[str, Any]) -> Scheme:
    form = str(config.get("version", "gemm")).lower()
    if form != "gemm":
        raise UnsupportedError(f"{FIELD}: version {shorten(form)} of awq is not implemented, only gemm is")

    def columns(q: np.ndarray) -> np.ndarray:
        bits = _nibbles(q).reshape(len(q), -1, 8)
        out = np.empty_like(bits)
        out[..., _AWQ_ORDER] = bits
        return out.reshape(len(q), -1)

    return Scheme(
        _group(config),
        weights=lambda q: np.ascontiguousarray(columns(q).T),
        zeros=columns,
        outputs=lambda shape: shape[1] * 8,
    )


def _nibbles(x: np.ndarray) -> np.ndarray:
    """int32 (A, B) -> (A, 8 B) uint8: eight times four bits of each number, the lowest first."""
    data = np.ascontiguousarray(x).astype("<i4", copy=False).view(np.uint8)
    return np.stack([data & 15, data >> 4], axis=-1).reshape(len(x), -1)


class QuantisedSource:
    """A Source whose matrices NAME.weight are stored as NAME.qweight, .qzeros, .scales and maybe .g_idx."""

    def __init__(self, source: Source, names: list[str], scheme: Scheme):
        self.source, self.scheme, self.files = source, scheme, source.files
        self._own = {f"{name}.weight": name for name in names}
        hidden = {f"{name}.{field}" for name in names for field in _STORED_FIELDS}
        for weight, name in self._own.items():
            if weight in source:
                raise CheckpointError(f"{weight!r} is stored twice: as it is, and as {name + '.qweight'!r}")
        self._names = [n for n in source.names() if n not in hidden] + list(self._own)
        self._made: dict[str, tuple[tuple[int, int], str]] = {}

    def names(self) -> Collection[str]:
        return self._names

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self.source

    def shape(self, name: str) -> tuple[int, ...]:
        return self._parts(name)[0] if name in self._own else self.source.shape(name)

    def dtype(self, name: str) -> str:
        return self._parts(name)[1] if name in self._own else self.source.dtype(name)

    def read(self, name: str) -> RawTensor | QuantRows:
        if name not in self._own:
            return self.source.read(name)
        own = self._own[name]
        shape, kind = self._parts(name)
        zeros, scales = self._zeros_and_scales(own, shape)
        bits = self.scheme.weights(self._array(own, "qweight"))
        if kind == "F32":
            groups = self._groups(own, shape)
            numbers = bits.astype(np.float32)
            numbers -= zeros.T[:, groups]
            numbers *= scales.T[:, groups]
            return RawTensor(numbers, "F32")
        each = shape[1] // len(zeros) // BLOCK
        data = bits[:, 0::2] | bits[:, 1::2] << 4
        fields = [data, np.repeat(scales.T, each, axis=1).astype(np.float16)]
        if kind == "UINT4_32":
            fields.append(np.repeat(zeros.T, each, axis=1))
        return QuantRows(QUANT_TYPES[kind], shape[1], tuple(fields))

    def _parts(self, name: str) -> tuple[tuple[int, int], str]:
        """The shape (E, D) of a matrix, and the QuantType that it is repacked to."""
        if name not in self._made:
            own = self._own[name]
            stored = self.source.shape(f"{own}.qweight")
            if len(stored) != 2:
                raise CheckpointError(f"{own + '.qweight'!r} has shape {stored}, expected a matrix")
            outputs = self.scheme.outputs(stored)
            shape = outputs, stored[0] * stored[1] * 8 // max(outputs, 1)
            self._made[name] = shape, self._kind(own, shape)
        return self._made[name]

    def _kind(self, own: str, shape: tuple[int, int]) -> str:
        """INT4_32 if all zeros are 8; F32 if groups are not whole blocks, or inputs are reordered; else UINT4_32."""
        zeros, scales = self._zeros_and_scales(own, shape)
        groups, inputs = len(zeros), shape[1]
        even = inputs % (groups * BLOCK) == 0 and np.array_equal(
            self._groups(own, shape), np.arange(inputs) // (inputs // groups)
        )
        with np.errstate(over="ignore"):
            exact = np.array_equal(scales.astype(np.float16), scales)
        if not even or (not exact and np.isfinite(scales).all()):
            return "F32"
        return "INT4_32" if (zeros == 8).all() else "UINT4_32"

    def _groups(self, own: str, shape: tuple[int, int]) -> np.ndarray:
        """(D,): each input's group."""
        count = -(-shape[1] // (self.scheme.group or max(shape[1], 1)))
        if f"{own}.g_idx" not in self.source:
            return np.arange(shape[1]) // (self.scheme.group or shape[1])
        found = self._array(own, "g_idx")
        if found.shape != (shape[1],) or (found.size and not 0 <= found.min() <= found.max() < count):
            raise CheckpointError(
                f"{own + '.g_idx'!r} has shape {found.shape}, expected ({shape[1]},) with groups below {count}"
            )
        return found

    def _zeros_and_scales(self, own: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """The zeros and the scales, each (G, E)."""
        groups = -(-shape[1] // (self.scheme.group or max(shape[1], 1)))
        zeros = self.scheme.zeros(self._array(own, "qzeros"))
        stored = self.source.read(f"{own}.scales")
        if isinstance(stored, QuantRows) or stored.dtype not in ("F16", "F32", "BF16"):
            raise CheckpointError(f"{own + '.scales'!r} must be F16, F32 or BF16")
        for field, array in (("qzeros", zeros), ("scales", stored.array)):
            if array.shape != (groups, shape[0]):
                raise CheckpointError(
                    f"{own}.{field} unpacks to {array.shape}, expected {(groups, shape[0])} for {shape} in groups of "
                    f"{self.scheme.group or shape[1]}"
                )
        scales = QuantRows(QUANT_TYPES[stored.dtype], shape[0], (stored.array,)).dequantise()
        if not np.isfinite(scales).all():
            raise CheckpointError(f"{own + '.scales'!r} holds NaN or infinity")
        return zeros, scales

    def _array(self, own: str, field: str) -> np.ndarray:
        name = f"{own}.{field}"
        if name not in self.source:
            raise MissingWeightError(
                f"{own + '.qweight'!r} is there, but {name!r} is missing{nearest(name, self.source.names())}"
            )
        stored = self.source.read(name)
        if isinstance(stored, QuantRows) or stored.dtype not in ("I32", "U32") or stored.array.ndim not in (1, 2):
            raise CheckpointError(f"{name!r} must be a matrix of 32-bit integers")
        if not stored.array.size:
            raise CheckpointError(f"{name!r} is empty")
        return stored.array if field == "g_idx" else stored.array.reshape(len(stored.array), -1)
