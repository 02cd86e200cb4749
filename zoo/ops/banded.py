"""The chunks by which backends compute attention within a window, as functions of a backend, `ops`.

Shapes: B rows, T tokens, H and G heads of queries and of keys, K head size, N shared keys, M chunks of C tokens.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from ..typing import Array

MIN_CHUNK = 32  # tokens of a chunk, at least


class Chunks:
    """Queries in M chunks of C tokens; those of one see the keys of three, its own and the two around it.

    What is computed for chunks has their rows beside those of the batch: (B m, C, ...).
    """

    def __init__(
        self,
        ops: Any,
        q: Array,
        k: Array,
        v: Array,
        window: int,
        mask: Array | None,
        shared: Any,
        scale: float | None,
        dropout: float,
        aligned: bool,
    ):
        self.aligned = aligned
        self.ops, self.given, self.window, self.mask, self.shared = ops, (q, k, v), window, mask, shared
        self.scale = q.shape[-1] ** -0.5 if scale is None else scale
        self.more = {"dropout": dropout} if dropout else {}
        self.size = window if aligned else max(window, MIN_CHUNK)
        self.length = q.shape[1]
        self.count = (self.length + self.size - 1) // self.size

    @cached_property
    def padded_arrays(self) -> tuple[Array, Array, Array]:
        """Queries (B, M C, H, K); keys and values (B, (M + 2) C, G, K), with a chunk before and after."""
        rest, C = self.count * self.size - self.length, self.size
        q, k, v = self.given
        return self._pad(q, 0, rest), self._pad(k, C, rest + C), self._pad(v, C, rest + C)

    def _pad(self, x: Array, before: int, after: int) -> Array:
        """x (B, T, ...) with zeros before and after its tokens."""
        first, last = (self.ops.zeros((x.shape[0], n, *x.shape[2:]), x) for n in (before, after))
        return self.ops.cat([first, x, last], 1)

    def _join_neighbours(self, x: Array, first: int, count: int) -> Array:
        """The tokens (B M, 3 C, ...) of padded x that `count` chunks from `first` on see."""
        B, C, rest = x.shape[0], self.size, x.shape[2:]
        parts = [x[:, (first + i) * C : (first + count + i) * C].reshape(B * count, C, *rest) for i in range(3)]
        return self.ops.cat(parts, 1)

    def _repeat(self, x: Array, count: int) -> Array:
        """x (B, N, ...) for each chunk: (B M, N, ...)."""
        return self.ops.cat([x[:, None]] * count, 1).reshape(x.shape[0] * count, *x.shape[1:])

    def hide(self) -> tuple[Any, Any]:
        """The mask (B, (M + 2) C) of padded keys and the bias (1, 1, C, 3 C) of a chunk."""
        ops, C, q = self.ops, self.size, self.given[0]
        if self.aligned:
            return self._pad(self._mask(), C, self.count * C - self.length + C), ops.zeros((1, 1, 1, 3 * C), q)
        apart = ops.arange(3 * C, q)[None] - ops.arange(C, q)[:, None] - C
        zero = ops.zeros((1,), q)
        bias = ops.where((apart <= self.window) & (apart >= -self.window), zero, zero - math.inf)[None, None]
        return self._pad(self._mask(), C, self.count * C - self.length + C), bias

    def attend(self, first: int, count: int, hidden: tuple[Any, Any]) -> Any:
        """The result (B, m C, H, K) for m = `count` chunks from `first` on; hidden: what `hide` gives."""
        (q, keys, values), (mask, bias), ops, C = self.padded_arrays, hidden, self.ops, self.size
        B, _, H, K = q.shape
        q = q[:, first * C : (first + count) * C].reshape(B * count, C, H, K)
        k, v, mask = (self._join_neighbours(x, first, count) for x in (keys, values, mask))
        if self.shared is not None:
            *given, more = self.shared
            k, v, mask = (ops.cat([x, self._repeat(y, count)], 1) for x, y in zip((k, v, mask), given, strict=True))
            rows = ops.zeros((1, 1, bias.shape[2], given[2].shape[1]), bias)
            bias = ops.cat([bias, rows if more is None else rows + more], 3)
        y = ops.attention(q, k, v, None, mask, bias, None, self.scale, **self.more)
        return y.reshape(B, count * C, H, K)

    def attend_in_parts(self, tokens: int) -> Any:
        """The result (B, T, H, K), of so many chunks at a time that they have at least `tokens` tokens."""
        if self.length <= self.window + 1 and not self.aligned:
            return self.attend_to_all()
        each, hidden, parts = -(-tokens // self.size), self.hide(), []
        for first in range(0, self.count, each):
            parts.append(self.attend(first, min(each, self.count - first), hidden))
        return self.ops.cat(parts, 1)[:, : self.length]

    def attend_to_all(self) -> Any:
        """The result for texts that are no longer than the window: a query sees all of its row."""
        (q, k, v), mask, ops, shared = self.given, self.mask, self.ops, self.shared
        if shared is not None:
            k, v = ops.cat([k, shared.keys], 1), ops.cat([v, shared.values], 1)
            mask = ops.cat([self._mask(), shared.mask], 1)
        return ops.attention(q, k, v, None, mask, None, None, self.scale, **self.more)

    def _mask(self) -> Array:
        """(B, T): True for the keys that are not hidden."""
        if self.mask is not None:
            return self.mask
        B, T = self.given[0].shape[:2]
        return (self.ops.arange(B * T, self.given[0]) >= 0).reshape(B, T)
