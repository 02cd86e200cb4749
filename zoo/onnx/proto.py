"""A traced graph in the ONNX format.  The one place that imports onnx."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UnsupportedError
from ..ops.on_onnx.graph import Stored

if TYPE_CHECKING:
    from .trace import Traced

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
        tensor = onnx.TensorProto(name=name, dims=stored.shape, data_type=_type(stored.dtype))
        tensor.data_location = onnx.TensorProto.EXTERNAL
        at = -(-at // ALIGNED) * ALIGNED
        for key, value in (("location", location), ("offset", at), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        tensors.append(tensor)
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
