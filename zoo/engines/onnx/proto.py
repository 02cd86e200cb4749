"""A traced graph in the ONNX format; no other file imports onnx."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedError
from ...optional import pip_install
from ...quant import QuantRows
from .ops.graph import Branch, Made, Node, Recipe, Stored
from .ops.packed import tiles
from .session import Place

if TYPE_CHECKING:
    from .trace import Traced

# For each constant, (file name, offset in bytes) of each of its parts.
Places = Mapping[str, Sequence[tuple[str, int]]]
OPSET, IR = 21, 10
MAX_INLINE_BYTES = 1024  # bytes up to which a constant stays in the graph's own file
ALIGNMENT = 4096  # bytes; a constant in the file beside it begins at a multiple, so that a runtime can map it
# Bytes that are written at a time: Linux maps a row of a table with all that was written with it, up to 2 MB.
PIECE = 64 << 10


def _onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise UnsupportedError(f"onnx is not installed: {pip_install('onnx')}") from None
    return onnx


def model_proto(traced: Traced, inline: bool = True, location: str = "") -> Any:
    """An onnx.ModelProto; if not inline, large constants refer to `location`, a file that `save` writes."""
    onnx = _onnx()
    oh, tensors, places = onnx.helper, [], {} if inline else places_beside(traced)
    for name, stored in traced.constants.items():
        if name in places:
            of = stored.shape, _type(stored.dtype)
            tensors.append(_external(name, *of, location, places[name], nbytes(stored)))
        else:
            tensors.append(onnx.numpy_helper.from_array(stored.array(), name))
    nodes = [_node(n) for n in traced.nodes]
    sides = [
        [oh.make_tensor_value_info(one.name, _type(np.dtype(one.dtype)), list(one.dims)) for one in side]
        for side in (traced.signature.inputs, traced.signature.outputs)
    ]
    domains = {one.domain for n in traced.nodes for one in n.nodes()} | {""}
    opsets = [oh.make_opsetid(domain, OPSET if not domain else 1) for domain in sorted(domains)]
    graph = oh.make_graph(nodes, "zoo", *sides, tensors)
    proto = oh.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="zoo")
    oh.set_model_props(proto, {"zoo": traced.signature.to_json()})
    return proto


def places_beside(traced: Traced) -> dict[str, int]:
    """The first byte of each large constant in the file that `save` writes beside the graph."""
    places, at = {}, 0
    for name, stored in traced.constants.items():
        if nbytes(stored) > MAX_INLINE_BYTES:
            places[name] = at = -(-at // ALIGNMENT) * ALIGNMENT
            at += nbytes(stored)
    return places


def save(traced: Traced, path: str | os.PathLike[str]) -> None:
    path = Path(path)
    location = f"{path.name}.data"
    proto = model_proto(traced, inline=False, location=location)
    with open(path.with_name(location), "wb") as file:
        for name, begin in places_beside(traced).items():
            file.write(b"\0" * (begin - file.tell()))
            stored = traced.constants[name]
            for part in stored.parts:
                if isinstance(part, Made):
                    _write(file, part.array())
                else:
                    for _, rows in tiles([part], None, "") if len(stored.shape) == 2 else [(0, part)]:
                        _write(file, np.ascontiguousarray(rows))
    Recipe.forget()
    path.write_bytes(proto.SerializeToString())


def _write(file: Any, array: np.ndarray) -> None:
    data = array.reshape(-1).view(np.uint8)
    for a in range(0, len(data), PIECE):
        file.write(data[a : a + PIECE].data)


def save_placed(traced: Traced, path: Path, places: Places) -> None:
    """Write the graph; constants with places refer to them, also if they are stored in 16 bits or in several parts."""
    onnx, tensors, nodes = _onnx(), [], []
    for name, of in places.items():
        names = []
        for i, (part, (location, offset)) in enumerate(zip(traced.constants[name].parts, of, strict=True)):
            array = numbers(part)
            assert array is not None
            kind = onnx.TensorProto.BFLOAT16 if array.dtype == np.uint16 else _type(array.dtype)
            stored = name if len(of) == 1 else f"{name}.{i}"
            names.append(stored)
            if array.dtype.itemsize == 2:
                stored = f"{stored}.stored"
                nodes.append(Node("Cast", (stored,), (names[-1],), {"to": np.dtype(np.float32)}))
            tensors.append(_external(stored, array.shape, kind, location, offset, array.nbytes))
        if len(of) > 1:
            nodes.append(Node("Concat", tuple(names), (name,), {"axis": 0}))
    inline = {name: stored for name, stored in traced.constants.items() if name not in places}
    model = model_proto(replace(traced, constants=inline, nodes=(*nodes, *traced.nodes)))
    model.graph.initializer.extend(tensors)
    path.write_bytes(model.SerializeToString())


def without_constants(data: bytes) -> tuple[bytes, dict[str, tuple[str, Place]]]:
    """A graph with its constants of other files as inputs; and for each the file's name and its place there."""
    onnx = _onnx()
    model, places, inline = onnx.load_model_from_string(data), {}, []
    graph = model.graph
    for one in graph.initializer:
        if one.data_location != one.EXTERNAL:
            inline.append(one)
            continue
        where = {entry.key: entry.value for entry in one.external_data}
        wide = one.data_type == one.BFLOAT16
        dtype = np.dtype(np.uint16) if wide else onnx.helper.tensor_dtype_to_np_dtype(one.data_type)
        places[one.name] = where["location"], Place(str(dtype), tuple(one.dims), int(where.get("offset", 0)))
        graph.input.append(onnx.helper.make_tensor_value_info(one.name, one.data_type, list(one.dims)))
    del graph.initializer[:]
    graph.initializer.extend(inline)
    return model.SerializeToString(), places


def contrib_operators(data: bytes) -> list[str]:
    """The operators of a graph, in order, that are not of the ONNX standard."""
    found, waiting = set(), list(_onnx().load_model_from_string(data).graph.node)
    while waiting:
        node = waiting.pop()
        found |= {node.op_type} if node.domain else set()
        waiting += (inner for attribute in node.attribute for inner in attribute.g.node)
    return sorted(found)


def numbers(part: np.ndarray | QuantRows | Made) -> np.ndarray | None:
    """The stored array of a part of a constant, bfloat16 as uint16; None if it is float64, quantised or made later."""
    if isinstance(part, Made):
        return None
    if not isinstance(part, QuantRows):
        return part
    return part.arrays[0] if part.kind.is_plain and part.kind.name != "F64" else None


def _external(name: str, dims: Sequence[int], kind: int, location: str, offset: int, length: int) -> Any:
    onnx = _onnx()
    tensor = onnx.TensorProto(name=name, dims=dims, data_type=kind, data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def nbytes(stored: Stored) -> int:
    return math.prod(stored.shape) * stored.dtype.itemsize


def _node(n: Node) -> Any:
    attributes = {name: _attribute(name, value) for name, value in n.attributes.items()}
    return _onnx().helper.make_node(n.op, n.inputs, n.outputs, name=n.outputs[0], domain=n.domain, **attributes)


def _attribute(name: str, value: Any) -> Any:
    """A NumPy type as the format's number for it, a branch as its graph."""
    if isinstance(value, Branch):
        oh = _onnx().helper
        sides = ([oh.make_tensor_value_info(one, _type(t), dims) for one, t, dims in side] for side in value[1:])
        outputs, inputs = sides
        return oh.make_graph([_node(n) for n in value.nodes], name, inputs, outputs)
    return _type(value) if isinstance(value, np.dtype) else value


def _type(dtype: np.dtype) -> int:
    return _onnx().helper.np_dtype_to_tensor_dtype(dtype)
