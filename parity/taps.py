"""Recording what passes through a zoo model, which knows nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from zoo import ops
from zoo.errors import UnsupportedError
from zoo.nn import Module, is_array

# The attributes of a body that are stages by themselves, and the names of these.  Lists of layers are stages too:
# `layers` is "layer.0", "layer.1", ..., and `encoder_layers` is "encoder.layer.0", ...  The embeddings are the input of
# the first layer, as of the reference: families project them at different places.
PARTS = {"embeddings": "embeddings", "backbone": "features", "positions": "positions"}
CONNECTOR = "connector"  # between an encoder of images and a decoder: a stage of the model that has both

Copy = Callable[[Any], Any]


class Tap(Module):
    """Stands in the place of a module, and keeps a copy of what it returns; `before`: and of what it is given."""

    def __init__(self, inner: Any, name: str, record: dict[str, Any], keep: Copy, before: str | None = None):
        self.inner, self._name, self._record, self._before, self._keep = inner, name, record, before, keep

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self._before is not None and self._name not in self._record:  # a layer may be run several times
            self._record[self._before] = self._keep(args[0])
        out = self.inner(*args, **options)
        self._record[self._name] = self._keep(
            out[0] if isinstance(out, tuple) else out[-1] if isinstance(out, list) else out
        )
        return out

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def body_of(model: Module) -> Any:
    """The first body of a model."""
    return next(iter(bodies_of(model).values()))


def bodies_of(model: Module) -> dict[str, Any]:
    """The modules to look into, those that have embeddings or a backbone and lists of layers, by the prefix of their
    stages: one without a prefix, or several with that of the part: "encoder.", "decoder.".
    """
    found = _bodies(model, set())
    if not found:
        raise UnsupportedError(f"{type(model).__name__} has no part with embeddings and a list of layers to look into")
    return {"": next(iter(found.values()))} if len(found) == 1 else found


def _bodies(node: Module, seen: set[int]) -> dict[str, Any]:
    if id(node) in seen:
        return {}
    seen.add(id(node))
    if _parts(node) and not hasattr(node, CONNECTOR):
        return {"": node}
    found: dict[str, Any] = {"": node} if hasattr(node, CONNECTOR) else {}
    for name, child in vars(node).items():
        if isinstance(child, Module):
            inside = _bodies(child, seen)
            found |= inside if len(inside) > 1 else {f"{name}.": body for body in inside.values()}
    return found


def _parts(node: Any) -> dict[str, str]:
    """Stage -> attribute of a body; nothing for what is none."""
    if hasattr(node, CONNECTOR):
        return {CONNECTOR: CONNECTOR}
    parts = {stage: name for name, stage in PARTS.items() if hasattr(node, name)}
    lists = [name for name, value in vars(node).items() if isinstance(value, list) and name.endswith("layers")]
    if not lists or parts.keys().isdisjoint(("embeddings", "features")):
        return {}
    return parts | {name.removesuffix("s").replace("_layer", ".layer"): name for name in lists}


def copy_of(array: Any) -> np.ndarray:
    return np.array(ops.to_numpy(array))


def stage_attributes(model: Module) -> list[tuple[Any, str]]:
    """The attributes that `tapping` makes stages of: (body, its attribute)."""
    return [(body, name) for body in bodies_of(model).values() for name in _parts(body).values()]


@contextmanager
def tapping(model: Module, keep: Copy = copy_of) -> Iterator[dict[str, Any]]:
    """Within the context each call of `model` writes its stages into the dict: embeddings, layer.0, layer.1, ...

    With several bodies: encoder.embeddings, ..., decoder.embeddings, ...  keep: what is written of an array.
    """
    bodies, record = bodies_of(model), {}
    parts = [(prefix, body, _parts(body)) for prefix, body in bodies.items()]
    places = [(f"{prefix}{stage}", body, name) for prefix, body, of in parts for stage, name in of.items()]
    inner = [getattr(body, name) for _, body, name in places]
    stages = [stage for stage, _, _ in places]
    for (stage, body, name), one in zip(places, inner, strict=True):
        before = f"{stage.removesuffix('layer')}embeddings"
        if isinstance(one, list):
            taps = [Tap(layer, f"{stage}.{i}", record, keep) for i, layer in enumerate(one)]
            if before in stages and one:
                taps[0] = Tap(one[0], f"{stage}.0", record, keep, before)
            setattr(body, name, taps)
        elif not stage.endswith("embeddings"):
            setattr(body, name, Tap(one, stage, record, keep))
    try:
        yield record
    finally:
        for (stage, body, name), one in zip(places, inner, strict=True):
            if not stage.endswith("embeddings"):
                setattr(body, name, one)


def outputs(model: Module, result: Any, keep: Copy = copy_of) -> dict[str, Any]:
    """A model's output by name: the fields of a NamedTuple that are there, or a bare array by what it is."""
    if is_array(result):
        if len(result.shape) == 4 and type(model).__name__.endswith("ForMaskedImageModeling"):
            return {"reconstruction": keep(result)}  # an image
        return {"last_hidden_state" if getattr(model, "is_base_model", False) else "logits": keep(result)}
    return number_fields({name: value for name, value in result._asdict().items() if value is not None}, keep)


def number_fields(fields: Mapping[str, Any], copy: Copy) -> dict[str, Any]:
    """Copies of the fields, those of a tuple as name.0, name.1, ..."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, (tuple, list)):
            found |= {f"{name}.{i}": copy(part) for i, part in enumerate(value)}
        else:
            found[name] = copy(value)
    return found
