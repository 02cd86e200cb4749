"""A decoder's steps by graphs.

Shapes: B rows that a graph has, R of them that are in use, T tokens, S capacity, V vocab_size.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .. import ops
from ..cache import KVCache
from ..typing import Array
from .calls import put

if TYPE_CHECKING:
    from .graphs import Graphs

MAX_FREE = 2  # caches of ended generations that are kept for the next
CAPACITY = 256  # tokens that a cache's capacity is a multiple of, where the checkpoint has so many positions


class _Room:
    """The memory of a cache, lent to one generation after the other, and the step that is recorded for it."""

    def __init__(self, model: Any, rows: int, capacity: int):
        self.cache = model.new_cache(rows, capacity)
        self.is_whole = self.cache.whole  # what attention likes best without a graph
        self.cache.whole = self.cache.is_held = True
        self.tokens = ops.as_ids(np.zeros((rows, 1), np.int64), self.cache.start, "input_ids", 1)
        self.used = rows
        self.tenant: Callable[[], KVCache | None] = lambda: None
        self.key: Any = None  # of its graph

    def lend(self, rows: int, capacity: int) -> KVCache:
        for x in (*self.cache.keys, *self.cache.values):  # as new: not a NaN of the tenant before may be left
            x.zero_()
        cache = self.cache.lent(rows)
        cache.capacity, cache.whole, cache.is_held = capacity, self.is_whole, False
        self.tenant = weakref.ref(cache)
        return cache

    def holds(self, cache: KVCache) -> bool:
        """Whether a cache still lies here: one whose rows were repeated has moved out."""
        return cache.keys[0].data_ptr() == self.cache.keys[0].data_ptr()

    def take_in(self, cross: dict[int, tuple[Array, Array, Array | None]]) -> bool:
        """Copy what an encoder gave to where the graph reads it; whether the graph of before is of no use now."""
        gone = self.cache.cross.keys() - cross.keys()  # a decoder that does with and without an encoder
        moved = bool(gone)
        for layer in gone:
            del self.cache.cross[layer]
        for layer, (k, v, _) in cross.items():
            own = self.cache.cross.get(layer)
            if own is None or own[0].shape[1:] != k.shape[1:]:
                rows, moved = len(self.tokens), True
                own = k.new_zeros((rows, *k.shape[1:])), v.new_zeros((rows, *v.shape[1:])), None
                self.cache.cross[layer] = own
            places = own[0][: len(k)], own[1][: len(v)]
            if places[0].data_ptr() != k.data_ptr():
                places[0].copy_(k)
                places[1].copy_(v)
                cross[layer] = *places, None
        return moved


class Decoder:
    """A decoder whose steps of one token are recorded, at any position: a graph for so many rows of such a capacity.

    Rows that leave the batch go on as padding.  What moves rows to other memory, as beams do, goes on without a graph.
    """

    def __init__(self, model: Any, graphs: Graphs):
        self._model, self._graphs = model, graphs
        self._rooms: list[_Room] = []
        self._where: weakref.WeakKeyDictionary[KVCache, _Room] = weakref.WeakKeyDictionary()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._model(*args, **options)

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        """As the model's; it may lie in more memory than it has room for."""
        most: int = self._model.max_positions
        capacity = most if capacity is None else capacity
        if self._graphs.failed or self._model.depends_on_length or not (batch > 0 and 0 < capacity <= most):
            return self._model.new_cache(batch, capacity)
        rows, length = 1 << (batch - 1).bit_length(), min(-(-capacity // CAPACITY) * CAPACITY, most)
        with self._graphs.lock:
            free = [room for room in self._rooms if room.tenant() is None]
            room = next((r for r in free if (len(r.tokens), r.cache.capacity) == (rows, length)), None)
            if room is None:
                for old in free[: max(0, len(free) - MAX_FREE + 1)]:
                    self._give_up(old)
                try:
                    room = _Room(self._model, rows, length)
                except torch.OutOfMemoryError:
                    for old in [room for room in self._rooms if room.tenant() is None]:
                        self._give_up(old)
                    room = _Room(self._model, rows, length)
            else:
                self._rooms.remove(room)
            self._rooms.append(room)  # the last used is the last to be given up
            with self._graphs.recorder.turn():
                cache = room.lend(batch, capacity)
            self._where[cache] = room
        return cache

    def _give_up(self, room: _Room) -> None:
        self._rooms.remove(room)
        self._graphs.drop(room.key)

    def next_logits(self, input_ids: Array, lengths: Array | None, cache: KVCache, **context: Any) -> Array:
        """As the model's."""
        room = self._where.get(cache)
        is_step = isinstance(input_ids, np.ndarray | Tensor) and tuple(input_ids.shape) == (len(cache.counts), 1)
        if room is not None and is_step and lengths is None and not context:
            with self._graphs.lock:
                logits = self._step(room, input_ids, cache)
            if logits is not None:
                return logits
        return self._model.next_logits(input_ids, lengths, cache, **context)

    def encode(self, *args: Any, **options: Any) -> Any:
        """As the model's, of one that reads images."""
        return self._graphs.images(self._model.encode)(*args, **options)

    def _step(self, room: _Room, input_ids: Array, cache: KVCache) -> Array | None:
        R = len(cache.counts)
        shared = any(mask is not None or len(k) != R for k, _, mask in cache.cross.values())
        if self._graphs.failed or shared or not room.holds(cache):
            return None
        on_host = isinstance(input_ids, np.ndarray)
        ids = ops.as_ids(input_ids, np.zeros(0) if on_host else room.tokens, "input_ids", self._vocabulary)
        cache.check_room(R, 1)
        with self._graphs.recorder.turn():
            if room.take_in(cache.cross):
                self._graphs.drop(room.key)
                room.key = None
            if room.used != R:  # of those that left, the tokens go where they do no harm
                room.cache.start[R:] = 0
                room.used = R
            cache.tell()
            put(room.tokens, ids, 0)
            if room.key is None:
                room.key = object()
            graph = self._graphs.get(room.key, self._model, partial(self._recorded, room), dict)
            if graph is None:
                return None
            logits = graph()[:R].clone()
        cache.advance(1)
        return logits

    def _recorded(self, room: _Room) -> Array:
        return self._model.next_logits(room.tokens, None, room.cache)

    @property
    def _vocabulary(self) -> int:
        config = self._model.config
        return getattr(config, "decoder", config).vocab_size
