"""The precision int8 for a model's method: random inputs show which channels of a product's input are outliers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import numpy as np

from ...files.leftovers import temporary_folder
from ...inputs import TextInputs
from ...inputs.heads import CausalLM
from ...nn import Module, leaves
from ...quant import QuantTensor
from .cache import save_beside
from .ops.packed import VNNI, processor_has
from .ops.quantised import Int8, Observer, ProductPlan, plan_for
from .session import Session
from .trace import trace

ROWS, TOKENS = 4, 64  # the size of the random texts


def precision_of(model: Module, weights: str | None) -> str:
    """The precision of a model's products: what `weights` asks for, or int8 if its matrices are stored so."""
    parts = [part for _, leaf in leaves(model) if isinstance(leaf, QuantTensor) for part in leaf.parts]
    return weights or (
        "int8" if {part.kind.name for part in parts if not part.kind.is_plain} == {"INT8"} else "float32"
    )


def int8(fn: Callable[..., Any], *records: Any, exact: bool = False, shares_scale: bool = False) -> Int8:
    """The precision for `trace(fn, *records, precision=...)`, with the same records.

    exact: the graph may need a processor for which `has_exact_sums` is True; else it fits any.
    shares_scale: see `plan_for`.
    """
    sampled = _samples(fn.__self__, records)  # type: ignore[attr-defined]
    return Int8(_plans(fn, sampled, shares_scale), exact)


def of_steps(model: CausalLM, exact: bool = False) -> Int8:
    """The precision int8 for a decoder's steps; a decoder with cross-attention treats all its products alike."""
    if "encoder_hidden_states" in model.inputs:
        return Int8({}, exact)
    ids = np.zeros((1, 1), np.int64)
    return int8(model.forward, model.tokens(ids), exact=exact)


def has_exact_sums() -> bool:
    """Return True if this processor adds int8 products without saturation: it has VNNI, or is not an x86."""
    return processor_has(VNNI, "NEON", "ASIMD")


def _plans(fn: Any, records: Sequence[Any], shares_scale: bool) -> dict[str, ProductPlan]:
    """The plan of each product, by the name of its weight."""
    observer = Observer()

    def inputs(model: Any, *given: Any) -> Any:
        observer.seen.clear()
        made = fn.__func__(model, *given)
        if not observer.seen:
            return made
        flat = [rows.reshape(-1) for _, rows in observer.seen]
        return flat[0].new("Concat", flat, (sum(one.shape[0] for one in flat),), axis=0)

    traced = trace(MethodType(inputs, fn.__self__), *records, precision=observer)
    if not observer.seen:  # the comparison of two encoders' vectors multiplies by no weight
        return {}
    with temporary_folder() as folder:
        path = folder / "observed.onnx"
        base, _ = save_beside(traced, path, "outliers")
        run = Session(path if base is None else path.read_bytes(), "CPUExecutionProvider", base, once=True)
        (flat,) = run(traced.signature.feed(*records))
        del run  # Windows removes no file that it has mapped
    seen: dict[str, list[np.ndarray]] = {}
    for name, rows in observer.seen:
        shape = [int(n) for n in rows.shape]  # the trace saw the same records
        seen.setdefault(name, []).append(flat[: shape[0] * shape[1]].reshape(shape))
        flat = flat[shape[0] * shape[1] :]
    return {name: plan_for(np.concatenate(rows), shares_scale) for name, rows in seen.items()}


def _samples(model: Any, records: Sequence[Any]) -> list[Any]:
    """Random records like those that are given; one of texts alone gets more and longer rows.

    Texts keep their length where a record that stays as it is shares it, such as boxes of a text's tokens.
    """
    found, readers, samplers = list(records), model.readers, dict[int, Any]()
    for i, record in enumerate(records):
        reader = next((one for one in readers if one.record is type(record)), None)
        readers = [one for one in readers if one is not reader]
        if reader is not None and _is_drawn(record):
            samplers[i] = reader
    others = [one for i, one in enumerate(records) if i not in samplers and not isinstance(one, TextInputs)]
    keeps = any("T" in field.dims for record in others for field in record.fields)
    for i, reader in samplers.items():
        length = records[i].shape[1] if keeps and isinstance(records[i], TextInputs) else TOKENS
        found[i] = _sample(reader, records[i], len(records) == 1, length)
    return found


def _is_drawn(record: Any) -> bool:
    """False for a step of a decoder, and for embeddings in place of tokens."""
    if not isinstance(record, TextInputs):
        return True
    return record.input_ids is not None and record.cache is None and record.context.encoder_states is None


def _sample(reader: Any, record: Any, alone: bool, length: int) -> Any:
    first = next(value for value in record if hasattr(value, "shape"))
    rows, size = (ROWS if alone and isinstance(record, TextInputs) else first.shape[0]), tuple(first.shape[1:3])
    arguments = reader.example(rows=rows, length=length, size=size)
    if getattr(reader, "any_size", True) is False and size != reader.config.image:
        arguments["interpolate_pos_encoding"] = True
    return reader.records(**arguments)[0]
