"""Reads the weights of an ONNX file, without onnx: its nodes in order, its float32 constants and its metadata.

Field numbers from onnx.proto (https://github.com/onnx/onnx).
"""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

import numpy as np

from ..errors import CheckpointError
from ..files.protobuf import fields, message, read_varint, text

MAX_NODES, MAX_RANK = 100_000, 8
FLOAT32_TYPE = 1  # onnx.TensorProto.FLOAT


class GraphNode(NamedTuple):
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class OnnxFile(NamedTuple):
    """nodes: in the order of the file.  constants: by the name of an initializer, or of a Constant's or Identity's
    output; those of other types than float32 are left out.
    """

    nodes: list[GraphNode]
    constants: dict[str, np.ndarray]
    metadata: dict[str, str]


def read_onnx(data: bytes, where: object) -> OnnxFile:
    """The content of an ONNX file; CheckpointError for anything else.  where: the file that the message names."""
    try:
        return _model(memoryview(data))
    except (ValueError, IndexError, struct.error) as e:  # UnicodeDecodeError is a ValueError
        raise CheckpointError(f"{where}: not an ONNX file, or a damaged one ({e})") from None


def _model(data: memoryview) -> OnnxFile:
    found = OnnxFile([], {}, {})
    for field, value in fields(data):
        if field == 7:
            _read_graph(message(value), found)
        elif field == 14:
            pair = {key: text(inner) for key, inner in fields(message(value)) if key in (1, 2)}
            found.metadata[pair.get(1, "")] = pair.get(2, "")
    if not found.nodes:
        raise ValueError("it has no graph")
    return found


def _read_graph(data: memoryview, found: OnnxFile) -> None:
    for field, value in fields(data):
        if field == 5:
            name, array = _tensor(message(value))
            if array is not None:
                found.constants[name] = array
        elif field == 1:
            found.nodes.append(_node(message(value), found.constants))
            if len(found.nodes) > MAX_NODES:
                raise ValueError(f"more than {MAX_NODES} nodes")
    for node in found.nodes:
        if node.op == "Identity" and node.inputs[0] in found.constants:
            found.constants[node.outputs[0]] = found.constants[node.inputs[0]]


def _node(data: memoryview, constants: dict[str, np.ndarray]) -> GraphNode:
    op, inputs, outputs, array = "", list[str](), list[str](), None
    for field, value in fields(data):
        if field in (1, 2):
            (inputs if field == 1 else outputs).append(text(value))
        elif field == 4:
            op = text(value)
        elif field == 5:
            for key, inner in fields(message(value)):
                if key == 5:  # a tensor, of a Constant
                    array = _tensor(message(inner))[1]
    if not op or not outputs or (op == "Identity" and not inputs):
        raise ValueError("a node without a type or an output")
    if op == "Constant" and array is not None:
        constants[outputs[0]] = array
    return GraphNode(op, tuple(inputs), tuple(outputs))


def _tensor(data: memoryview) -> tuple[str, np.ndarray | None]:
    """The name and the array of a tensor, None unless it is float32."""
    name, shape, kind, raw, floats = "", list[int](), 0, None, list[Any]()
    for field, value in fields(data):
        if field == 1:
            shape += [value] if isinstance(value, int) else _read_numbers(value)
        elif field == 2 and isinstance(value, int):
            kind = value
        elif field == 4:
            floats.append(message(value))
        elif field == 8:
            name = text(value)
        elif field == 9:
            raw = message(value)
        elif field in (13, 14) and value != 0:
            raise ValueError(f"tensor {name!r} is in another file")
    if kind != FLOAT32_TYPE:
        return name, None
    given = raw if raw is not None else b"".join(floats)
    if len(shape) > MAX_RANK or len(given) != 4 * math.prod(shape):
        raise ValueError(f"tensor {name!r} of shape {shape} has {len(given)} bytes")
    return name, np.frombuffer(given, "<f4").reshape(shape)


def _read_numbers(data: memoryview) -> list[int]:
    found, at = list[int](), 0
    while at < len(data):
        value, at = read_varint(data, at)
        found.append(value)
    return found
