"""Every stage of a model by ONNX Runtime: a graph that has them all as outputs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np

from zoo.engines.onnx.cache import write_graph
from zoo.engines.onnx.runner import OnnxRunner
from zoo.engines.onnx.trace import Traced, trace
from zoo.inputs.mask_generation import MaskGenerator
from zoo.inputs.text_masks import ImageStates
from zoo.nn import is_array
from zoo.runner import Runner

from .taps import outputs, tapping


class _Named(dict[str, Any]):
    """Outputs of a graph, by their names."""

    def _asdict(self) -> dict[str, Any]:
        return self


class _Staged(Runner):
    """Runs a model's checked inputs through a graph of all its stages, and keeps their outputs."""

    def __init__(self, runner: OnnxRunner):
        self.runner, self.found = runner, {}

    def run(self, fn: Callable[..., Any], *records: Any) -> Any:
        def run_in_stages(model: Any, *given: Any) -> _Named:
            with tapping(model, keep=_itself) as found:
                result = fn.__func__(model, *given)  # type: ignore[attr-defined]
            named = outputs(model, result, _itself) if fn.__name__ == "forward" else _fields(fn, result)
            return _Named({**found, **named})

        made: Callable[..., Any] = MethodType(run_in_stages, fn.__self__)  # type: ignore[attr-defined]
        form: Any = {"standard": self.runner.runtime.standard_only, "precision": self.runner.runtime.precision}
        traced: Traced = trace(made, *records, **form)
        if not traced.signature.fits(*records):
            traced = trace(made, *records, any_size=True, **form)
        with tempfile.TemporaryDirectory(prefix="parity-", ignore_cleanup_errors=True) as folder:
            graph = self.runner.open_graph(write_graph(traced, Path(folder), "stages", ""), "stages")
            arrays = graph.session(traced.signature.feed(*records))
        for one, array in zip(traced.signature.outputs, arrays, strict=True):
            self.found[one.name] = array.transpose(0, 2, 3, 1) if one.is_image else array
        if fn.__name__ == "forward":
            return self.found.get("logits")
        return self.found[fn.__name__] if fn.__name__ in self.found else traced.signature.result(fn, arrays)


def graph_stages(model: Any, arrays: Mapping[str, Any], switches: Mapping[str, bool]) -> dict[str, np.ndarray]:
    """The stages and outputs of model(**arrays, **switches), a model of device="onnx"."""
    own = model.runner
    model.runner = staged = _Staged(own)
    try:
        result = model(**arrays, **switches)
    finally:
        model.runner = own
    if isinstance(result, np.ndarray):  # the rows of several choices are one
        staged.found["logits"] = result
    if isinstance(model, MaskGenerator):  # whose output is chosen from that of a graph
        staged.found.update(outputs(model, result))
        record: Any = model.record
        for name in record._fields:
            staged.found.pop(name)
    for name in (
        "image_features",
        "text_states",
        *ImageStates._fields,
    ):  # the stage "connector", and what goes to another graph
        staged.found.pop(name, None)
    return staged.found


def _fields(fn: Callable[..., Any], result: Any) -> dict[str, Any]:
    """The output of another method than `forward`: its fields, or an array by the method's name."""
    return {fn.__name__: result} if is_array(result) else result._asdict()


def _itself(array: Any) -> Any:
    return array
