"""GraphRunner: runs a task's models by CUDA graphs, padding inputs to the shapes of graphs.

Shapes: B rows, T tokens.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...errors import ZooError
from ...inputs import ImageInputs, ImageModel, TextInputs, TextModel
from ...inputs.encoder_decoder import EncoderDecoder
from ...inputs.image_text import ImageTextCausalLM
from ...ops.capture import capturing
from ...runner import Runner
from ...typing import Array
from ...warning import warn
from .decoding import GraphDecoder
from .recording import Recorder, Recording

MAX_GRAPHS = 32  # the least recently used is dropped
# With more tokens or pixels a GPU is busy for longer than the host takes to launch.
MAX_TOKENS = 4096
MAX_PIXELS = 1 << 20
# Texts are padded to these lengths, so that few graphs serve all.
LENGTHS = (8, 16, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512)


class CapturedGraph(NamedTuple):
    """A recording, the inputs that it reads, and the cached arrays that it reads."""

    recording: Recording
    record: Any
    kept: list[Array]

    def __call__(self) -> Any:
        """The outputs, which the next call overwrites."""
        self.recording.replay()
        return self.recording.outputs


class GraphRunner(Runner):
    """Runs models by graphs.  Threads may share it; they take turns.

    A graph is made when inputs of its shape come for the second time.  If that fails, a warning says why, and from then
    on models are called directly.
    """

    def __init__(self, recorder: Recorder, max_graphs: int = MAX_GRAPHS):
        self.recorder, self.max_graphs = recorder, max_graphs
        self.lock = threading.RLock()
        self.failed = False
        self._graphs: OrderedDict[Hashable, CapturedGraph | None] = OrderedDict()  # None: the shape came once
        self._axes: dict[Hashable, list[int | None]] = {}
        self._decoders: dict[Any, GraphDecoder] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphRunner, (self.recorder, self.max_graphs)  # a copy of the task begins without graphs

    def __len__(self) -> int:
        """The number of graphs."""
        return sum(graph is not None for graph in self._graphs.values())

    def __call__(self, model: Any, *args: Any, **options: Any) -> Any:
        if isinstance(model, ImageModel):
            return self.run(model.forward, model.pixels(*args, **options))
        if type(model).__call__ is TextModel.__call__ and options.get("cache") is None:
            return self.run(model.forward, model.tokens(*args, **options))
        return model(*args, **options)

    def run(self, fn: Callable[..., Any], *records: Any) -> Any:
        if len(records) != 1:
            return fn(*records)
        record = records[0]
        replayed: Callable[..., Any] = self._texts if isinstance(record, TextInputs) else self._images
        with self.lock:
            found = None if self.failed else replayed(fn, record)
        return fn(record) if found is None else found

    def decoder(self, model: Any) -> Any:
        if isinstance(model, ImageTextCausalLM):  # whose decoder reads vectors, and has steps as any other
            return model.with_steps(self.decoder(model.language_model))
        if isinstance(model, EncoderDecoder):
            return model.with_steps(self.decoder(model.decoder))
        with self.lock:
            return self._decoders.setdefault(model, GraphDecoder(model, self))

    def graph(self, key: Hashable, fn: Callable[[Any], Any], record: Callable[[], Any]) -> CapturedGraph | None:
        """The graph of fn(record()) for a key; None if there is none (yet).  record() is called once."""
        if self.failed:
            return None
        known = key in self._graphs
        graph = self._graphs.pop(key, None)
        if known and graph is None:
            graph = self._capture(fn, record())
        if not self.failed:
            self._graphs[key] = graph
            self._forget()
        return graph

    def drop(self, key: Hashable) -> None:
        """Drop a graph."""
        self._graphs.pop(key, None)

    def _capture(self, fn: Any, record: Any) -> CapturedGraph | None:
        try:
            self.recorder.warm_up(partial(fn, record))
            with capturing() as kept:
                return CapturedGraph(self.recorder.record(partial(fn, record)), record, kept)
        except ZooError:  # bad inputs: the call without a graph raises it again
            return None
        except Exception as e:  # of CUDA, torch or Triton
            self.failed = True
            self._graphs.clear()
            name = type(fn.__self__).__name__
            warn(f"no CUDA graph of {name} could be made, which now runs without: {type(e).__name__}: {e}")
            return None

    def _forget(self) -> None:
        """Drop the least recently used graphs, and the oldest shapes that came once."""
        for kind, most in ((True, self.max_graphs), (False, 4 * self.max_graphs)):
            keys = [key for key, graph in self._graphs.items() if (graph is not None) is kind]
            for key in keys[: max(0, len(keys) - most)]:
                del self._graphs[key]

    def _images(self, fn: Any, p: ImageInputs) -> Any:
        """Run images by a graph, without padding: they have few sizes."""
        if math.prod(p.pixel_values.shape[:3]) > MAX_PIXELS:
            return None
        key = fn, _map_tensors(lambda x: (tuple(x.shape), x.dtype), p)
        graph = self.graph(key, fn, lambda: _map_tensors(torch.zeros_like, p))
        return None if graph is None else self._replay(graph, p, 0, torch.clone)

    def _texts(self, fn: Any, t: TextInputs) -> Any:
        """Run texts by a graph, padded to one of LENGTHS, and to a power of two of rows."""
        model, (B, T), types, (mask, _, *states) = fn.__self__, t.shape, t.token_type_ids, t.context
        rows, length = 1 << (B - 1).bit_length(), min(padded_length(T), model.max_positions)
        is_padded, pad = (rows, length) != (B, T), model.config.pad_token_id
        if (
            t.input_ids is None
            or any(x is not None for x in (t.position_ids, t.cache, t.global_attention_mask, *states))
            or t.logits_to_keep
            or model.depends_on_length
            or model.depends_on_values
            or rows * length > MAX_TOKENS
            or (types is not None and len(types) != B)
            or (is_padded and (pad is None or not 0 <= pad < model.config.vocab_size))
        ):
            return None
        if is_padded and mask is None:
            mask = t.input_ids >= 0
            t = t._replace(context=t.context._replace(mask=mask))

        def memory() -> TextInputs:
            return _map_tensors(lambda x: x.new_zeros((rows, length)[: x.ndim]), t._replace(length=length))

        graph = self.graph((fn, rows, length, types is None, mask is None), fn, memory)
        if graph is None:
            return None
        if fn not in self._axes:
            self._axes[fn] = _token_axes(fn, memory())
        axes = iter(self._axes[fn])
        return self._replay(graph, t, pad, lambda x: _cut(x, B, next(axes), T))

    def _replay(self, graph: CapturedGraph, record: Any, pad: int, taken: Callable[[Tensor], Tensor]) -> Any:
        """taken(output): a copy of the caller's part.  pad: the value that pads the first array."""
        with self.recorder.turn():
            for i, (memory, x) in enumerate(zip(_arrays(graph.record), _arrays(record), strict=True)):
                if memory.shape != x.shape:
                    memory.fill_(0 if i else pad)
                memory[tuple(map(slice, x.shape))] = x
            return _map_tensors(taken, graph())


def padded_length(T: int) -> int:
    """The length that texts of T tokens are padded to."""
    return next((n for n in LENGTHS if n >= T), -(-T // LENGTHS[-1]) * LENGTHS[-1])


def _token_axes(fn: Callable[[Any], Any], t: TextInputs) -> list[int | None]:
    """The axis of each output that is as long as the text."""
    outputs = [
        fn(_map_tensors(lambda x, n=n: x[:1, :n] if x.ndim > 1 else x[:1], t._replace(length=n))) for n in (1, 2)
    ]
    pairs = zip(*map(_arrays, outputs), strict=True)
    return [next((i for i in range(1, x.ndim) if x.shape[i] != y.shape[i]), None) for x, y in pairs]


def _cut(x: Tensor, rows: int, axis: int | None, length: int) -> Tensor:
    return (x[:rows] if axis is None else x[:rows].narrow(axis, 0, length)).clone()


def _map_tensors(fn: Callable[[Tensor], Any], node: Any) -> Any:
    """A record or an output with fn(tensor) for each of its tensors, in order."""
    if isinstance(node, Tensor):
        return fn(node)
    if isinstance(node, tuple):
        values = [_map_tensors(fn, value) for value in node]
        return type(node)(*values) if hasattr(node, "_fields") else tuple(values)
    return node


def _arrays(node: Any) -> list[Tensor]:
    found: list[Tensor] = []
    _map_tensors(found.append, node)
    return found
