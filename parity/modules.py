"""The modules of a model beside its layers: heads, necks, projections, by the names that they have in a checkpoint.

Where transformers' model has a module of the same name with an output of the same shape, the two are a stage, so that a
fault in a neck is not first seen in what the head behind it makes of it.  No row of a table names them.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from zoo.nn import Module
from zoo.pretrained import Pretrained

from .taps import Copy, Tap, copy_of, stage_attributes

PREFIX = "module "  # begins the stage's name
Found = tuple[str, Callable[[Any], None], Any]


def modules_beside_layers(model: Pretrained) -> Iterator[Found]:
    """(name in the checkpoint, a function that puts another in its place, the module) of those with modules inside.

    Of several with one name the outermost, which comes first, is meant.
    """
    names = {path: [part.name for part in parts] for path, _, parts in model.leaves_with_parts()}
    skipped = {(id(body), name) for body, name in stage_attributes(model)}
    seen: set[int | str] = set()

    def of(node: Any, path: str) -> Iterator[Found]:
        for name, child in list(vars(node).items()):
            if (id(node), name) in skipped or name.startswith("_"):
                continue
            listed = isinstance(child, list)
            for i, one in enumerate(child if listed else [child]):
                if not isinstance(one, Module) or isinstance(one, Pretrained) or id(one) in seen:
                    continue
                seen.add(id(one))
                place = f"{path}{name}" + (f".{i}" if listed else "")
                is_layer = type(one).__module__ == Module.__module__  # which may add a residual, or hold a norm
                if not is_layer and callable(one) and (found := _common(names, f"{place}.")) and found not in seen:
                    seen.add(found)
                    put = (lambda new, at=child, i=i: at.__setitem__(i, new)) if listed else _setter(node, name)
                    yield found, put, one
                yield from of(one, f"{place}.")

    yield from of(model, "")


def _setter(node: Any, name: str) -> Callable[[Any], None]:
    return lambda new: setattr(node, name, new)


def _common(names: dict[str, list[str]], place: str) -> str | None:
    """The name of the module that all tensors below a place lie in; None for a layer, whose tensors are its own."""
    inside = [name for path, ones in names.items() if path.startswith(place) for name in ones]
    modules = {name.rpartition(".")[0] for name in inside}
    if len(modules) < 2:
        return None
    return os.path.commonpath([name.replace(".", "/") for name in modules]).replace("/", ".") or None


@contextmanager
def tapped_modules(found: list[Found], record: dict[str, Any], keep: Copy = copy_of) -> Iterator[None]:
    """Within the context these modules write what they return into `record`, as "module NAME"."""
    for name, put, module in found:
        put(Tap(module, f"{PREFIX}{name}", record, keep))
    try:
        yield
    finally:
        for _, put, module in found:
            put(module)


def comparable(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], ...]:
    """Both sides without modules that the other has not, or has with another output."""
    shapes = [{name: array.shape for name, array in side.items()} for side in (ours, theirs)]

    def is_comparable(name: str) -> bool:
        return not name.startswith(PREFIX) or shapes[0].get(name, 0) == shapes[1].get(name, 1)

    return tuple({name: array for name, array in side.items() if is_comparable(name)} for side in (ours, theirs))
