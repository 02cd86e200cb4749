"""Random weights of a model: names and shapes are those that its class reads, numbers follow from each array's role.

As in trained models, norms are around 1, embeddings small, biases not 0, and attention is not flat.  A model that
confuses two arrays is found only if they differ: so no value is neutral, and the inputs of the first norms are so
small that their epsilon matters.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from zoo.config import Config
from zoo.nn import (
    BatchNorm,
    Conv2d,
    ConvTranspose2d,
    DepthwiseConv2d,
    GroupNorm,
    LayerNorm,
    Linear,
    Module,
    RMSNorm,
    is_array,
    leaves,
)
from zoo.pretrained import Pretrained
from zoo.typing import RawTensor
from zoo.weights import Random, Reader, RenamedSource, Weights

from .taps import bodies_of

GAINS = {
    "relu": math.sqrt(2),
    "tanh": 1.4,
    "sigmoid": 1.4,
}  # of the product before an activation, which shrinks it
WORD_SCALE = 0.05  # embeddings: the squares of a norm's inputs are then near its epsilon
HEAD = 2.0  # gain of a head, whose choices should be clear
QUERY_GAIN = 1.4  # gain of queries and keys
BEFORE_NORM = 0.15  # gain of a convolution, whose batch norm scales it up again
MASSIVE = 140.0  # the one weight, 1000 times as large as others, that trained models have (arXiv 2411.07191)


NORMS = (LayerNorm, RMSNorm, BatchNorm, GroupNorm)


class Role(NamedTuple):
    """The distribution of values.  above: none is below the mean.  massive: one weight makes a channel large."""

    shape: tuple[int, ...]
    deviation: float
    mean: float = 0.0
    above: bool = False
    massive: bool = False


class _Names(Random):
    """A source that has every name except those in `absent`, with arrays that take no memory."""

    def __init__(self, absent: Collection[str]):
        super().__init__(0)
        self.absent, self.shapes = absent, {}

    def __contains__(self, name: object) -> bool:
        return not str(name).endswith(tuple(self.absent))

    def make(self, name: str, shape: tuple[int, ...]) -> RawTensor:
        self.shapes[name] = shape
        return RawTensor(_ones(shape), "F32")


def _ones(shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(np.float32(1), shape)


def _concatenate(parts: list[np.ndarray], _: Any = None) -> np.ndarray:
    return _ones((sum(part.shape[0] for part in parts), *parts[0].shape[1:]))


_BACKEND: Any = SimpleNamespace(to_parameter=lambda stored, *_: stored.array, rows=_concatenate, cat=_concatenate)


def roles(
    cls: type[Pretrained], config: Config, absent: Collection[str] = (), massive: int | None = None
) -> dict[str, Role]:
    """The tensors that a class reads from a checkpoint, by name.  absent: ends of names that the checkpoint lacks.

    massive: the layer whose MLP makes a channel of the stream massive (Sun et al. 2024).
    """
    source = _Names(absent)
    renamed = RenamedSource(source, cls.name_map, is_base_model=cls.is_base_model, tied=cls.ties(config))
    w = Weights(Reader(renamed, _BACKEND, sizes=config.sizes()))
    model = cls(w, config)
    bodies = list(bodies_of(model).values())
    embedded = {id(array) for body in bodies for _, array in leaves(getattr(body, "embeddings", ()))}
    inner = {id(array) for body in bodies for _, array in leaves(body)}
    loud = None if massive is None else _narrowing(bodies[0].layers[massive])
    every = list(_arrays(model, model, "", ""))
    inner |= _necks([one for one in every if id(one[-1]) not in inner])
    found: dict[str, Role] = {}
    origins = w.reader.reads.parts_of((path, array) for *_, path, array in every)
    for (module, attribute, path, array), parts in zip(every, origins, strict=True):
        for i, part in enumerate(parts):
            shape = source.shapes[part.name]
            has_norm = isinstance(module, NORMS) or (isinstance(module, Conv2d) and module.norm is not None)
            if id(array) in embedded and not has_norm:
                # Embeddings, special tokens, and the projection of patches.
                role = Role(shape, WORD_SCALE / math.sqrt(math.prod(shape[1:])) * 2 if len(shape) == 4 else WORD_SCALE)
            elif isinstance(module, NORMS):
                role = _of_norm(module, attribute, shape)
            elif len(shape) == 1:
                # Outside of the layers of `zoo.nn` only the name tells biases from factors.
                role = Role(shape, 0.05) if part.name.endswith("bias") else Role(shape, 0.05, 0.1)
            elif isinstance(module, (Linear, Conv2d, DepthwiseConv2d, ConvTranspose2d)) or len(parts) == 3:
                asks = (len(parts) == 3 and i < 2) or path.rpartition(".")[2] in ("query", "key", "q", "k")
                role = _of_product(module, shape, QUERY_GAIN if asks else 1.0 if id(array) in inner else HEAD)
            else:
                role = Role(shape, 0.8)  # a table: queries, positions
            found.setdefault(part.name, role._replace(massive=module is loud and len(shape) == 2))
    return {name: found[name] for name in source.shapes}


def _necks(every: Sequence[tuple[Any, str, str, Any]]) -> set[int]:
    """The ids of convolutions whose channels a later one reads: they are no heads, and their gains would multiply."""
    convs = [
        (id(array), *(array.shape[:2] if isinstance(module, Conv2d) else array.shape[1::-1]))
        for module, _, _, array in every
        if isinstance(module, Conv2d | ConvTranspose2d) and array.ndim == 4
    ]
    return {which for i, (which, out, _) in enumerate(convs) if any(out == read for *_, read in convs[i + 1 :])}


def draw(role: Role, name: str, seed: int) -> np.ndarray:
    """Float32 numbers, determined by the name and the seed."""
    x = np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal(role.shape, np.float32)
    x *= np.float32(role.deviation)
    if role.above:
        np.abs(x, out=x)
    if role.mean:
        x += np.float32(role.mean)
    if role.massive:
        x[len(x) // 3, 5] = MASSIVE
    return x


def _narrowing(layer: Module) -> Linear:
    """A layer's linear with the most inputs per output: the last of its MLP."""
    linears = (holder for holder, *_ in _arrays(layer, layer, "", "") if isinstance(holder, Linear))
    return max(linears, key=lambda linear: linear.weight.shape[1] / linear.weight.shape[0])


def _of_norm(norm: Module, attribute: str, shape: tuple[int, ...]) -> Role:
    if attribute == "weight":
        return Role(shape, 0.15, 1.0)
    size = 2 * BEFORE_NORM**2  # mean square of a batch norm's inputs
    return {
        "bias": Role(shape, 0.1),
        "mean": Role(shape, 0.1 * math.sqrt(size)),
        "var": Role(shape, 0.15 * size, size, above=True),
    }[attribute]


def _of_product(module: Any, shape: tuple[int, ...], gain: float) -> Role:
    acts: set[Any] = {getattr(module, "act", None), getattr(module, "post", None)} - {None}
    if getattr(module, "norm", None) is not None:
        gain = math.sqrt(2) * BEFORE_NORM
    elif acts:
        gain = max(GAINS.get(act, 1.0) for act in acts)
    fan_in = shape[0] if isinstance(module, ConvTranspose2d) else math.prod(shape[1:])
    return Role(shape, gain / math.sqrt(fan_in))


def _arrays(node: Any, holder: Any, attribute: str, path: str) -> Iterator[tuple[Any, str, str, Any]]:
    """(module, attribute, path of the module, array) of each parameter below a node."""
    if is_array(node):
        yield holder, attribute, path, node
    elif isinstance(node, Module):
        for name, child in vars(node).items():
            if not name.startswith("_"):
                yield from _arrays(child, node, name, path if is_array(child) else f"{path}.{name}")
    elif isinstance(node, (list, tuple)):
        for child in node:
            yield from _arrays(child, holder, attribute, path)
