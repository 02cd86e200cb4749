"""KVCache: the keys and values of the tokens that a decoder has already seen."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from . import ops
from .errors import InputError
from .typing import Array


class KVCache:
    """Memory for `capacity` tokens in each of B rows, allocated once.

    `counts` (B,) is the number of tokens in each row, in NumPy; `start` is the same on the keys' device, and `length`
    the largest of them.  `cross` has for each layer the keys, values and mask of an encoder's states, C of each: B is a
    multiple of C, and the B / C rows that share states are next to each other.
    Shapes: B batch, S capacity, T new tokens, H heads, G key heads, K head size.

    whole: attention is given the whole cache at every step, since `start` hides the rest; otherwise the filled part.
    """

    def __init__(self, layers: int, batch: int, capacity: int, heads: int, size: int, like: Array):
        if capacity < 1 or batch < 1:
            raise InputError(f"a cache for {batch} rows of {capacity} tokens: expected at least 1 of each")
        self.capacity = capacity
        self.counts = np.zeros(batch, np.int64)
        self._start = ops.as_ids(self.counts, like, "start", capacity, ndim=1)
        self._counted: np.ndarray | None = self.counts  # the counts that `_start` has
        shape = batch, capacity, heads, size
        try:
            self.keys = [ops.zeros(shape, like) for _ in range(layers)]
            self.values = [ops.zeros(shape, like) for _ in range(layers)]
        except (MemoryError, ValueError):  # NumPy raises ValueError if not even the address space is enough
            raise InputError(
                f"not enough memory for a cache of keys and values of shape {shape} for {layers} layers"
            ) from None
        self.cross: dict[int, tuple[Array, Array, Array | None]] = {}
        self._memory: dict[tuple[bool, int], Any] = {}  # of more rows, by `admit`
        self.larger: KVCache | None = None  # the cache whose first rows' memory this one has, by `first`
        self.whole = ops.skips_unseen(like)

    def __getitem__(self, layer: int) -> LayerCache:
        """One layer's part."""
        return LayerCache(self, layer)

    def first(self, rows: int) -> KVCache:
        """An empty cache in the memory of the first rows of this one, into whose other rows `select` repeats rows."""
        new = copy.copy(self)
        new.counts, new._start, new._counted = np.zeros(rows, np.int64), self._start[:rows], None
        new.keys, new.values, new.cross = [x[:rows] for x in self.keys], [x[:rows] for x in self.values], {}
        new._memory, new.larger = {}, self
        return new

    @property
    def length(self) -> int:
        return int(self.counts.max())

    @property
    def start(self) -> Array:
        """The number of tokens in each row (B,): the same memory at every step, unless `select` adds rows to it."""
        if self._counted is not self.counts:
            ops.assign_(self._start, self.counts)
            self._counted = self.counts
        return self._start

    def check(self, batch: int) -> None:
        """Raise InputError if `batch` is not the number of rows."""
        if batch != len(self.counts):
            raise InputError(f"input_ids have {batch} rows, but the cache was made for {len(self.counts)}")

    def check_room(self, batch: int, T: int) -> None:
        """Raise InputError if T more tokens for each of `batch` rows do not fit."""
        self.check(batch)
        if self.length + T > self.capacity:
            raise InputError(
                f"the cache has room for {self.capacity} tokens: {self.length} are in it, {T} more do not fit"
            )

    def advance(self, count: int | np.ndarray) -> None:
        """Count `count` more tokens, which every layer has stored; (B,) if rows differ, the rest being padding.

        A negative count removes the last tokens.
        """
        counts = self.counts + count
        if counts.min() < 0 or counts.max() > self.capacity:
            raise InputError(
                f"rows of {counts.min()} to {counts.max()} tokens, but the cache has room for {self.capacity}"
            )
        if isinstance(count, np.ndarray):
            self.counts = counts
            return
        # Added in place: a copy would wait for the GPU.  `_counted` is None meanwhile, in case of an interrupt.
        start, self._counted = self.start, None
        start += count
        self._counted = self.counts = counts

    def checked(self, lengths: Array, T: int) -> np.ndarray:
        """The lengths (B,), if they are from 1 to T; InputError otherwise."""
        lengths, batch = np.asarray(lengths, np.int64), len(self.counts)
        if lengths.shape != (batch,) or lengths.min() < 1 or lengths.max() > T:
            raise InputError(f"lengths are {lengths}, expected {batch} numbers from 1 to {T}")
        return lengths

    def select(self, index: np.ndarray) -> None:
        """Replace row i by row index[i]: drops, reorders (beams) or repeats rows.  index (B',)."""
        index, batch, length = np.asarray(index, np.int64), len(self.counts), self.length
        if self.cross:
            self._select_cross(index, batch)
        counts = self.counts[index]
        if len(index) > batch:
            every, larger = ops.as_ids(index, self._start, "index", batch, ndim=1), self.larger
            if larger is not None and len(larger.counts) >= len(index) and _begins(larger.keys[0], self.keys[0]):
                self.counts, self._start = counts, larger._start[: len(index)]
                for mine, memory in ((self.keys, larger.keys), (self.values, larger.values)):
                    mine[:] = [_repeated(x, every, length, more) for x, more in zip(mine, memory, strict=True)]
                return
            self.counts, self._start = counts, ops.zeros((len(index),), self._start)
            self.keys = [_repeated(x, every, length) for x in self.keys]
            self.values = [_repeated(x, every, length) for x in self.values]
            return
        self.counts, self._start = counts, self._start[: len(index)]
        moved = np.flatnonzero(index != np.arange(len(index)))
        if len(moved):
            to, of = (ops.as_ids(i, self._start, "index", batch, ndim=1) for i in (moved, index[moved]))
            for x in (*self.keys, *self.values):
                x[:, :length][to] = x[:, :length][of]
        self.keys, self.values = [x[: len(index)] for x in self.keys], [x[: len(index)] for x in self.values]

    def admit(self, other: KVCache, rows: int) -> None:
        """Append the rows of another cache of the same model, and take the larger of both capacities.

        rows: the number to keep memory for, so that rows come, and go by `select`, without a copy of the others.
        """
        if self.cross or other.cross:
            raise InputError("rows with an encoder's states cannot join a batch: expected a decoder alone")
        batch, total, length = len(self.counts), len(self.counts) + len(other.counts), self.length
        for mine, theirs in ((self.keys, other.keys), (self.values, other.values)):
            for i, (x, new) in enumerate(zip(mine, theirs, strict=True)):
                size = max(x.shape[1], new.shape[1])
                memory = self._memory.get(key := (mine is self.values, i))
                if memory is None or len(memory) < total or memory.shape[1] < size or not _begins(memory, x):
                    memory = self._memory[key] = _zeros_as(x, (max(rows, total), size, *x.shape[2:]))
                    memory[:batch, :length] = x[:, :length]
                memory[batch:total, : other.length] = new[:, : other.length]
                mine[i] = memory[:total]
        self.capacity = max(self.capacity, other.capacity)
        self.counts, self._start = np.append(self.counts, other.counts), ops.zeros((total,), self._start)

    def _select_cross(self, index: np.ndarray, batch: int) -> None:
        """Neighbouring rows still share their encoder's keys and values, if each of these serves equally many rows."""
        count = next(iter(self.cross.values()))[0].shape[0]
        of = index // (batch // count)
        begins = np.flatnonzero(np.append(True, of[1:] != of[:-1]))
        sizes = np.diff(np.append(begins, len(of)))
        kept = of[begins] if (sizes == sizes[0]).all() else of
        if len(kept) == count and (kept == np.arange(count)).all():
            return
        at: Any = ops.as_ids(kept, self.start, "index", count, ndim=1)
        self.cross = {i: (k[at], v[at], None if mask is None else mask[at]) for i, (k, v, mask) in self.cross.items()}


class LayerCache:
    """One layer's part of a `KVCache`."""

    __slots__ = ("_cache", "_layer")

    def __init__(self, cache: KVCache, layer: int):
        self._cache, self._layer = cache, layer

    def extend(self, k: Array, v: Array, masked: bool = False) -> tuple[Array, Array]:
        """Store k and v (B, T, G, K) at each row's end -> all so far, (B, length + T, G, K).

        Of a `whole` cache they are (B, S, G, K), unless masked: then they are as long as their mask, length + T.
        """
        cache, layer = self._cache, self._layer
        cache.check_room(*k.shape[:2])
        ops.write_(cache.keys[layer], k, cache.start)
        ops.write_(cache.values[layer], v, cache.start)
        return self._seen(k.shape[1], masked)

    def extend_rotated(
        self,
        q: Array,
        k: Array,
        v: Array,
        cos_sin: tuple[Array, Array],
        masked: bool = False,
        interleaved: bool = False,
    ) -> tuple[Array, Array, Array]:
        """`extend` with q (B, T, H, K) and k rotated by `ops.rope`.

        cos_sin: from `ops.rotary`.  -> the rotated q, and all keys and values so far.
        """
        cache, layer = self._cache, self._layer
        cache.check_room(*k.shape[:2])
        places = cache.keys[layer], cache.values[layer], cache.start
        q = ops.rope_write_(q, k, v, *cos_sin, *places, interleaved=interleaved)
        return (q, *self._seen(k.shape[1], masked))

    @property
    def cross(self) -> tuple[Array, Array, Array | None] | None:
        """The keys, values and mask of an encoder's states; None before they are set."""
        return self._cache.cross.get(self._layer)

    @cross.setter
    def cross(self, value: tuple[Array, Array, Array | None]) -> None:
        self._cache.cross[self._layer] = value

    def _seen(self, T: int, masked: bool) -> tuple[Array, Array]:
        cache = self._cache
        keys, values = cache.keys[self._layer], cache.values[self._layer]
        if cache.whole and not masked:
            return keys, values
        total = cache.length + T
        return keys[:, :total], values[:, :total]


def _repeated(x: Array, index: Any, length: int, memory: Array | None = None) -> Array:
    out: Any = ops.zeros((index.shape[0], *x.shape[1:]), x) if memory is None else memory[: index.shape[0]]
    out[:, :length] = x[:, :length][index]
    return out


def _begins(memory: Any, x: Any) -> bool:
    """True if an array is the first rows of a memory, whole."""
    at = (lambda y: y.ctypes.data) if isinstance(memory, np.ndarray) else (lambda y: y.data_ptr())
    return memory.shape[1:] == x.shape[1:] and at(memory) == at(x)


def _zeros_as(x: Any, shape: tuple[int, ...]) -> Any:
    """Zeros whose axes have the order in memory of those of x, which an engine may have chosen."""
    if not isinstance(x, np.ndarray):
        return ops.zeros(shape, x)
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    return np.zeros([shape[axis] for axis in order], x.dtype).transpose(np.argsort(order))
