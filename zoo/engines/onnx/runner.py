"""A model by ONNX Runtime: what passes its door goes through graphs that were traced from its own file.

The model has its weights as NumPy has them, and all that is checked is checked as ever.  A graph is traced when it is
first wanted and kept on disk: see `zoo.engines.onnx.cache`.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...errors import CheckpointError, InputError, UnsupportedError
from ...files.inside import checkpoint_file
from ...inputs.causal import CausalLM
from ...nn import Module
from ...pretrained import Pretrained
from ...runner import Runner
from .cache import Folder, Kept, fingerprint, keep
from .decoder import Decoder, room
from .exported import INDEX, about_export
from .int8 import has_exact_sums, int8, of_steps, precision_of
from .session import Session
from .session import provider_of as check
from .signature import Signature
from .trace import Traced, trace

R = TypeVar("R")
QUANTISES = ("int8",)  # values of `weights=` that graphs apply themselves, to float32 weights: more exactly
# What a graph takes of which a record may have nothing.
FILLED = ("mask", "token_type_ids", "encoder_mask", "pixel_mask", "bool_masked_pos")
MAX_GRAPHS = 8  # of one method and form of records: each is for lengths that the others do not fit


class Graph(NamedTuple):
    signature: Signature
    session: Session


class OnnxRunner(Runner):
    """Runs a model's methods by sessions of ONNX Runtime.  Threads may share it."""

    def __init__(self, model: Pretrained, device: str, files: Iterable[Path] = (), precision: str = "float32"):
        """precision: "float32" or "int8", of products."""
        self._model, self._device, self._files, self._precision = model, device, tuple(files), precision
        self._provider = check(device)
        self._lock = threading.RLock()
        self._graphs: dict[Any, list[Graph]] = {}
        self._folder: Folder | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return OnnxRunner, (self._model, self._device, self._files, self._precision)  # of a copy: no graphs yet

    def __len__(self) -> int:
        """How many graphs there are."""
        return sum(map(len, self._graphs.values()))

    def run(self, fn: Callable[..., R], *records: Any) -> R:
        for cache in (record.cache for record in records if getattr(record, "cache", None) is not None):
            room(cache, cache.capacity)  # the logits of all tokens, which no graph gives beside a cache
            return fn(*records)
        key = fn, tuple(map(form, records))
        for graph in self._graphs.get(key, ()):
            feed = fed(graph.signature, records)
            if feed is not None:
                return graph.signature.result(fn, graph.session(feed))
        with self._lock:
            graph = self._added(key, fn, records)
        return graph.signature.result(fn, graph.session(graph.signature.feed(*records)))

    def decoder(self, model: Any) -> Any:
        return Decoder(model, self) if isinstance(model, CausalLM) and not model.depends_on_length else model

    def made(self, method: str, model: CausalLM, make: Callable[[Any], Traced]) -> Graph:
        """The graph of a decoder's method, which has one alone.  make(precision): see `trace`."""
        with self._lock:
            if method not in self._graphs:
                kept = next(self._kept().graphs(method, ""), None)
                if kept is None:
                    precision = of_steps(model, has_exact_sums()) if self._precision == "int8" else None
                    kept = keep(make(precision), self._kept().writable(), method, "")
                self._graphs[method] = [self.opened(kept)]
            return self._graphs[method][0]

    def _kept(self) -> Folder:
        if self._folder is None:
            of_processor = has_exact_sums() if self._precision == "int8" else ""
            self._folder = Folder(f"{fingerprint(self._model, self._files)} {self._precision} {of_processor}")
        return self._folder

    def _added(self, key: Any, fn: Callable[..., Any], records: tuple[Any, ...]) -> Graph:
        """A graph that fits the records: kept from before, or traced."""
        known = self._graphs.get(key, [])
        takes = "; ".join(key[1])
        method = method_of(fn)
        for kept in self._kept().graphs(method, takes):
            if fed(kept.signature, records) is not None:
                graph = self.opened(kept)
                break
        else:
            graph = self.opened(self._traced(fn, records, method, takes))
        self._graphs[key] = [graph, *known][:MAX_GRAPHS]
        return graph

    def opened(self, kept: Kept) -> Graph:
        """A graph on disk, ready to run."""
        model = kept.onnx if kept.folder is None else kept.onnx.read_bytes()
        return Graph(kept.signature, Session(model, self._provider, kept.folder, kept.weight_bytes))

    def _traced(self, fn: Callable[..., Any], records: tuple[Any, ...], method: str, takes: str) -> Kept:
        precision = int8(fn, *records, exact=has_exact_sums()) if self._precision == "int8" else None
        traced = trace(fn, *records, precision=precision)
        if fed(traced.signature, records) is None:
            traced = trace(fn, *records, any_size=True, precision=precision)
        return keep(traced, self._kept().writable(), method, takes)


class ExportedRunner(OnnxRunner):
    """Runs the graphs of a folder that `zoo export` wrote, and no others."""

    has_weights = False

    def __init__(self, model: Pretrained, device: str, index: Path):
        super().__init__(model, device, (index,))
        self._about = about_export(index)
        if self._about.get("class") != model.architecture:
            raise UnsupportedError(
                f"{index.parent} was exported as {self._about.get('class')}, and {model.architecture} is asked for"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return ExportedRunner, (self._model, self._device, self._files[0])

    def run(self, fn: Callable[..., R], *records: Any) -> R:
        graph = self.graph(method_of(fn))
        feed = graph.signature.feed(*records)
        if (broken := graph.signature.broken(feed)) is not None:
            raise InputError(f"{self._files[0].parent} was exported for {broken}")
        return graph.signature.result(fn, graph.session(feed))

    def graph(self, method: str) -> Graph:
        with self._lock:
            if method not in self._graphs:
                self._graphs[method] = [self._open(method)]
        return self._graphs[method][0]

    def made(self, method: str, model: CausalLM, make: Callable[[Any], Traced]) -> Graph:
        return self.graph(method)

    def _open(self, method: str) -> Graph:
        index, graphs = self._files[0], self._about.get("graphs")
        if not isinstance(graphs, dict) or method not in graphs:
            known = ", ".join(graphs) if isinstance(graphs, dict) else "nothing"
            raise UnsupportedError(f"{index.parent} has no graph of {method}, only of {known}")
        try:
            about = graphs[method]
            path = checkpoint_file(index.parent, about["file"])
            data = checkpoint_file(index.parent, f"{about['file']}.data")
            signature = Signature.from_json(about["signature"])
            if hashlib.sha256(path.read_bytes()).hexdigest() != about["sha256"]:
                raise CheckpointError(f"{path} is not the file that {index.name} is of: export the model anew")
            weight_bytes = os.path.getsize(data) if data.is_file() else 0
            if weight_bytes != about["data_bytes"]:
                raise CheckpointError(f"{data} has {weight_bytes} bytes, {index.name} says {about['data_bytes']}")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            raise CheckpointError(f"{index}: what it says of {method} is damaged: {e!r}") from None
        return Graph(signature, Session(path, self._provider, None, weight_bytes))


def method_of(fn: Callable[..., Any]) -> str:
    return f"{type(fn.__self__).__name__}.{fn.__name__}"  # type: ignore[attr-defined]


def attach(model: Pretrained, device: str, files: Iterable[Path] = (), weights: str | None = None) -> None:
    """Let ONNX Runtime run a model, and the models that are parts of it.  weights: as for `zoo.load`."""
    files = tuple(files)
    exported = bool(files) and files[0].name == INDEX
    if exported and weights is not None:
        raise UnsupportedError(
            f"weights={weights!r}: the graphs in {files[0].parent} have the weights they were written with"
        )
    runner = (
        ExportedRunner(model, device, files[0])
        if exported
        else OnnxRunner(model, device, files, precision_of(model, weights))
    )
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
