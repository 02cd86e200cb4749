"""The differences between an export's graphs and the model on NumPy, measured on the written files with inputs of other
sizes than the graphs were traced with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...cache import KVCache
from ...engines.onnx.decoder import OnnxDecoder, crosses
from ...engines.onnx.runner import OpenGraph
from ...engines.onnx.session import Session
from ...engines.onnx.trace import Traced
from ...inputs.heads import CausalLM

STEPS = (4, 1, 2)  # tokens in successive calls of a decoder


class Written:
    """The graphs of a folder, by the methods that they compute."""

    drops_tokens = False

    def __init__(self, files: Mapping[str, tuple[Path, Traced]]):
        self.graphs = {
            method: OpenGraph(traced.signature, Session(path, "CPUExecutionProvider"))
            for method, (path, traced) in files.items()
        }

    def in_place(self, model: Any) -> bool:
        return False

    def graph_of(self, method: str, model: Any, make: Any) -> OpenGraph:
        return self.graphs[method]


def proof(model: Any, files: Mapping[str, tuple[Path, Traced]]) -> dict[str, dict[str, float]]:
    """Output -> its difference from NumPy's: relative in L2, and the largest divided by the root mean square."""
    written = Written(files)
    sizes: Any = {"rows": 3, "length": 19, "size": (128, 96), "padded": True}
    found = {}
    for one in model.graph_methods(1, **sizes):
        found |= _of(one.method, written, *one.records)
    return found if model.step_decoder is None else {**found, **_of_steps(model.step_decoder, written)}


def _of(fn: Any, written: Written, *records: Any) -> dict[str, dict[str, float]]:
    signature, session = written.graphs[f"{type(fn.__self__).__name__}.{fn.__name__}"]
    found, wanted = signature.result(fn, session(signature.feed(*records))), fn(*records)
    if isinstance(wanted, np.ndarray):
        return {signature.outputs[0].name: _figures(found, wanted)}
    pairs = ((name, getattr(found, name), value) for name, value in wanted._asdict().items() if value is not None)
    return {
        (name if isinstance(b, np.ndarray) else f"{name}.{i}"): _figures(x, y)
        for name, a, b in pairs
        for i, (x, y) in enumerate([(a, b)] if isinstance(b, np.ndarray) else zip(a, b, strict=True))
    }


def _of_steps(model: CausalLM, written: Written) -> dict[str, dict[str, float]]:
    rng, rows = np.random.default_rng(1), 2
    steps: Any = OnnxDecoder(model, written)  # type: ignore[arg-type]
    layers, heads, size = model.cache_shape
    whole = KVCache(
        layers, rows, sum(STEPS), heads, size, model.like, shapes=model.cache_shapes
    )  # as the graphs need it
    caches, found, context = [whole, model.new_cache(rows, sum(STEPS))], [], {}
    if crosses(model):
        width = getattr(model.config, model.inputs["encoder_hidden_states"])
        context = {"encoder_hidden_states": rng.normal(size=(rows, 5, width)).astype(np.float32)}
    for count in STEPS:
        ids = rng.integers(0, model.config.vocab_size, (rows, count))
        found.append([one.next_logits(ids, None, c, **context) for one, c in zip((steps, model), caches, strict=True)])
        context = {}
    a, b = (np.stack(side) for side in zip(*found, strict=True))
    return {"logits": _figures(a, b)}


def _figures(found: Any, wanted: np.ndarray) -> dict[str, float]:
    found = np.asarray(found, np.float64)
    hidden = np.isinf(wanted) & (found == wanted)  # logits of -inf, which hide a token in both
    found, wanted = np.where(hidden, 0, found), np.where(hidden, 0, wanted)
    apart = found - wanted
    size = max(float(np.linalg.norm(wanted)), 1e-30)
    largest = float(np.abs(apart).max()) / (size / wanted.size**0.5)
    return {"relative_l2": float(np.linalg.norm(apart)) / size, "largest_of_scale": largest}
