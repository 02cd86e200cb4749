"""Keys and values of earlier rows, for prompts that begin alike (Zheng et al. 2023, https://arxiv.org/abs/2312.07104)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import ops
from ..cache import KVCache, state_keys

BLOCK = 16  # tokens that are kept, found and forgotten together
PREFIX_CACHE_BYTES = 256 << 20  # keys and values


class Prefixes:
    """A tree of blocks of tokens, in bounded memory: the block that was not used for longest makes room for a new one.

    A block is known by the block before it and its own tokens, so rows that begin alike share memory.  Blocks of layers
    with a window are kept while a cache has them, and of those only the last ones are put into another cache.  Of
    layers with a state, the state after the tokens that a cache has dropped is kept, too: rows go on from such a place.
    Whoever measures how long a prompt takes learns whether it was known, so a block is found by its owner alone.
    most: bytes of keys and values; they are allocated with the first row.
    """

    def __init__(self, most: int = PREFIX_CACHE_BYTES):
        self.most, self.block_bytes = most, 0
        # (the memory of the block before, or the owner of a first block; tokens) -> memory; later ones were used later,
        # and a block after those that follow it, so that the first one is the end of a branch.
        self._known: OrderedDict[tuple[int | str, bytes], int] = OrderedDict()
        self._memory: list[Any] = []  # of each layer's keys, then values: (blocks, BLOCK, G, K)
        # A block that is known -> of each layer with a state the values of its places after it.  Later ones were used
        # later; they have `most` bytes of their own.
        self._states: OrderedDict[tuple[int | str, bytes], dict[int, Any]] = OrderedDict()

    @property
    def bytes(self) -> int:
        """Bytes of the keys and values, and of the states, that are known."""
        return len(self._known) * self.block_bytes + sum(map(_bytes_of, self._states.values()))

    def match(self, ids: np.ndarray, cache: KVCache, owner: str = "") -> int:
        """Put the longest beginning that an owner's rows had into an empty cache of one row -> its number of tokens."""
        found = self._path(_blocks(ids), owner)
        before, values = self._state_before(found, cache) if cache.states else (None, {})
        if before is not None:
            found = found[: before + cache.window_capacity // BLOCK]
        if not found:
            return 0
        self._use(found)
        count = len(found) * BLOCK
        at: Any = ops.as_ids([self._known[key] for key in found], cache.start, "blocks", len(self._known), ndim=1)
        # The blocks that layers with a window attend to.
        last = at[max(0, count - cache.window_tokens) // BLOCK if before is None else before :]
        of = [last if i in cache.window_layers else at for i in range(len(cache.keys))]
        tokens = [x[own].reshape(-1, *x.shape[2:]) for own, x in zip([*of, *of], self._memory, strict=True)]
        keys, others = tokens[: len(of)], tokens[len(of) :]
        for i, shape in cache.states.items():
            keys[i] = ops.cat([state_keys(shape, keys[i])[0], keys[i]], 0)
            state = values.get(i)
            others[i] = ops.cat(
                [ops.zeros((shape.size, *others[i].shape[1:]), others[i]) if state is None else state, others[i]], 0
            )
        cache.take(zip(keys, others, strict=True), count)
        return count

    def insert(self, ids: np.ndarray, cache: KVCache, row: int = 0, owner: str = "") -> None:
        """Keep the whole blocks of an owner's tokens, whose keys and values a row of a cache begins with.

        Of blocks that layers with a window have dropped nothing is kept that was not before.
        """
        arrays: list[Any] = [*cache.keys, *cache.values]
        if not self._memory:
            self.block_bytes = sum(x[0, :1].nbytes for x in arrays) * BLOCK
            if (room := self.most // self.block_bytes) < 1:
                return
            self._memory = [ops.zeros((room, BLOCK, *x.shape[2:]), x) for x in arrays]
        room = len(self._memory[0])
        blocks = _blocks(ids)[:room]
        path = self._path(blocks, owner)
        self._use(path)
        before, dropped = len(path), int(cache.dropped_counts[row]) if cache.window_layers else 0
        if dropped > before * BLOCK:
            return
        for block in blocks[before:]:
            at = len(self._known) if len(self._known) < room else self._forget()
            path.append((self._known[path[-1]] if path else owner, block))
            self._known[path[-1]] = at
        self._use(path)
        if new := [self._known[key] for key in path[before:]]:
            at: Any = ops.as_ids(new, cache.start, "blocks", room, ndim=1)
            for i, (x, memory) in enumerate(zip(arrays, self._memory, strict=True)):
                layer = i % len(cache.keys)
                own = dropped - cache.state_places(layer) if layer in cache.window_layers else 0
                some = x[row, before * BLOCK - own : len(path) * BLOCK - own]
                memory[at] = some.reshape(len(new), BLOCK, *x.shape[2:])
        if cache.states and 0 < dropped <= len(path) * BLOCK and dropped % BLOCK == 0:
            self._keep_state(path[dropped // BLOCK - 1], cache, row)

    def _keep_state(self, block: tuple[int | str, bytes], cache: KVCache, row: int) -> None:
        """Keep the states of a row after a block, the last that it has dropped, in the place of those least used."""
        if block not in self._states:
            self._states[block] = {i: 1 * cache.values[i][row, : shape.size] for i, shape in cache.states.items()}
        self._states.move_to_end(block)
        size = _bytes_of(self._states[block])
        while len(self._states) * size > self.most:
            self._states.popitem(last=False)

    def _state_before(self, path: list[tuple[int | str, bytes]], cache: KVCache) -> tuple[int, dict[int, Any]]:
        """The number of blocks at the beginning of a path after which the states are known, and these."""
        for count in range(len(path) - -(-cache.window // BLOCK), 0, -1):
            if (found := self._states.get(path[count - 1])) is not None:
                self._states.move_to_end(path[count - 1])
                return count, found
        return 0, {}

    def _forget(self) -> int:
        """Forget the block that was not used for longest -> its memory."""
        block, at = self._known.popitem(last=False)
        self._states.pop(block, None)
        return at

    def clear(self) -> None:
        self._known.clear()
        self._states.clear()

    def _path(self, blocks: Iterable[bytes], owner: str) -> list[tuple[int | str, bytes]]:
        """The keys of the blocks at the beginning that are known."""
        path: list[tuple[int | str, bytes]] = []
        at: int | str = owner
        for block in blocks:
            if (found := self._known.get((at, block))) is None:
                break
            path.append((at, block))
            at = found
        return path

    def _use(self, path: list[tuple[int | str, bytes]]) -> None:
        for key in reversed(path):
            self._known.move_to_end(key)


def _bytes_of(states: dict[int, Any]) -> int:
    return sum(x.nbytes for x in states.values())


def _blocks(ids: np.ndarray) -> list[bytes]:
    """The tokens of each whole block."""
    return [ids[at : at + BLOCK].tobytes() for at in range(0, len(ids) - BLOCK + 1, BLOCK)]
