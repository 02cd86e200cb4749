"""Recording what passes through a zoo model, which knows nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from zoo import ops
from zoo.errors import UnsupportedError
from zoo.nn import Module, is_array

# What is looked into, for what a model has: the names of the stages, and the attributes that compute them, of which a
# list is a stage for each of its modules.  The embeddings are what goes into the first layer, as of the reference:
# where they end is said differently, since some models project them.
PARTS = (
    {"embeddings": "embeddings", "layer": "layers"},
    {
        "features": "backbone",
        "positions": "positions",
        "encoder.layer": "encoder_layers",
        "decoder.layer": "decoder_layers",
    },
)


Copy = Callable[[Any], Any]


class _Tap:
    """Stands in the place of a module, and keeps a copy of what it returns; `before`: and of what it is given."""

    def __init__(self, inner: Any, name: str, record: dict[str, Any], keep: Copy, before: str | None = None):
        self._inner, self._name, self._record, self._before, self._keep = inner, name, record, before, keep

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self._before is not None:
            self._record[self._before] = self._keep(args[0])
        out = self._inner(*args, **options)
        self._record[self._name] = self._keep(out[0] if isinstance(out, tuple) else out)
        return out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def body_of(model: Module) -> Any:
    """The module under `model`, or the model itself, that has all attributes of one of PARTS."""
    waiting: list[Any] = [model]
    while waiting:
        node = waiting.pop(0)
        if _parts(node):
            return node
        waiting += [child for child in vars(node).values() if isinstance(child, Module)]
    raise UnsupportedError(f"{type(model).__name__} has no part with embeddings and a list of layers to look into")


def bodies_of(model: Module) -> dict[str, Any]:
    """What to look into, by what its stages begin with: one body, or those of an encoder and a decoder."""
    if hasattr(model, "encoder") and hasattr(model, "decoder"):
        return {f"{part}.": body_of(getattr(model, part)) for part in ("encoder", "decoder")}
    return {"": body_of(model)}


def _parts(node: Any) -> dict[str, str]:
    return next((parts for parts in PARTS if all(hasattr(node, name) for name in parts.values())), {})


def _copy(array: Any) -> np.ndarray:
    return np.array(ops.to_numpy(array))


@contextmanager
def tapped(model: Module, keep: Copy = _copy) -> Iterator[dict[str, Any]]:
    """Within the context each call of `model` writes its stages into the dict: embeddings, layer.0, layer.1, ...

    Where there are two bodies: encoder.embeddings, ..., decoder.embeddings, ...  keep: what is written of an array.
    """
    bodies, record = bodies_of(model), {}
    parts = [(prefix, body, _parts(body)) for prefix, body in bodies.items()]
    places = [(f"{prefix}{stage}", body, name) for prefix, body, of in parts for stage, name in of.items()]
    inner = [getattr(body, name) for _, body, name in places]
    stages = [stage for stage, _, _ in places]
    for (stage, body, name), one in zip(places, inner, strict=True):
        before = f"{stage.removesuffix('layer')}embeddings"
        if isinstance(one, list):
            taps = [_Tap(layer, f"{stage}.{i}", record, keep) for i, layer in enumerate(one)]
            if before in stages and one:
                taps[0] = _Tap(one[0], f"{stage}.0", record, keep, before)
            setattr(body, name, taps)
        elif not stage.endswith("embeddings"):
            setattr(body, name, _Tap(one, stage, record, keep))
    try:
        yield record
    finally:
        for (_, body, name), one in zip(places, inner, strict=True):
            setattr(body, name, one)


def outputs(model: Module, result: Any, keep: Copy = _copy) -> dict[str, Any]:
    """A model's output by name: the fields of a NamedTuple that are there, or a bare array by what it is."""
    if is_array(result):
        if len(result.shape) == 4 and type(model).__name__.endswith("ForMaskedImageModeling"):
            return {"reconstruction": keep(result)}  # an image
        return {"last_hidden_state" if getattr(model, "is_body", False) else "logits": keep(result)}
    return numbered({name: value for name, value in result._asdict().items() if value is not None}, keep)


def numbered(fields: Mapping[str, Any], copy: Copy) -> dict[str, Any]:
    """Copies of the fields, those of a tuple as name.0, name.1, ..."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, (tuple, list)):
            found |= {f"{name}.{i}": copy(part) for i, part in enumerate(value)}
        else:
            found[name] = copy(value)
    return found
