"""A traced graph in the ONNX format.  The one place that imports onnx."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedError
from ...quant import QuantRows
from .ops.graph import Node, Stored

if TYPE_CHECKING:
    from .trace import Traced

# Of a constant: where each of its parts lies, the name of a file and an offset in bytes.
Places = Mapping[str, Sequence[tuple[str, int]]]
OPSET, IR = 21, 10
SMALL = 1024  # bytes up to which a constant stays in the graph's own file
ALIGNED = 4096  # bytes; where a constant begins in the file beside it, so that a runtime can map it


def _onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise UnsupportedError("onnx is not installed: install zoo with its extra 'onnx'") from None
    return onnx


def model_proto(traced: Traced, inline: bool = True, location: str = "") -> Any:
    """An onnx.ModelProto; if not inline, large constants are said to lie in `location`, a file that `save` writes."""
    onnx = _onnx()
    oh, tensors, at = onnx.helper, [], 0
    for name, stored in traced.constants.items():
        size = nbytes(stored)
        if inline or size <= SMALL:
            tensors.append(onnx.numpy_helper.from_array(stored.array(), name))
            continue
        at = -(-at // ALIGNED) * ALIGNED
        tensors.append(_external(name, stored.shape, _type(stored.dtype), location, at, size))
        at += size
    nodes = [
        oh.make_node(n.op, n.inputs, n.outputs, name=n.outputs[0], domain=n.domain, **n.attributes)
        for n in (_typed(n) for n in traced.nodes)
    ]
    sides = [
        [oh.make_tensor_value_info(one.name, _type(np.dtype(one.dtype)), list(one.dims)) for one in side]
        for side in (traced.signature.inputs, traced.signature.outputs)
    ]
    domains = {n.domain for n in traced.nodes} | {""}
    opsets = [oh.make_opsetid(domain, OPSET if not domain else 1) for domain in sorted(domains)]
    graph = oh.make_graph(nodes, "zoo", *sides, tensors)
    proto = oh.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="zoo")
    oh.set_model_props(proto, {"zoo": traced.signature.to_json()})
    return proto


def save(traced: Traced, path: str | os.PathLike[str]) -> None:
    path = Path(path)
    location = f"{path.name}.data"
    proto = model_proto(traced, inline=False, location=location)
    with open(path.with_name(location), "wb") as file:
        for stored in traced.constants.values():
            if nbytes(stored) > SMALL:
                file.write(b"\0" * (-file.tell() % ALIGNED))
                for part in stored.parts:
                    file.write(Stored((part,)).array().data)
    path.write_bytes(proto.SerializeToString())


def save_placed(traced: Traced, path: Path, places: Places) -> None:
    """Write PATH alone: constants that have places are said to lie there, as 16-bit numbers or in parts if they do."""
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


def numbers(part: np.ndarray | QuantRows) -> np.ndarray | None:
    """The array that a part of a constant is, bfloat16 as uint16; None where it is not one of numbers as they are."""
    if not isinstance(part, QuantRows):
        return part
    return part.arrays[0] if part.kind.plain and part.kind.name != "F64" else None


def _external(name: str, dims: Sequence[int], kind: int, location: str, offset: int, length: int) -> Any:
    onnx = _onnx()
    tensor = onnx.TensorProto(name=name, dims=dims, data_type=kind, data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def nbytes(stored: Stored) -> int:
    count = 1
    for n in stored.shape:
        count *= n
    return count * stored.dtype.itemsize


def _typed(node: Any) -> Any:
    """Attributes as the format has them: a NumPy type is a number of its own."""
    attributes = {k: _type(v) if isinstance(v, np.dtype) else v for k, v in node.attributes.items()}
    return node._replace(attributes=attributes)


def _type(dtype: np.dtype) -> int:
    return _onnx().helper.np_dtype_to_tensor_dtype(dtype)
