"""The precision int8 for a model's method: which channels of its products' inputs stand out is seen on samples."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np

from ...inputs import ImageInputs, TextModel
from ...inputs.causal import CausalLM
from ...nn import Module, leaves
from ...quant import QuantTensor
from .ops.quantised import Choice, Int8, Observer, choice
from .ops.symbol import Symbol
from .proto import nbytes
from .session import Session
from .trace import trace

ROWS, TOKENS = 4, 64  # of the texts that products are seen on
COARSE = 8  # squares along an edge of the images


def precision_of(model: Module, weights: str | None) -> str:
    """The precision of a model's products, by what was asked for and by what its matrices are stored as."""
    kinds = {part.kind.name for _, leaf in leaves(model) if isinstance(leaf, QuantTensor) for part in leaf.parts}
    return "int8" if weights == "int8" or "INT8" in kinds else "float32"


def int8(fn: Callable[..., Any], *records: Any, exact: bool = False) -> Int8:
    """A precision for `trace(fn, *records, precision=...)`; records are as those that the graph is traced with.

    exact: the graph is for processors such as `has_exact_sums` finds; else for any.
    """
    rng = np.random.default_rng(0)
    sampled = [_sample(fn.__self__, record, rng, ROWS if len(records) == 1 else None) for record in records]  # type: ignore[attr-defined]
    return Int8(_choices(fn, sampled), exact)


def of_steps(model: CausalLM, exact: bool = False) -> Int8:
    """The same for a decoder's steps; of one that looks at an encoder's states, each product alike."""
    if "encoder_hidden_states" in model.inputs:
        return Int8({}, exact)
    ids = np.zeros((1, 1), np.int64)
    return int8(model.forward, model.tokens(ids), exact=exact)


def has_exact_sums() -> bool:
    """Whether this processor adds products of int8 without cutting off: with VNNI, or if it is no x86."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as features  # type: ignore[import-not-found]
    except ImportError:
        return False
    return bool(features.get("AVX512VNNI") or features.get("NEON") or features.get("ASIMD"))


def _choices(fn: Any, records: Sequence[Any]) -> dict[str, Choice]:
    """By the names of weights."""
    observer = Observer()

    def inputs(model: Any, *given: Any) -> Symbol:
        observer.seen.clear()
        fn.__func__(model, *given)
        flat = [rows.reshape(-1) for _, rows in observer.seen]
        return flat[0].new("Concat", flat, (sum(one.shape[0] for one in flat),), axis=0)

    traced = trace(MethodType(inputs, fn.__self__), *records, precision=observer)
    with tempfile.TemporaryDirectory(prefix="zoo-int8-") as folder:
        path = Path(folder) / "observed.onnx"
        traced.save(path)
        weight_bytes = sum(nbytes(stored) for stored in traced.constants.values())
        (flat,) = Session(path, "CPUExecutionProvider", None, weight_bytes)(traced.signature.feed(*records))
    seen: dict[str, list[np.ndarray]] = {}
    for name, rows in observer.seen:
        shape = [int(n) for n in rows.shape]  # of the records that were traced: they are these
        seen.setdefault(name, []).append(flat[: shape[0] * shape[1]].reshape(shape))
        flat = flat[shape[0] * shape[1] :]
    return {name: choice(np.concatenate(rows)) for name, rows in seen.items()}


def _sample(model: Any, record: Any, rng: np.random.Generator, rows: int | None) -> Any:
    """Random texts or images in place of a record; as many texts as it has, or `rows`."""
    if isinstance(record, ImageInputs):
        rows, *size, channels = record.pixel_values.shape
        ys, xs = (np.arange(n) * COARSE // n for n in size)
        coarse = rng.normal(size=(rows, COARSE, COARSE, channels))[:, ys[:, None], xs]
        return record._replace(pixel_values=(coarse + rng.normal(size=coarse.shape) / 4).astype(np.float32))
    if record.input_ids is None or record.cache is not None or record.context.encoder_states is not None:
        return record
    texts = model if isinstance(model, TextModel) else model.decoder  # whose encoder reads images
    length = min(TOKENS, texts.max_positions)
    return texts.tokens(rng.integers(0, texts.config.vocab_size, (rows or record.shape[0], length)))
