"""Recording what passes through a zoo model, which knows nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from zoo import ops
from zoo.errors import UnsupportedError
from zoo.nn import Module, is_array

# What transformers calls the only output of a model, where it is not the logits.
BARE: dict[str, str] = dict.fromkeys(("ViTForMaskedImageModeling", "DeiTForMaskedImageModeling"), "reconstruction")


class _Tap:
    """Stands in the place of a module, and keeps a copy of what it returns."""

    def __init__(self, inner: Any, name: str, record: dict[str, np.ndarray]):
        self._inner, self._name, self._record = inner, name, record

    def __call__(self, *args: Any, **options: Any) -> Any:
        out = self._inner(*args, **options)
        self._record[self._name] = _copy(out[0] if isinstance(out, tuple) else out)
        return out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def body_of(model: Module) -> Any:
    """The module under `model`, or the model itself, that has `embeddings` and a list of `layers`."""
    waiting: list[Any] = [model]
    while waiting:
        node = waiting.pop(0)
        if isinstance(getattr(node, "layers", None), list) and hasattr(node, "embeddings"):
            return node
        waiting += [child for child in vars(node).values() if isinstance(child, Module)]
    raise UnsupportedError(f"{type(model).__name__} has no part with embeddings and a list of layers to look into")


@contextmanager
def tapped(model: Module) -> Iterator[dict[str, np.ndarray]]:
    """Within the context each call of `model` writes its stages into the dict: embeddings, layer.0, layer.1, ..."""
    body, record = body_of(model), {}
    embeddings, layers = body.embeddings, body.layers
    body.embeddings = _Tap(embeddings, "embeddings", record)
    body.layers = [_Tap(layer, f"layer.{i}", record) for i, layer in enumerate(layers)]
    try:
        yield record
    finally:
        body.embeddings, body.layers = embeddings, layers


def outputs(model: Module, result: Any) -> dict[str, np.ndarray]:
    """A model's output by name: the fields of a NamedTuple that are there, or a bare array by what it is."""
    if is_array(result):
        return {BARE.get(type(model).__name__, "logits"): _copy(result)}
    return numbered({name: value for name, value in result._asdict().items() if value is not None}, _copy)


def numbered(fields: Mapping[str, Any], copy: Callable[[Any], np.ndarray]) -> dict[str, np.ndarray]:
    """Copies of the fields, those of a tuple as name.0, name.1, ..."""
    found: dict[str, np.ndarray] = {}
    for name, value in fields.items():
        if isinstance(value, (tuple, list)):
            found |= {f"{name}.{i}": copy(part) for i, part in enumerate(value)}
        else:
            found[name] = copy(value)
    return found


def _copy(array: Any) -> np.ndarray:
    return np.array(ops.to_numpy(array))
