"""Models of texts and of images, called by graphs of a few shapes.

Shapes: B rows, T tokens.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .. import ops
from ..nn import leaves
from ..typing import Array

if TYPE_CHECKING:
    from .graphs import Graphs

# From so many on a GPU is busy for longer than the host takes to launch.
MAX_TOKENS = 4096
MAX_PIXELS = 1 << 20
# Tokens that texts are padded to, so that few graphs serve all lengths.
LENGTHS = (8, 16, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512)


class Texts:
    """A model of texts, which are padded to a few lengths; a row more or less is padding too."""

    def __init__(self, model: Any, graphs: Graphs):
        self.model, self.graphs = model, graphs
        self.signature = inspect.signature(model)
        self.like = next(leaves(model))[1]
        self.most = model.body.embeddings.max_positions
        self._axes: list[int | None] | None = None

    def __call__(self, *args: Any, **options: Any) -> Any:
        given = {k: v for k, v in self.signature.bind(*args, **options).arguments.items() if v is not None}
        arrays = all(isinstance(v, np.ndarray | Tensor) for v in given.values())
        if arrays and "input_ids" in given and given.keys() <= {"input_ids", "attention_mask", "token_type_ids"}:
            with self.graphs.lock:
                found = self._replayed(**given)
            if found is not None:
                return found
        return self.model(*args, **options)

    def _replayed(self, input_ids: Any, attention_mask: Any = None, token_type_ids: Any = None) -> Any:
        cfg = self.model.config
        if self.graphs.failed or input_ids.ndim != 2 or self.model.depends_on_length:
            return None
        ids = ops.as_ids(input_ids, self._beside(input_ids), "input_ids", cfg.vocab_size)
        B, T = (int(n) for n in ids.shape)
        rows, length = 1 << (B - 1).bit_length(), min(padded_length(T), self.most)
        is_padded, pad = (rows, length) != (B, T), -1 if cfg.pad_token_id is None else cfg.pad_token_id
        if rows * length > MAX_TOKENS or self.most < T or (is_padded and not 0 <= pad < cfg.vocab_size):
            return None
        arrays: dict[str, tuple[Array, int]] = {"input_ids": (ids, pad)}
        mask = None
        if attention_mask is not None:
            mask = ops.as_key_mask(attention_mask, self._beside(attention_mask), "attention_mask", (B, T))
        if is_padded or mask is not None:
            arrays["attention_mask"] = np.ones((B, T), bool) if mask is None else mask, 0
        if token_type_ids is not None:
            types = ops.as_ids(token_type_ids, self._beside(token_type_ids), "token_type_ids", cfg.type_vocab_size)
            if tuple(types.shape) != (B, T):
                return None
            arrays["token_type_ids"] = types, 0
        key = self.model, rows, length, *arrays
        kinds = {"attention_mask": torch.bool}

        def inputs() -> dict[str, Tensor]:
            return {k: self.like.new_zeros((rows, length), dtype=kinds.get(k, torch.int64)) for k in arrays}

        if self._axes is None:
            self._axes = self._token_axes()
        graph = self.graphs.get(key, self.model, self.model, inputs)
        if graph is None:
            return None
        with self.graphs.recorder.turn():
            for name, (array, fill) in arrays.items():
                put(graph.inputs[name], array, fill)
            axes = iter(self._axes)
            return _mapped(lambda x: _cut(x, B, next(axes), T), graph())

    def _beside(self, x: Any) -> Array:
        """What is on the host is checked, and padded, there."""
        return self.like if isinstance(x, Tensor) else np.zeros(0)

    def _token_axes(self) -> list[int | None]:
        """For each output the axis that is as long as the text."""
        shapes: list[list[tuple[int, ...]]] = [[], []]
        for T, found in zip((2, 3), shapes, strict=True):
            ids = self.like.new_zeros((1, T), dtype=torch.int64)
            _mapped(lambda x, found=found: found.append(tuple(x.shape)), self.model(ids))
        return [
            next((i for i, (m, n) in enumerate(zip(a, b, strict=True)) if m != n), None)
            for a, b in zip(*shapes, strict=True)
        ]


class Images:
    """A function of images, which come in few sizes: none is padded."""

    def __init__(self, fn: Any, graphs: Graphs):
        self.fn, self.graphs = fn, graphs
        self.model = getattr(fn, "__self__", fn)
        self.signature = inspect.signature(fn)
        self.like = next(leaves(self.model))[1]

    def __call__(self, *args: Any, **options: Any) -> Any:
        given = {k: v for k, v in self.signature.bind(*args, **options).arguments.items() if v is not None}
        arrays = {k: v for k, v in given.items() if isinstance(v, np.ndarray | Tensor)}
        flags = {k: v for k, v in given.items() if isinstance(v, bool)}
        if len(arrays) + len(flags) == len(given) and "pixel_values" in arrays:
            with self.graphs.lock:
                found = self._replayed(arrays, flags)
            if found is not None:
                return found
        return self.fn(*args, **options)

    def _replayed(self, arrays: dict[str, Any], flags: dict[str, bool]) -> Any:
        kinds = {name: _kind(array) for name, array in arrays.items()}
        sizes = {name: tuple(array.shape) for name, array in arrays.items()}
        if None in kinds.values() or int(np.prod(sizes["pixel_values"][:3])) > MAX_PIXELS:
            return None

        def inputs() -> dict[str, Tensor]:
            types = {"float": self.like.dtype, "bool": torch.bool}
            return {k: self.like.new_zeros(sizes[k], dtype=types[kinds[k]]) for k in arrays}  # type: ignore[index]

        key = (self.fn, *flags.items(), *sizes.items(), *kinds.items())
        graph = self.graphs.get(key, self.model, partial(self.fn, **flags), inputs)
        if graph is None:
            return None
        with self.graphs.recorder.turn():
            for name, array in arrays.items():
                ops.assign_(graph.inputs[name], array)
            return _mapped(torch.clone, graph())


def padded_length(T: int) -> int:
    """How many tokens texts of T are padded to."""
    return next((n for n in LENGTHS if n >= T), -(-T // LENGTHS[-1]) * LENGTHS[-1])


def put(memory: Tensor, x: Array, fill: int) -> None:
    """The array into the corner of what a graph reads, and `fill` around it."""
    B, T = x.shape
    if isinstance(x, np.ndarray):
        padded = np.full(tuple(memory.shape), fill, x.dtype)
        padded[:B, :T] = x
        ops.assign_(memory, padded)
        return
    if tuple(x.shape) != tuple(memory.shape):
        memory.fill_(fill)
    memory[:B, :T] = x


def _cut(x: Tensor, rows: int, axis: int | None, length: int) -> Tensor:
    return (x[:rows] if axis is None else x[:rows].narrow(axis, 0, length)).clone()


def _mapped(fn: Callable[[Tensor], Any], out: Any) -> Any:
    """A model's output with fn(tensor) for each of its tensors, in order."""
    if isinstance(out, Tensor):
        return fn(out)
    if isinstance(out, tuple):
        values = [_mapped(fn, value) for value in out]
        return type(out)(*values) if hasattr(out, "_fields") else tuple(values)
    return out


def _kind(x: Any) -> str | None:
    """ "float" or "bool"; None for arrays whose numbers would have to be looked at."""
    name = str(x.dtype).removeprefix("torch.")
    return "bool" if name == "bool" else "float" if "float" in name else None
