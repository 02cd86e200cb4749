"""The keys and values of the tokens that a decoder has already seen."""

from __future__ import annotations

from . import ops
from .errors import InputError
from .typing import Array


class KVCache:
    """Room for `capacity` tokens in each of B rows, allocated once.

    start (B,) counts the tokens that each row holds; `length` is the count of the longest row.
    Shapes: B batch, S capacity, G key heads, K head size.
    """

    def __init__(self, layers: int, batch: int, capacity: int, heads: int, size: int, like: Array):
        self.capacity, self.length = capacity, 0
        self.start = ops.arange(batch, like) * 0
        self.keys = [ops.zeros((batch, capacity, heads, size), like) for _ in range(layers)]
        self.values = [ops.zeros((batch, capacity, heads, size), like) for _ in range(layers)]
        # A layer's keys and values of the encoder's states, and the mask of these.
        self.cross: dict[int, tuple[Array, Array, Array | None]] = {}

    def extend(self, layer: int, k: Array, v: Array) -> tuple[Array, Array]:
        """Store k and v (B, T, G, K) of one layer -> all keys and values so far, (B, length + T, G, K)."""
        batch, T = k.shape[:2]
        if batch != self.start.shape[0]:
            raise InputError(f"input_ids have {batch} rows, but the cache was made for {self.start.shape[0]}")
        total = self.length + T
        if total > self.capacity:
            raise InputError(f"the cache holds {self.capacity} tokens: {self.length} are in it, {T} more do not fit")
        ops.write_(self.keys[layer], k, self.start)
        ops.write_(self.values[layer], v, self.start)
        return self.keys[layer][:, :total], self.values[layer][:, :total]

    def advance(self, count: int) -> None:
        """Every layer has stored `count` more tokens."""
        self.start = self.start + count
        self.length += count
