"""The precision int8 for a model's method: random inputs show which channels of a product's input are outliers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np

from ...inputs import ImageInputs, TextInputs, TextModel
from ...inputs.causal import CausalLM
from ...nn import Module, leaves
from ...quant import QuantTensor
from .cache import save_beside
from .ops.packed import VNNI, processor_has
from .ops.quantised import Int8, Observer, ProductPlan, plan_for
from .session import Session
from .trace import trace

ROWS, TOKENS = 4, 64  # of the random texts
COARSE = 8  # squares along an edge of the random images


def precision_of(model: Module, weights: str | None) -> str:
    """The precision of a model's products: what `weights` asks for, or int8 if its matrices are stored so."""
    parts = [part for _, leaf in leaves(model) if isinstance(leaf, QuantTensor) for part in leaf.parts]
    return weights or ("int8" if {part.kind.name for part in parts if not part.kind.plain} == {"INT8"} else "float32")


def int8(fn: Callable[..., Any], *records: Any, exact: bool = False, cheap: bool = False) -> Int8:
    """The precision for `trace(fn, *records, precision=...)`, with the same records.

    exact: the graph may need a processor for which `has_exact_sums` is True; else it fits any.  cheap: see
    `plan_for`.
    """
    rng = np.random.default_rng(0)
    sampled = [_sample(fn.__self__, record, rng, ROWS if len(records) == 1 else None) for record in records]  # type: ignore[attr-defined]
    return Int8(_plans(fn, sampled, cheap), exact)


def of_steps(model: CausalLM, exact: bool = False) -> Int8:
    """The precision int8 for a decoder's steps; a decoder with cross-attention treats all its products alike."""
    if "encoder_hidden_states" in model.inputs:
        return Int8({}, exact)
    ids = np.zeros((1, 1), np.int64)
    return int8(model.forward, model.tokens(ids), exact=exact)


def has_exact_sums() -> bool:
    """Return True if this processor adds int8 products without saturation: it has VNNI, or is not an x86."""
    return processor_has(VNNI, "NEON", "ASIMD")


def has_cheap_products() -> bool:
    """Return True if products in int8 cost little beside what surrounds them: with AMX, on Linux."""
    try:
        return "amx_int8" in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _plans(fn: Any, records: Sequence[Any], cheap: bool) -> dict[str, ProductPlan]:
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
    with tempfile.TemporaryDirectory(prefix="zoo-int8-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "observed.onnx"
        base, _ = save_beside(traced, path, "outliers")
        run = Session(path if base is None else path.read_bytes(), "CPUExecutionProvider", base, once=True)
        (flat,) = run(traced.signature.feed(*records))
        del run  # Windows removes no file that it has mapped
    seen: dict[str, list[np.ndarray]] = {}
    for name, rows in observer.seen:
        shape = [int(n) for n in rows.shape]  # the trace saw the same records
        seen.setdefault(name, []).append(flat[: shape[0] * shape[1]].reshape(shape))
        flat = flat[shape[0] * shape[1] :]
    return {name: plan_for(np.concatenate(rows), cheap) for name, rows in seen.items()}


def _sample(model: Any, record: Any, rng: np.random.Generator, rows: int | None) -> Any:
    """A random TextInputs or ImageInputs like `record`; rows: the number of texts, by default the record's own."""
    if isinstance(record, ImageInputs):
        rows, *size, channels = record.pixel_values.shape
        ys, xs = (np.arange(n) * COARSE // n for n in size)
        coarse = rng.normal(size=(rows, COARSE, COARSE, channels))[:, ys[:, None], xs]
        return record._replace(pixel_values=(coarse + rng.normal(size=coarse.shape) / 4).astype(np.float32))
    if (
        not isinstance(record, TextInputs)
        or record.input_ids is None
        or record.cache is not None
        or record.context.encoder_states is not None
    ):
        return record
    texts = model.reader(TextModel)
    length = min(TOKENS, texts.max_positions)
    return texts.tokens(rng.integers(0, texts.config.vocab_size, (rows or record.shape[0], length)))
