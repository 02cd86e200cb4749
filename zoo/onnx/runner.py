"""A model by ONNX Runtime: what passes its door goes through graphs that were traced from its own file.

The model has its weights as NumPy has them, and all that is checked is checked as ever.  A graph is traced when it is
first wanted and kept on disk: see `zoo.onnx.cache`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..errors import InputError
from ..nn import Module
from ..pretrained import Pretrained
from ..runner.runner import Runner
from .cache import Folder, Kept, fingerprint, keep
from .session import Session, provider_of
from .signature import Signature

R = TypeVar("R")
# What a graph takes of which a record may have nothing.
FILLED = ("mask", "token_type_ids", "encoder_mask", "pixel_mask", "bool_masked_pos")
MAX_GRAPHS = 8  # of one method and form of records: each is for lengths that the others do not fit


class Graph(NamedTuple):
    signature: Signature
    session: Session


class OnnxRunner(Runner):
    """Runs a model's methods by sessions of ONNX Runtime.  Threads may share it."""

    def __init__(self, model: Pretrained, device: str, files: Iterable[Path] = ()):
        self._model, self._device, self._files = model, device, tuple(files)
        self._provider = provider_of(device)
        self._lock = threading.RLock()
        self._graphs: dict[Any, list[Graph]] = {}
        self._folder: Folder | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return OnnxRunner, (self._model, self._device, self._files)  # of a copy: no graphs yet

    def __len__(self) -> int:
        """How many graphs there are."""
        return sum(map(len, self._graphs.values()))

    def run(self, fn: Callable[..., R], *records: Any) -> R:
        if any(getattr(record, "cache", None) is not None for record in records):
            return fn(*records)
        key = fn, tuple(map(form, records))
        for graph in self._graphs.get(key, ()):
            feed = fed(graph.signature, records)
            if feed is not None:
                return graph.signature.result(fn, graph.session(feed))
        with self._lock:
            graph = self._added(key, fn, records)
        return graph.signature.result(fn, graph.session(graph.signature.feed(*records)))

    def _added(self, key: Any, fn: Callable[..., Any], records: tuple[Any, ...]) -> Graph:
        """A graph that fits the records: kept from before, or traced."""
        known = self._graphs.get(key, [])
        takes = "; ".join(key[1])
        if self._folder is None:
            self._folder = Folder(fingerprint(self._model, self._files))
        method = f"{type(fn.__self__).__name__}.{fn.__name__}"  # type: ignore[attr-defined]
        for kept in self._folder.graphs(method, takes):
            if fed(kept.signature, records) is not None:
                graph = self._opened(kept)
                break
        else:
            graph = self._opened(self._traced(fn, records, method, takes))
        self._graphs[key] = [graph, *known][:MAX_GRAPHS]
        return graph

    def _opened(self, kept: Kept) -> Graph:
        model = kept.onnx if kept.folder is None else kept.onnx.read_bytes()
        return Graph(kept.signature, Session(model, self._provider, kept.folder, kept.weight_bytes))

    def _traced(self, fn: Callable[..., Any], records: tuple[Any, ...], method: str, takes: str) -> Kept:
        from .trace import trace

        assert self._folder is not None
        traced = trace(fn, *records)
        if fed(traced.signature, records) is None:
            traced = trace(fn, *records, any_size=True)
        return keep(traced, self._folder.writable(), method, takes)


def attach(model: Pretrained, device: str, files: Iterable[Path] = ()) -> None:
    """Let ONNX Runtime run a model, and the models that are parts of it."""
    runner = OnnxRunner(model, device, files)
    waiting: list[Any] = [model]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Pretrained):
            node.runner = runner
        if isinstance(node, Module):
            waiting += vars(node).values()
        elif isinstance(node, (list, tuple)):
            waiting += node


def form(record: Any) -> str:
    """What a record has, and what in it is no array: what a graph of it depends on besides lengths."""
    if not hasattr(record, "_fields"):
        return type(record).__name__
    parts = []
    for name, value in record._asdict().items():
        if hasattr(value, "_fields"):
            parts.append(form(value))
        elif hasattr(value, "dtype") and name not in FILLED:
            parts.append(name)
        elif name == "logits_to_keep" and value:
            parts.append(f"{name}={value}")
    return f"{type(record).__name__}({', '.join(parts)})"


def fed(signature: Signature, records: tuple[Any, ...]) -> dict[str, np.ndarray] | None:
    """What a graph is given of records; None where it does not compute what it is to of them."""
    try:
        feed = signature.feed(*records)
    except InputError:
        return None
    return feed if signature.broken(feed) is None else None
