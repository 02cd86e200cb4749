"""The keys and values of the tokens that a decoder has already seen."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from . import ops
from .errors import InputError
from .typing import Array


class KVCache:
    """Room for `capacity` tokens in each of B rows, allocated once.

    `counts` (B,) says in NumPy how many tokens each row holds, `start` the same where the keys are, and `length` is the
    largest of them.  `cross` has for each layer the keys, values and mask of an encoder's states, C of each: B is a
    multiple of C, and the B / C rows that share states follow one another.
    Shapes: B batch, S capacity, T new tokens, H heads, G key heads, K head size.

    whole: attention is given all of the cache at every step, since `start` hides what lies beyond; otherwise as much
    as there is by then.
    """

    def __init__(self, layers: int, batch: int, capacity: int, heads: int, size: int, like: Array):
        if capacity < 1 or batch < 1:
            raise InputError(f"a cache for {batch} rows of {capacity} tokens: wanted at least one of each")
        self.capacity = capacity
        self.counts = np.zeros(batch, np.int64)
        self._start = ops.as_ids(self.counts, like, "start", capacity, ndim=1)
        self._told: np.ndarray | None = self.counts  # the counts that `_start` has
        shape = batch, capacity, heads, size
        try:
            self.keys = [ops.zeros(shape, like) for _ in range(layers)]
            self.values = [ops.zeros(shape, like) for _ in range(layers)]
        except (MemoryError, ValueError):  # of NumPy, the second where not even the address space is enough
            raise InputError(f"not enough memory for a cache of {layers} layers of shape {shape}, twice") from None
        self.cross: dict[int, tuple[Array, Array, Array | None]] = {}
        self.whole = ops.skips_unseen(like)

    def __getitem__(self, layer: int) -> LayerCache:
        """The part of one layer."""
        return LayerCache(self, layer)

    def first(self, rows: int) -> KVCache:
        """An empty cache in the memory of the first rows of this one."""
        new = copy.copy(self)
        new.counts, new._start, new._told = np.zeros(rows, np.int64), self._start[:rows], None
        new.keys, new.values, new.cross = [x[:rows] for x in self.keys], [x[:rows] for x in self.values], {}
        return new

    @property
    def length(self) -> int:
        return int(self.counts.max())

    @property
    def start(self) -> Array:
        """(B,) how many tokens each row holds: the same memory from step to step, for as long as no rows come in."""
        if self._told is not self.counts:
            ops.assign_(self._start, self.counts)
            self._told = self.counts
        return self._start

    def check(self, batch: int) -> None:
        """Refuse another number of rows than there are."""
        if batch != len(self.counts):
            raise InputError(f"input_ids have {batch} rows, but the cache was made for {len(self.counts)}")

    def check_room(self, batch: int, T: int) -> None:
        """Refuse T more tokens for each of `batch` rows where they do not fit."""
        self.check(batch)
        if self.length + T > self.capacity:
            raise InputError(f"the cache holds {self.capacity} tokens: {self.length} are in it, {T} more do not fit")

    def advance(self, count: int | np.ndarray) -> None:
        """Every layer has stored `count` more tokens; (B,) of them where rows differ, the others being padding.

        A negative count takes back the last tokens: they are overwritten by the next.
        """
        counts = self.counts + count
        if counts.min() < 0 or counts.max() > self.capacity:
            raise InputError(f"rows of {counts.min()} to {counts.max()} tokens, but the cache holds {self.capacity}")
        if isinstance(count, np.ndarray):
            self.counts = counts
            return
        # Added where it lies: a copy would wait for a GPU.  An interrupt may come at any call, until all is said.
        start, self._told = self.start, None
        start += count
        self._told = self.counts = counts

    def checked(self, lengths: Array, T: int) -> np.ndarray:
        """How many of T tokens are each row's own, (B,) from 1 to T."""
        lengths, batch = np.asarray(lengths, np.int64), len(self.counts)
        if lengths.shape != (batch,) or lengths.min() < 1 or lengths.max() > T:
            raise InputError(f"lengths are {lengths}, expected {batch} numbers from 1 to {T}")
        return lengths

    def select(self, index: np.ndarray) -> None:
        """Row i becomes what row index[i] was: rows leave, change places (beams), or repeat.  index (B',)."""
        index, batch, length = np.asarray(index, np.int64), len(self.counts), self.length
        if self.cross:
            self._select_cross(index, batch)
        counts = self.counts[index]
        if len(index) > batch:
            self.counts, self._start = counts, ops.zeros((len(index),), self._start)
            every = ops.as_ids(index, self._start, "index", batch, ndim=1)
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

    def _select_cross(self, index: np.ndarray, batch: int) -> None:
        """Rows that follow one another go on sharing their encoder's keys and values, if all have equally many."""
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
    """One layer's part of a `KVCache`: what the layer is given."""

    __slots__ = ("_cache", "_layer")

    def __init__(self, cache: KVCache, layer: int):
        self._cache, self._layer = cache, layer

    def extend(self, k: Array, v: Array, masked: bool = False) -> tuple[Array, Array]:
        """Store k and v (B, T, G, K) after what each row holds -> all so far, (B, length + T, G, K).

        Of a `whole` cache they are (B, S, G, K), unless masked: a mask goes with them, which is length + T long.
        """
        cache, layer = self._cache, self._layer
        cache.check_room(*k.shape[:2])
        ops.write_(cache.keys[layer], k, cache.start)
        ops.write_(cache.values[layer], v, cache.start)
        return self._seen(k.shape[1], masked)

    def extend_rotated(
        self, q: Array, k: Array, v: Array, cos_sin: tuple[Array, Array], masked: bool = False
    ) -> tuple[Array, Array, Array]:
        """`extend` by keys that `ops.rope` rotates, as it rotates q (B, T, H, K).

        cos_sin: of their tokens.  -> q, and all keys and values so far.
        """
        cache, layer = self._cache, self._layer
        cache.check_room(*k.shape[:2])
        q = ops.rope_write_(q, k, v, *cos_sin, cache.keys[layer], cache.values[layer], cache.start)
        return (q, *self._seen(k.shape[1], masked))

    @property
    def cross(self) -> tuple[Array, Array, Array | None] | None:
        """Keys, values and mask of an encoder's states; None before they were seen."""
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


def _repeated(x: Array, index: Any, length: int) -> Array:
    out = ops.zeros((index.shape[0], *x.shape[1:]), x)
    out[:, :length] = x[:, :length][index]
    return out
