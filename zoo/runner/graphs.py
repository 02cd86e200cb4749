"""The graphs of a model: which there are, and what they need to be replayed."""

from __future__ import annotations

import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ..errors import ZooError
from ..nn import Module
from ..ops.capture import capturing
from ..warning import warn
from . import Runner
from .recording import Recorder, Recording

MAX_GRAPHS = 32  # of one model; the least recently used is forgotten


class Graph:
    """A recording with its inputs, and with what it reads wherever that lies."""

    def __init__(self, recording: Recording, inputs: dict[str, Tensor], kept: Any):
        self.recording, self.inputs, self.kept = recording, inputs, kept

    def __call__(self) -> Any:
        """The outputs, which the next call overwrites."""
        self.recording.replay()
        return self.recording.outputs


class Graphs(Runner):
    """The graphs of a task's model.  Threads may share them; they take turns.

    A graph is made when inputs of its shape come for the second time.  If one cannot be made a warning says why, and
    from then on all is called as it is.
    """

    def __init__(self, recorder: Recorder, most: int = MAX_GRAPHS):
        self.recorder, self.most = recorder, most
        self.lock = threading.RLock()
        self.failed = False
        self._graphs: OrderedDict[Any, Graph | None] = OrderedDict()  # None: the shape came once
        self._wrappers: dict[Any, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Graphs, (self.recorder, self.most)  # of a copy of the model: none yet

    def __call__(self, model: Any, *args: Any, **options: Any) -> Any:
        is_of_images = "pixel_values" in inspect.signature(model).parameters
        return (self.images if is_of_images else self.texts)(model)(*args, **options)

    def texts(self, model: Any) -> Any:
        """A model of texts: model(input_ids, attention_mask, token_type_ids) -> what it gives."""
        from .calls import Texts

        return self._wrapped(model, Texts)

    def images(self, fn: Any) -> Any:
        """A model of images, or its method that takes them: fn(pixel_values, ...) -> what it gives."""
        from .calls import Images

        return self._wrapped(fn, Images)

    def decoder(self, model: Any) -> Any:
        """A `zoo.generate.Decoder`, with all else that the model has."""
        from .decoding import Decoder

        return self._wrapped(model, Decoder)

    def __len__(self) -> int:
        """How many graphs there are."""
        return sum(graph is not None for graph in self._graphs.values())

    def get(
        self, key: Any, model: Module, fn: Callable[..., Any], inputs: Callable[[], dict[str, Tensor]]
    ) -> Graph | None:
        """The graph of fn(**inputs) for a key, None where there is none (yet).

        model: what fn computes with.  inputs: makes the memory for them.
        """
        if self.failed:
            return None
        known = key in self._graphs
        graph = self._graphs.pop(key, None)
        if known and graph is None:
            graph = self._made(model, fn, inputs())
        if not self.failed:
            self._graphs[key] = graph
            self._forget()
        return graph

    def _made(self, model: Module, fn: Callable[..., Any], inputs: dict[str, Tensor]) -> Graph | None:
        run = lambda: fn(**inputs)
        try:
            self.recorder.warm_up(run)
            with capturing() as kept:
                recording = self.recorder.record(run)
        except ZooError:  # of the inputs: whoever computes them without a graph will say so
            return None
        except Exception as e:  # of CUDA, torch or Triton
            self.failed = True
            self._graphs.clear()
            name = type(model).__name__
            warn(f"no CUDA graph of {name} could be made, which now runs without: {type(e).__name__}: {e}")
            return None
        return Graph(recording, inputs, kept)

    def drop(self, key: Any) -> None:
        """Forget a graph."""
        self._graphs.pop(key, None)

    def _wrapped(self, of: Any, wrapper: Any) -> Any:
        with self.lock:
            if of not in self._wrappers:
                self._wrappers[of] = wrapper(of, self)
            return self._wrappers[of]

    def _forget(self) -> None:
        """The least recently used, of graphs and of shapes that came once."""
        for kind, most in ((True, self.most), (False, 4 * self.most)):
            keys = [key for key, graph in self._graphs.items() if (graph is not None) is kind]
            for key in keys[: max(0, len(keys) - most)]:
                del self._graphs[key]
