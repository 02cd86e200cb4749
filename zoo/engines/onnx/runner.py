"""A model run by ONNX Runtime, on graphs traced from the model's own code.

The model's weights are NumPy arrays, and its inputs are checked as on NumPy.  A graph is traced when it is first needed
and cached on disk (`zoo.engines.onnx.cache`).  Records are the checked inputs: TextInputs or ImageInputs.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ...errors import CheckpointError, InputError, UnsupportedError, ZooError
from ...files.inside import checkpoint_file
from ...files.pages import release
from ...inputs import ImageInputs, TextInputs, TextModel
from ...inputs.heads import CausalLM
from ...inputs.image_text import ImageTextModel
from ...nn import Module, leaves
from ...pretrained import Pretrained
from ...quant import QuantTensor
from ...runner import Runner
from ...weights.mapped import file_state
from .cache import CachedGraph, GraphFolder, fingerprint, write_graph
from .checked import CheckedSession
from .decoder import OnnxDecoder, ensure_capacity
from .exported import INDEX, about_export
from .int8 import has_exact_sums, int8, of_steps, precision_of
from .ops.packed import Int4, is_exact
from .session import OnnxRuntime, provider_of
from .signature import Signature
from .trace import Traced, trace

R = TypeVar("R")
QUANTISES = ("int8", "int4")  # values of `weights=`: matrices are rounded while a graph is written
# Optional fields of a record: a graph takes them, and gets a default if they are None.
FIELDS_WITH_DEFAULTS = ("mask", "token_type_ids", "encoder_mask", "bool_masked_pos")
MAX_GRAPHS = 8  # graphs of one method and form of records; each is for other lengths


class Runtime(Protocol):
    """What runs graphs: ONNX Runtime by one of its providers, or another library."""

    @property
    def standard_only(self) -> bool:
        """True if it runs only operators of the ONNX standard."""
        ...

    @property
    def on_cpu(self) -> bool:
        """True if its graphs are laid out for ONNX Runtime's CPU: see `GraphBuilder`."""
        ...

    @property
    def precision(self) -> Any:
        """The precision of graphs whose matrices are not rounded: see `GraphBuilder`."""
        ...

    @property
    def in_place(self) -> bool:
        """True if a decoder's step writes to its cache, by GroupQueryAttention."""
        ...

    def open(self, graph: CachedGraph, method: str) -> Callable[..., list[np.ndarray]]:
        """A session of a graph on disk.  method: its name in messages."""
        ...


class OpenGraph(NamedTuple):
    """A graph with the session that runs it."""

    signature: Signature
    session: Callable[..., list[np.ndarray]]


class OnnxRunner(Runner):
    """Runs a model's methods by sessions of a runtime.  Threads may share it."""

    computes_with_arrays = False

    def __init__(self, model: Pretrained, runtime: Runtime, files: Iterable[Path] = (), precision: str = "float32"):
        """precision: of matrix products, "float32", "int8" or "int4"."""
        self._model, self.runtime, self._files, self.precision = model, runtime, tuple(files), precision
        self._lock = threading.RLock()
        self._graphs: dict[Any, list[OpenGraph]] = {}
        self._folder: GraphFolder | None = None
        # While the model has these arrays, which are read-only, its weights follow from the files in these states.
        self._as_read = [weakref.ref(leaf) for _, leaf in leaves(model)]
        self._states = [file_state(os.stat(path)) for path in self._files]

    def __reduce__(self) -> tuple[Any, ...]:
        return OnnxRunner, (self._model, self.runtime, self._files, self.precision)  # a copy has no graphs yet

    def __len__(self) -> int:
        """The number of open graphs."""
        return sum(map(len, self._graphs.values()))

    def run(self, fn: Callable[..., R], *records: Any) -> R:
        for cache in (record.cache for record in records if getattr(record, "cache", None) is not None):
            ensure_capacity(cache, cache.capacity)  # no graph returns the logits of all tokens and takes a cache
            return fn(*records)
        if any(map(depends_on_positions, records)):
            return fn(*records)
        records = tuple(map(with_all_rows, records))
        key = fn, tuple(map(record_signature, records))
        graph = next((one for one in self._graphs.get(key, ()) if one.signature.fits(*records)), None)
        if graph is None:
            with self._lock:
                graph = self._add_graph(key, fn, records)
        return graph.signature.result(fn, graph.session(graph.signature.feed(*records)))

    def decoder(self, model: Any) -> Any:
        return OnnxDecoder(model, self) if isinstance(model, CausalLM) and not model.depends_on_length else model

    def in_place(self, model: CausalLM) -> bool:
        """Return True if a decoder's steps write to its cache, which GroupQueryAttention does on CPUs."""
        return self.runtime.in_place and model.cache_shape[2] % 8 == 0 and not model.adds_bias

    def graph_of(self, method: str, model: CausalLM, make: Callable[[Any], Traced]) -> OpenGraph:
        """The only graph of a decoder's method.  make: returns the traced graph in a precision."""
        with self._lock:
            if method not in self._graphs:
                kept = self._find_or_make(
                    method, "", lambda kept: True, lambda: make(self._policy(model, of_steps, model))
                )
                self._graphs[method] = [self.open_graph(kept, method)]
            return self._graphs[method][0]

    def _find_or_make(
        self, method: str, takes: str, fits: Callable[[CachedGraph], bool], make: Callable[[], Traced]
    ) -> CachedGraph:
        """A graph from the cache that fits, or else one that is made now."""
        folder = self._graph_folder()

        def find() -> CachedGraph | None:
            return next(filter(fits, folder.graphs(method, takes)), None)

        kept = find()
        if kept is None:
            with folder.making() as path:  # another process may have made it meanwhile
                kept = find() or write_graph(make(), path, method, takes)
            _release(self._model)
        return kept

    def _graph_folder(self) -> GraphFolder:
        if self._folder is None:
            of_products = f"{self.precision} {has_exact_sums()} {is_exact()}"
            files = self._files if self._is_as_read() else ()
            self._folder = GraphFolder(f"{fingerprint(self._model, files)} {of_products} {self.runtime}")
            _release(self._model)
        return self._folder

    def _is_as_read(self) -> bool:
        """True if all weights follow from the model's files: none is new, and none has been replaced since."""
        arrays = [leaf for _, leaf in leaves(self._model)]
        same = len(arrays) == len(self._as_read) and all(r() is a for r, a in zip(self._as_read, arrays, strict=True))
        states = [file_state(os.stat(path)) for path in self._files]
        return same and states == self._states and not self._model.report.new

    def _policy(self, model: Any, int8: Callable[..., Any], *of: Any) -> Any:
        """The precision of a graph for `trace`; int8: makes it where products are in int8.

        Where the decoder of images and texts is in int4, its encoder of images is in int8, as llama.cpp has it.
        """
        sees = isinstance(model, ImageTextModel) and any(isinstance(one, ImageInputs) for one in of)
        if self.precision == "int8" or (self.precision == "int4" and sees):
            return int8(*of, exact=has_exact_sums())
        texts = next((one for one in reversed(model.readers) if isinstance(one, TextModel)), model)
        return Int4(getattr(texts.config, "vocab_size", 0)) if self.precision == "int4" else self.runtime.precision

    def _add_graph(self, key: Any, fn: Callable[..., Any], records: tuple[Any, ...]) -> OpenGraph:
        """A graph that fits the records: from the cache, or else traced."""
        known, (takes, method) = self._graphs.get(key, []), ("; ".join(key[1]), method_of(fn))
        kept = self._find_or_make(
            method, takes, lambda kept: kept.signature.fits(*records), lambda: self._trace(fn, records)
        )
        graph = self.open_graph(kept, method)
        self._graphs[key] = [graph, *known][:MAX_GRAPHS]
        return graph

    def open_graph(self, kept: CachedGraph, method: str) -> OpenGraph:
        """A graph on disk, ready to run."""
        return OpenGraph(kept.signature, self.runtime.open(kept, method))

    def _trace(self, fn: Callable[..., Any], records: tuple[Any, ...]) -> Traced:
        model: Any = fn.__self__  # type: ignore[attr-defined]
        of_products = partial(int8, shares_scale=has_exact_sums() and not isinstance(model, CausalLM))
        precision = self._policy(model, of_products, fn, *records)
        form: Any = {"standard": self.runtime.standard_only, "on_cpu": self.runtime.on_cpu}
        make = partial(trace, fn, *records, precision=precision, masks=False, **form)
        traced = make()
        return traced if traced.signature.fits(*records) else make(any_size=True)


class ExportedRunner(OnnxRunner):
    """Runs the graphs of a folder that `zoo export` wrote, and traces none."""

    has_weights = drops_tokens = False

    def __init__(self, model: Pretrained, runtime: Runtime, index: Path):
        super().__init__(model, runtime, (index,))
        self._about = about_export(index)
        if self._about.get("class") != model.architecture:
            raise UnsupportedError(
                f"{index.parent} was exported as {self._about.get('class')}, and {model.architecture} is asked for"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return ExportedRunner, (self._model, self.runtime, self._files[0])

    def run(self, fn: Callable[..., R], *records: Any) -> R:
        if any(map(depends_on_positions, records)):
            raise InputError(
                f"{self._files[0].parent} was exported for rows of one text each, and position_ids begin anew or "
                "change the frequencies of rotary positions: pass the texts as rows, with attention_mask"
            )
        graph, records = self.graph(method_of(fn)), tuple(map(with_all_rows, records))
        try:
            feed = graph.signature.feed(*records)
            if (broken := graph.signature.broken_guard(feed)) is not None:
                raise InputError(f"{self._files[0].parent} was exported for inputs with {broken}")
            return graph.signature.result(fn, graph.session(feed))
        except (AttributeError, LookupError, TypeError, ValueError) as e:
            if isinstance(e, ZooError):
                raise
            raise CheckpointError(f"{self._files[0]}: the signature of {method_of(fn)} is not the model's: {e}") from e

    def graph(self, method: str) -> OpenGraph:
        with self._lock:
            if method not in self._graphs:
                self._graphs[method] = [self._open(method)]
        return self._graphs[method][0]

    def in_place(self, model: CausalLM) -> bool:
        return False

    def graph_of(self, method: str, model: CausalLM, make: Callable[[Any], Traced]) -> OpenGraph:
        return self.graph(method)

    def _open(self, method: str) -> OpenGraph:
        index, graphs = self._files[0], self._about.get("graphs")
        if not isinstance(graphs, dict) or method not in graphs:
            known = ", ".join(graphs) if isinstance(graphs, dict) else "nothing"
            raise UnsupportedError(f"{index.parent} has no graph of {method}, it has: {known}")
        try:
            about = graphs[method]
            path = checkpoint_file(index.parent, about["file"])
            data = checkpoint_file(index.parent, f"{about['file']}.data")
            signature = Signature.from_json(about["signature"])
            if hashlib.sha256(path.read_bytes()).hexdigest() != about["sha256"]:
                raise CheckpointError(f"{path} is not the file that {index.name} describes: export the model again")
            weight_bytes = os.path.getsize(data) if data.is_file() else 0
            if weight_bytes != about["data_bytes"]:
                raise CheckpointError(
                    f"{data} has {weight_bytes} bytes, expected {about['data_bytes']}: export the model again"
                )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            raise CheckpointError(f"{index}: the entry of {method} is damaged: {e!r}") from None
        graph = CachedGraph(signature, path, None, weight_bytes)
        open_it = partial(self.runtime.open, graph, method)
        return OpenGraph(signature, CheckedSession(graph, about["sha256"], open_it))


def method_of(fn: Callable[..., Any]) -> str:
    return f"{type(fn.__self__).__name__}.{fn.__name__}"  # type: ignore[attr-defined]


def check(device: str, dtype: str | None = None) -> None:
    """UnsupportedError: ONNX Runtime lacks the device's provider, or the dtype is not float32."""
    provider_of(device)
    if dtype not in (None, "float32"):
        hint = "; device='openvino' computes in bfloat16 on processors that have it" if dtype == "bfloat16" else ""
        raise UnsupportedError(f"{device!r} computes in float32, and dtype is {dtype!r}{hint}", argument="device")


def attach(
    model: Pretrained, device: str, files: Iterable[Path] = (), weights: str | None = None, dtype: str | None = None
) -> None:
    """Let ONNX Runtime run a model and the models inside it.  weights: as for `zoo.load`."""
    attach_runtime(model, OnnxRuntime(provider_of(device)), files, weights)


def attach_runtime(model: Pretrained, runtime: Runtime, files: Iterable[Path], weights: str | None) -> None:
    """Let a runtime run a model and the models inside it.  weights: as for `zoo.load`."""
    files = tuple(files)
    exported = bool(files) and files[0].name == INDEX
    if exported and weights is not None:
        raise UnsupportedError(
            f"weights={weights!r} cannot change exported graphs ({files[0].parent}): leave it out, or export again"
        )
    runner = (
        ExportedRunner(model, runtime, files[0])
        if exported
        else OnnxRunner(model, runtime, files, precision_of(model, weights))
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
    _release(model)


def _release(model: Pretrained) -> None:
    """Give back the pages of weights that reading has brought to memory: a graph has those that it uses itself."""
    for _, leaf in leaves(model):
        parts = leaf.parts if isinstance(leaf, QuantTensor) else ()
        for array in [array for part in parts for array in part.arrays] or [leaf]:
            release(array)


def depends_on_positions(record: Any) -> bool:
    """True for tokens whose positions decide more than a graph can know: which text of its row each token is of, or
    the frequencies of rotary positions.
    """
    if not isinstance(record, TextInputs) or record.position_ids is None:
        return False
    return record.context.texts is not None or record.length != record.shape[1]


def with_all_rows(record: Any) -> Any:
    """Tokens whose types and positions have a row for each text, as graphs take them, and not one for all."""
    if not isinstance(record, TextInputs):
        return record
    names = ("token_type_ids", "position_ids")
    given: dict[str, Any] = {name: x for name in names if (x := getattr(record, name)) is not None}
    return record._replace(**{name: np.broadcast_to(x, record.shape) for name, x in given.items()})


def record_signature(record: Any) -> str:
    """The fields that a record has and the values that are no arrays: what its graph depends on besides lengths."""
    if not hasattr(record, "_fields"):
        return type(record).__name__
    parts = []
    for name, value in record._asdict().items():
        if hasattr(value, "_fields"):
            parts.append(record_signature(value))
        elif hasattr(value, "dtype") and name not in FIELDS_WITH_DEFAULTS:
            parts.append(name)
        elif name == "logits_to_keep" and value:
            parts.append(f"{name}={value}")
    return f"{type(record).__name__}({', '.join(parts)})"
