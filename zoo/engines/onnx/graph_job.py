"""Look at an ONNX graph and run it once, with zeros for its weights; the job of a confined process (`guards.child`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnxruntime

# Types of constants beside the graph, which are read as zeros.
EXTERNAL = {
    onnx.TensorProto.FLOAT: np.float32,
    onnx.TensorProto.FLOAT16: np.float16,
    onnx.TensorProto.BFLOAT16: np.uint16,
    onnx.TensorProto.UINT8: np.uint8,
    onnx.TensorProto.INT8: np.int8,
    onnx.TensorProto.INT32: np.int32,
}
GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
TENSORS = (onnx.AttributeProto.TENSOR, onnx.AttributeProto.TENSORS)

Sides = list[tuple[str, str, tuple[Any, ...]]]  # name, dtype, dims


def prepare() -> None:
    """Run a small graph: ONNX Runtime reads files of the system when it first does."""
    make = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Add", ["x", "x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [make("x", 1, ["B"])], [make("y", 1, ["B"])])
    opset = onnx.helper.make_opsetid("", 17)
    _run(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), {"x": np.ones(2, np.float32)})


def check(
    data: bytes, operators: dict[str, list[str]], inputs: Sides, outputs: Sides, file: str, size: int, feeds: Any
) -> bytes:
    """ValueError: the graph is none of zoo's; what else is wrong with it raises or takes too much.

    inputs, outputs: name, type and dims of each.  file, size: of the file that may hold its weights.  feeds: (name,
    type, shape, bytes) of inputs to run it on.
    """
    model = onnx.load_model_from_string(data)
    graph = model.graph
    if len(model.functions) or len(model.training_info) or len(graph.sparse_initializer):
        raise ValueError("it has functions, training or sparse constants, which zoo's graphs have not")
    for node in graph.node:
        if node.op_type not in operators.get(node.domain, ()):
            raise ValueError(
                f"it has the operator {node.domain}{'.' * bool(node.domain)}{node.op_type}, which zoo does not write"
            )
        for attribute in node.attribute:
            if attribute.type in GRAPHS:
                raise ValueError(f"a {node.op_type} has a graph of its own")
            if attribute.type in TENSORS and any(map(_bytes, (attribute.t, *attribute.tensors))):
                raise ValueError(f"a {node.op_type} has constants of its own")
    for name, found, wanted in (("inputs", graph.input, inputs), ("outputs", graph.output, outputs)):
        sides = [(one.name, one.type.tensor_type.elem_type, len(one.type.tensor_type.shape.dim)) for one in found]
        told = [(one, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), len(dims)) for one, dtype, dims in wanted]
        if sides != told:
            raise ValueError(f"its {name} are {sides!r:.200}, and its signature says {told!r:.200}")
    zeros = {one.name: _zeros(one, file, size) for one in graph.initializer if one.data_location == one.EXTERNAL}
    for one in graph.initializer:
        if one.name not in zeros and _bytes(one) > len(data):
            raise ValueError(f"the constant {one.name!r:.100} is larger than the file")
    _run(model, {name: np.frombuffer(part, dtype).reshape(shape) for name, dtype, shape, part in feeds}, zeros)
    return b""


def _bytes(one: Any) -> int:
    return math.prod(one.dims) * onnx.helper.tensor_dtype_to_np_dtype(one.data_type).itemsize if one.data_type else 0


def _zeros(one: Any, file: str, size: int) -> Any:
    """Zeros in place of a constant that is in another file."""
    where = {entry.key: entry.value for entry in one.external_data}
    dtype = EXTERNAL.get(one.data_type)
    if where.get("location") != file or dtype is None or min(one.dims, default=1) < 0:
        raise ValueError(f"the constant {one.name!r:.100} is in {where.get('location')!r:.100}, expected {file}")
    at, count = int(where.get("offset", 0)), int(where.get("length", -1))
    if at < 0 or count != math.prod(one.dims) * np.dtype(dtype).itemsize or at + count > size:
        raise ValueError(f"the constant {one.name!r:.100} has {count} bytes at {at} of {file}, which has {size}")
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(one.dims, dtype), one.data_type)


def _run(model: Any, feeds: dict[str, np.ndarray], zeros: dict[str, Any] | None = None) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4
    options.add_session_config_entry("session.disable_prepacking", "1")
    if zeros:
        options.add_external_initializers(list(zeros), list(zeros.values()))
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    session.run(None, feeds)
