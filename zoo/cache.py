"""The keys and values of the tokens that a decoder has already seen."""

from __future__ import annotations

import numpy as np

from . import ops
from .errors import InputError
from .typing import Array


class KVCache:
    """Room for `capacity` tokens in each of B rows, allocated once.

    start (B,) counts the tokens that each row holds, where the keys are; `counts` are the same numbers in NumPy, and
    `length` the largest of them.  `cross` has for each layer the keys, values and mask of an encoder's states, C of
    each: B is a multiple of C, and the B / C rows that share states follow one another.
    Shapes: B batch, S capacity, T new tokens, G key heads, K head size.
    """

    def __init__(self, layers: int, batch: int, capacity: int, heads: int, size: int, like: Array):
        if capacity < 1 or batch < 1:
            raise InputError(f"a cache for {batch} rows of {capacity} tokens: wanted at least one of each")
        self.capacity = capacity
        self.counts = np.zeros(batch, np.int64)
        self.start = ops.as_ids(self.counts, like, "start", capacity, ndim=1)
        self.keys = [ops.zeros((batch, capacity, heads, size), like) for _ in range(layers)]
        self.values = [ops.zeros((batch, capacity, heads, size), like) for _ in range(layers)]
        self.cross: dict[int, tuple[Array, Array, Array | None]] = {}

    @property
    def length(self) -> int:
        return int(self.counts.max())

    def check(self, batch: int) -> None:
        """Refuse another number of rows than there are."""
        if batch != len(self.counts):
            raise InputError(f"input_ids have {batch} rows, but the cache was made for {len(self.counts)}")

    def extend(self, layer: int, k: Array, v: Array) -> tuple[Array, Array]:
        """Store k and v (B, T, G, K) of one layer after what each row holds -> all so far, (B, length + T, G, K)."""
        batch, T = k.shape[:2]
        self.check(batch)
        total = self.length + T
        if total > self.capacity:
            raise InputError(f"the cache holds {self.capacity} tokens: {self.length} are in it, {T} more do not fit")
        ops.write_(self.keys[layer], k, self.start)
        ops.write_(self.values[layer], v, self.start)
        return self.keys[layer][:, :total], self.values[layer][:, :total]

    def advance(self, count: int | np.ndarray) -> None:
        """Every layer has stored `count` more tokens; (B,) of them where rows differ, the others being padding.

        A negative count takes back the last tokens: they are overwritten by the next.
        """
        counts = self.counts + count
        start = ops.as_ids(counts, self.start, "start", self.capacity + 1, ndim=1)
        self.counts, self.start = counts, start  # at once: an interrupt may come at any call

    def last(self, x: Array, lengths: np.ndarray | None) -> Array:
        """The state of each row's last token, after a call on rows that are padded on the right.

        x (B, T, D) -> (B, D).  lengths (B,): how many tokens are a row's own, None for all; padding is taken back.
        """
        batch, T = x.shape[:2]
        if lengths is None:
            return x[:, -1]
        lengths = self.checked(lengths, T)
        self.advance(lengths - T)
        return x[ops.arange(batch, x), ops.as_ids(lengths - 1, x, "lengths", T, ndim=1)]

    def checked(self, lengths: np.ndarray, T: int) -> np.ndarray:
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
        self.counts = self.counts[index]
        self.start = ops.as_ids(self.counts, self.start, "start", self.capacity + 1, ndim=1)
        if len(index) > batch:
            every = ops.as_ids(index, self.start, "index", batch, ndim=1)
            self.keys = [_repeated(x, every, length) for x in self.keys]
            self.values = [_repeated(x, every, length) for x in self.values]
            return
        moved = np.flatnonzero(index != np.arange(len(index)))
        if len(moved):
            to, of = (ops.as_ids(i, self.start, "index", batch, ndim=1) for i in (moved, index[moved]))
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
        at = ops.as_ids(kept, self.start, "index", count, ndim=1)
        self.cross = {i: (k[at], v[at], None if mask is None else mask[at]) for i, (k, v, mask) in self.cross.items()}


def _repeated(x: Array, index: Array, length: int) -> Array:
    out = ops.zeros((index.shape[0], *x.shape[1:]), x)
    out[:, :length] = x[:, :length][index]
    return out
