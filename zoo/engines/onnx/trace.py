"""Tracing: a model's method is called with symbolic arrays, which record a graph.

    traced = trace(model.forward, model.tokens(ids, mask))
    traced.save("model.onnx")

Shapes: letters of the legends of `zoo.inputs`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...inputs import ImageInputs, ImageModel, TextInputs
from ...nn import CacheLast, Module, leaves, map_leaves
from ...typing import RecordField
from .ops.dims import Dim, text_of
from .ops.graph import GraphBuilder, Node, Stored
from .ops.symbol import BOOL, INT, Symbol, constant
from .signature import GraphInput, GraphOutput, Signature, get, put

NO_IMAGES = (
    "intermediate_hidden_states",
    "pred_masks",
    "masks_queries_logits",
    "out_masks",
)  # outputs with four axes, as they are in transformers


@dataclass(frozen=True)
class Traced:
    """A graph: nodes in the order of execution, the constants that they use, and its inputs and outputs."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Stored]
    signature: Signature
    standard: bool

    def proto(self, inline: bool = True) -> Any:
        """An onnx.ModelProto; without the large constants, which stay arrays, if not inline."""
        from .proto import model_proto

        return model_proto(self, inline)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write PATH, and PATH.data with the large constants beside it."""
        from .proto import save

        save(self, path)


def trace(
    fn: Callable[..., Any],
    *records: Any,
    output: str = "logits",
    any_size: bool = False,
    standard: bool = False,
    precision: Any = None,
    masks: bool = True,
    on_cpu: bool = False,
) -> Traced:
    """The graph of `fn`, a model's method that takes TextInputs or ImageInputs: `model.forward`, `model.encode`, ...

    records: its arguments, as the model's input checks return them; the graph also takes masks and token types that are
    None here.  Batch size and number of tokens are dynamic, the size of images too if the model takes any, or with
    any_size.  output: the name of the output if `fn` returns one array.  standard: only operators of the ONNX standard.
    precision, on_cpu: see `GraphBuilder`.  masks: False leaves out masks of images that are None.
    """
    model = fn.__self__  # type: ignore[attr-defined]
    graph = GraphBuilder(standard, precision, on_cpu)
    symbolic = as_symbols(graph, model)
    inputs: list[GraphInput] = []
    given, readers = [], symbolic.readers
    for i, record in enumerate(records):
        reader = next((one for one in readers if one.record is type(record)), symbolic)
        readers = [one for one in readers if one is not reader]
        taken = _standard_inputs(reader, record) if masks or isinstance(record, TextInputs) else set()
        given.append(_symbolic(graph, symbolic, reader, record, i, any_size, inputs, taken))
    found = fn.__func__(symbolic, *given)  # type: ignore[attr-defined]
    is_image = isinstance(model, ImageModel)
    return finish(graph, inputs, [_output(*named, is_image) for named in _name_outputs(found, output)])


def finish(
    graph: GraphBuilder, inputs: list[GraphInput], outputs: list[tuple[str, Symbol, bool]], direct: bool = False
) -> Traced:
    """The part of the recorded graph that the outputs (name, array, is_image) depend on.

    direct: the nodes that make them write to them, where an Identity would copy.
    """
    nodes = [Node("Identity", (array.name,), (name,), {}) for name, array, _ in outputs]
    if direct:
        names, nodes = {array.name: name for name, array, _ in outputs}, []
        graph.nodes[:] = [n._replace(outputs=tuple(names.get(one, one) for one in n.outputs)) for n in graph.nodes]
    used, kept = {name if direct else array.name for name, array, _ in outputs}, []
    for node in reversed(graph.nodes):
        if used.intersection(node.outputs):
            kept.append(node)
            used.update(name for one in node.nodes() for name in one.inputs)
    described = tuple(
        GraphOutput(
            name, tuple(text_of(n) if isinstance(n, Dim) else n for n in array.shape), str(array.dtype), is_image
        )
        for name, array, is_image in outputs
    )
    constants = {name: stored for name, stored in graph.constants.items() if name in used}
    signature = Signature(tuple(inputs), described, tuple(graph.guards))
    return Traced((*reversed(kept), *nodes), constants, signature, graph.standard)


def as_symbols(graph: GraphBuilder, model: Module) -> Any:
    """A copy of a model with its arrays replaced by the graph's constants, named by their paths."""
    for path, array in leaves(model):
        graph.names.setdefault(id(array), path)
    as_constant: Any = partial(constant, graph)
    symbolic: Any = map_leaves(as_constant, model, quantised=as_constant)
    _forget(symbolic, set())
    return symbolic


def _forget(node: Any, seen: set[int]) -> None:
    """Empty every memo of a copied model: its entries are for one size."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, CacheLast):
        node._latest = node.max_elements = None
    elif isinstance(node, (list, tuple)):
        for child in node:
            _forget(child, seen)
    elif isinstance(node, Module):
        for child in vars(node).values():
            _forget(child, seen)


def _symbolic(
    graph: GraphBuilder,
    model: Any,
    reader: Any,
    record: Any,
    index: int,
    any_size: bool,
    inputs: list[GraphInput],
    taken: set[str],
) -> Any:
    """A copy of a record with its arrays replaced by inputs of the graph.

    reader: the model's part for it.  taken: inputs that the graph has even if they are None in the record.
    """
    of_images = isinstance(record, ImageInputs)
    # A name in small letters is that of a fixed length, such as "channels"; D, E and P are widths of the model.
    fixed = {"D", "E", "P", *(n for field in record.fields for n in field.dims if n.islower())}
    if of_images and not (any_size or reader.any_size):
        fixed |= {"Y", "X", "N"}
    # Images are counted as rows, unless a decoder's texts share them or they are compared with any number of texts.
    letters = {"C": "B"} if of_images and reader is model else {}
    if isinstance(record, TextInputs) and reader is getattr(model, "encoder", None):
        letters = {"B": "C", "T": "M"}
    lengths: dict[str, int] = {}
    for field in record.fields:
        array = get(record, field.path)
        if array is not None:
            lengths.update(zip(field.dims, array.shape, strict=True))
        elif field.name not in taken:
            continue
        name = f"decoder_{field.name}" if reader is getattr(model, "decoder", None) else field.name
        shape = {n: (lengths[n] if n in fixed else letters.get(n, n), lengths[n]) for n in field.dims}
        record = put(record, field.path, _input(graph, inputs, field._replace(name=name), shape, index))
    if isinstance(record, ImageInputs):
        return record._replace(grid=reader.grid(record.pixel_values))
    return _place_rows(graph, reader, record) if isinstance(record, TextInputs) else record


def _standard_inputs(reader: Any, record: Any) -> set[str]:
    """The inputs that a graph has even if they are None in the record: masks and token types."""
    if not isinstance(record, TextInputs):
        return {"pixel_mask", "attention_mask"}.intersection(getattr(reader, "inputs", ()))
    found = {"attention_mask"}
    if "token_type_ids" in reader.inputs and reader.config.type_vocab_size > 1:
        found.add("token_type_ids")
    if record.context.encoder_states is not None:
        found.add("encoder_attention_mask")
    return found


def _input(
    graph: GraphBuilder,
    inputs: list[GraphInput],
    field: RecordField,
    shape: dict[str, tuple[int | str, int]],
    index: int,
) -> Symbol:
    """An input of the graph.  shape: letter -> (its name or a fixed length, its length in the trace)."""
    turned = field.path == "pixel_values"
    dims = [shape[field.dims[i]] for i in ((0, 3, 1, 2) if turned else range(len(field.dims)))]
    inputs.append(GraphInput(field.name, tuple(n for n, _ in dims), field.dtype, index, field.path, field.fill))
    lengths = [n if isinstance(n, int) else graph.input_dim(n, hint, field.name, i) for i, (n, hint) in enumerate(dims)]
    array = Symbol(graph, field.name, lengths, np.dtype(field.dtype))
    if turned:
        return array.transpose(0, 2, 3, 1)
    return array.to(BOOL) if field.fill or field.dtype == "bool" else array


def _place_rows(graph: GraphBuilder, model: Any, t: TextInputs) -> TextInputs:
    """TextInputs without a cache: each row begins at 0 and has at most max_positions tokens."""
    if t.position_ids is None:
        graph.guard(t.shape[1], "<=", model.max_positions)
    start = None if t.context.start is None else constant(graph, np.zeros(1, INT))
    return t._replace(context=t.context._replace(start=start), length=t.shape[1])


def _name_outputs(found: Any, output: str) -> list[tuple[str, Symbol]]:
    """(name, array) for each array that a method returned."""
    if isinstance(found, Symbol):
        return [(output, found)]
    named = []
    for name, value in found._asdict().items():
        if isinstance(value, Symbol):
            named.append((name, value))
        elif value is not None:
            named += [(f"{name}.{i}", one) for i, one in enumerate(value)]
    return named


def _output(name: str, array: Symbol, of_images: bool) -> tuple[str, Symbol, bool]:
    is_image = of_images and array.ndim == 4 and name.partition(".")[0] not in NO_IMAGES
    return name, array.transpose(0, 3, 1, 2) if is_image else array, is_image
