"""Runs a decoder's steps by CUDA graphs.

Shapes: B rows of a graph, R of them in use, T tokens, S capacity, V vocab_size.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ... import ops
from ...cache import KVCache
from ...typing import Array

if TYPE_CHECKING:
    from .runner import GraphRunner

MAX_FREE = 2  # slots of ended generations that are kept for the next
CAPACITY = 256  # tokens: capacities of slots are multiples of it, up to the model's positions


class _Slot:
    """The memory of a cache, reused by one generation after another, and the inputs of a step captured on it."""

    def __init__(self, model: Any, rows: int, capacity: int):
        self.shape = rows, capacity
        self.memory: KVCache = model.new_cache(rows, capacity)
        self.static = self.memory.first(rows)
        self.static.whole = True  # sizes do not depend on its length
        self.step = model.tokens(np.zeros((rows, 1), np.int64), cache=self.static)
        assert None not in (self.static.window_start, self.static.shift)  # on the device before a graph reads them
        self.used = rows
        self.tenant: Callable[[], KVCache | None] = lambda: None

    def lend(self, rows: int, capacity: int) -> KVCache:
        for x in (*self.memory.keys, *self.memory.values):  # zeros, so that no NaN of the previous generation is left
            x[:] = 0
        cache = self.memory.first(rows)
        cache.capacity, cache.larger, self.tenant = capacity, None, weakref.ref(cache)
        return cache

    def has_step(self, cache: KVCache) -> bool:
        """True if the graph can compute a step of the cache: it is in this memory.

        Where R rows share an encoder's states, as beams do, the graph's rows must be a multiple of R.
        """
        is_here, rows = _address(cache.keys[0]) == _address(self.memory.keys[0]), len(cache.counts)
        return is_here and all(m is None and self.shape[0] % (rows // len(k)) == 0 for k, _, m in cache.cross.values())

    def take_in(self, cache: KVCache) -> bool:
        """Copy changes to the memory that the graph reads; False if that memory is new."""
        R, own, rows = len(cache.counts), self.static.cross, self.shape[0]
        sizes = {i: (rows * len(k) // R, *k.shape[1:]) for i, (k, _, _) in cache.cross.items()}
        stays = {i: tuple(k.shape) for i, (k, _, _) in own.items()} == sizes
        if not stays:
            own.clear()
            for i, (k, v, _) in cache.cross.items():
                own[i] = ops.zeros(sizes[i], k), ops.zeros((sizes[i][0], *v.shape[1:]), v), None
        for i, (k, v, _) in cache.cross.items():
            places = own[i][0][: len(k)], own[i][1][: len(k)]
            if _address(places[0]) != _address(k):
                places[0][:], places[1][:] = k, v
                cache.cross[i] = *places, None
        if self.used != R:  # unused rows write their tokens to position 0
            self.static.start[R:] = 0
            self.static.window_start[R:] = self.static.shift[R:] = 0
            self.used = R
        assert None not in (cache.start, cache.window_start, cache.shift)  # this updates the counts on the device
        return stays


def _address(x: Any) -> int:
    return x.data_ptr()


class GraphDecoder:
    """A decoder whose steps of one token are captured: one graph for a number of rows and a capacity, at any position.

    Rows that leave the batch stay as padding.  A batch whose rows are moved to other memory continues without a graph.
    """

    def __init__(self, model: Any, runner: GraphRunner):
        self._model, self._runner = model, runner
        self._slots: list[_Slot] = []
        self.config, self.depends_on_length = model.config, model.depends_on_length
        self.changes_at, self.recomputes = getattr(model, "changes_at", None), getattr(model, "recomputes", False)

    @property
    def max_positions(self) -> int:
        return self._model.max_positions

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        """The model's `new_cache`; its memory may be larger than its capacity."""
        most = self.max_positions
        capacity = most if capacity is None else capacity
        if self._runner.failed or self._model.depends_on_length or not (batch > 0 and 0 < capacity <= most):
            return self._model.new_cache(batch, capacity)
        shape = 1 << (batch - 1).bit_length(), min(-(-capacity // CAPACITY) * CAPACITY, most)
        with self._runner.lock:
            slot = next((slot for slot in self._free() if slot.shape == shape), None)
            if slot is None:
                self._give_up(self._free()[: 1 - MAX_FREE])
                try:
                    slot = _Slot(self._model, *shape)
                except torch.OutOfMemoryError:
                    self._give_up(self._free())
                    slot = _Slot(self._model, *shape)
            else:
                self._slots.remove(slot)
            self._slots.append(slot)  # the most recently used is dropped last
            with self._runner.recorder.turn():
                return slot.lend(batch, capacity)

    def next_logits(self, input_ids: Array | None, lengths: np.ndarray | None, cache: KVCache, **context: Any) -> Array:
        """The model's `next_logits`, by a graph if possible."""
        if input_ids is not None and lengths is None and not context and not self._runner.failed:
            with self._runner.lock:
                slot = next((slot for slot in self._slots if slot.tenant() is (cache.larger or cache)), None)
                logits = None if slot is None else self._step(slot, input_ids, cache)
            if logits is not None:
                return logits
        return self._model.next_logits(input_ids, lengths, cache, **context)

    def every_logits(self, input_ids: Array, cache: KVCache) -> Array:
        """The model's `every_logits`, without a graph: T differs from call to call."""
        return self._model.every_logits(input_ids, cache)

    def _step(self, slot: _Slot, input_ids: Array, cache: KVCache) -> Array | None:
        if np.shape(input_ids)[1:] != (1,) or not slot.has_step(cache):
            return None
        t = self._model.tokens(input_ids, cache=cache)
        R = len(cache.counts)
        cache.check_room(R, 1)
        cache.make_room(1)
        with self._runner.recorder.turn():
            if not slot.take_in(cache):
                self._runner.drop(slot)
            slot.step.input_ids[:R] = t.input_ids
            slot.step.input_ids[R:] = 0
            graph = self._runner.graph(slot, self._model.forward, lambda: slot.step)
            if graph is None:
                return None
            logits = graph()[:R, -1].clone()
        cache.advance(1)
        return logits

    def _free(self) -> list[_Slot]:
        return [slot for slot in self._slots if slot.tenant() is None]

    def _give_up(self, slots: list[_Slot]) -> None:
        for slot in slots:
            self._slots.remove(slot)
            self._runner.drop(slot)
