"""KVCache: the keys and values of the tokens that a decoder has already seen."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..errors import InputError
from ..typing import Array
from .layer import LayerCache
from .states import StateShape, state_keys

# Tokens of a prompt that pass through the layers at a time: that bounds memory, and fills a matrix product; a GPU needs
# larger ones, and has the memory.
CHUNK, CHUNK_GPU = 512, 4096
# Of a layer whose tokens attend within a window, a cache keeps the window, and as many tokens before it, which can be
# taken back; with room for a chunk of new ones.  Then older ones are dropped.
SPARE_TOKENS = 64
STATE_STEP = 16  # tokens that become part of a state together
ALL_ROWS = slice(None)


def layer_capacities(layers: int, capacity: int, windows: Sequence[int | None] = (), chunk: int = CHUNK) -> list[int]:
    """The tokens of a row that each layer has memory for; arguments as for a `KVCache`."""
    kept = max((window for window in windows if window is not None), default=0) + SPARE_TOKENS
    slides = [i < len(windows) and windows[i] is not None for i in range(layers)]
    return [min(capacity, kept + chunk) if one else capacity for one in slides]


class RowCopy:
    """What is known of each row in NumPy, copied to the keys' device once it is another array.

    memory (B,) is the same at every step: a recorded step reads it there.
    """

    def __init__(self, memory: Array):
        self.memory = memory
        self._copied: tuple[np.ndarray, ...] = ()  # the arrays that the memory has the numbers of

    def read(self, numbers: np.ndarray, *less: np.ndarray) -> Array:
        """The memory, with these numbers (B,), less those of another array."""
        arrays = (numbers, *less)
        if [id(x) for x in self._copied] != [id(x) for x in arrays]:
            ops.assign_(self.memory, numbers - less[0] if less else numbers)
            self._copied = arrays
        return self.memory

    def add(self, count: int, numbers: np.ndarray, sums: np.ndarray, *less: np.ndarray) -> None:
        """Let the memory have the sums of the numbers and `count`: in place, since a copy would wait for the GPU."""
        memory = self.read(numbers, *less)
        self._copied = ()  # in case of an interrupt
        memory += count
        self._copied = (sums, *less)

    def for_rows(self, rows: int) -> RowCopy:
        """A copy for another number of rows: in the memory of the first ones, or in new memory if there are more."""
        return RowCopy(self.memory[:rows] if rows <= len(self.memory) else ops.zeros((rows,), self.memory))


class KVCache:
    """Memory for `capacity` tokens in each of B rows, of layers with a window for fewer.

    `counts` (B,) is the number of tokens in each row, in NumPy; `start` is the same on the keys' device, and `length`
    the largest of them.  `cross` has for each layer the keys, values and mask of an encoder's states, C of each: B is a
    multiple of C, and the B / C rows that share states are next to each other.  `dropped_counts` (B,) is the number of
    a row's first tokens that layers with a window no longer have, `window_counts` that of the others.  `shifts` (B,)
    are 0, but for rows whose next position is not the number of their tokens, by which they differ: an image may have
    fewer positions than tokens.
    Shapes: B batch, S capacity, T new tokens, H heads, G key heads, K head size.

    windows: of each layer, the tokens before its own that a token attends to, None for all; a layer without an item has
    no window.  chunk: new tokens that there is room for before any are dropped.  shapes: G and K of each layer, where
    they are not those of all, and the size of values where it is another than that of keys.
    states: of layers that keep a state, whose windows say what is kept of the tokens that can be taken back.
    whole: attention is given the whole cache at every step, since `start` hides the rest; otherwise the filled part.
    """

    def __init__(
        self,
        layers: int,
        batch: int,
        capacity: int,
        heads: int,
        size: int,
        like: Array,
        windows: Sequence[int | None] = (),
        chunk: int = CHUNK,
        shapes: Sequence[tuple[int, ...]] = (),
        states: Mapping[int, StateShape] | None = None,
    ):
        if capacity < 1 or batch < 1:
            raise InputError(f"a cache for {batch} rows of {capacity} tokens: expected at least 1 of each")
        self.capacity = capacity
        self.counts, self.dropped_counts = np.zeros(batch, np.int64), np.zeros(batch, np.int64)
        self.shifts = np.zeros(batch, np.int64)
        ids = ops.as_ids(self.counts, like, "start", capacity, ndim=1)
        self._start, self._window_start, self._shift = (RowCopy(ops.zeros((batch,), ids)) for _ in range(3))
        self.window_layers = [i for i, window in enumerate(windows) if window is not None]
        self.window = max((w for w in windows if w is not None), default=0)
        self.window_tokens = self.window + SPARE_TOKENS  # tokens that are never dropped
        self.states = dict(states or {})
        slots = layer_capacities(layers, capacity, windows, chunk + STATE_STEP * bool(states))
        slots = [n + self.state_places(i) for i, n in enumerate(slots)]
        try:
            each = list(zip(slots, shapes or [(heads, size)] * layers, strict=True))
            self.keys = [ops.zeros((batch, n, *shape[:2]), like) for n, shape in each]
            self.values = [ops.zeros((batch, n, shape[0], shape[-1]), like) for n, shape in each]
        except (MemoryError, ValueError):  # NumPy raises ValueError if not even the address space is enough
            raise InputError(
                f"not enough memory for a cache of keys and values of shape {(batch, capacity, heads, size)} for "
                f"{layers} layers"
            ) from None
        self.cross: dict[int, tuple[Array, Array, Array | None]] = {}
        self._memory: dict[tuple[bool, int], Any] = {}  # of more rows, by `admit`
        self.larger: KVCache | None = None  # the cache whose first rows' memory this one has, by `first`
        self.whole = ops.accepts_full_cache(like)

    def __getitem__(self, layer: int) -> LayerCache:
        """One layer's part."""
        return LayerCache(self, layer)

    def first(self, rows: int) -> KVCache:
        """An empty cache in the memory of the first rows of this one, into whose other rows `select` repeats rows."""
        new = copy.copy(self)
        new.counts, new.dropped_counts, new.shifts = (np.zeros(rows, np.int64) for _ in range(3))
        new._resize_copies(rows)
        new.keys, new.values, new.cross = [x[:rows] for x in self.keys], [x[:rows] for x in self.values], {}
        new._memory, new.larger = {}, self
        return new

    @property
    def length(self) -> int:
        return int(self.counts.max())

    @property
    def start(self) -> Array:
        """The number of tokens in each row (B,): the same memory at every step, unless `select` adds rows to it."""
        return self._start.read(self.counts)

    @property
    def window_start(self) -> Array:
        """`window_counts` (B,) on the keys' device, like `start`; unused, and 0, if no layer has a window."""
        if not self.window_layers:
            return self._window_start.memory
        return self._window_start.read(self.counts, self.dropped_counts)

    @property
    def shift(self) -> Array:
        """`shifts` (B,) on the keys' device, like `start`."""
        return self._shift.read(self.shifts)

    def _resize_copies(self, rows: int, of: KVCache | None = None) -> None:
        """Let the copies on the device have `rows` rows, in the memory of another cache if one is given."""
        of = self if of is None else of
        copies = of._start, of._window_start, of._shift
        self._start, self._window_start, self._shift = (one.for_rows(rows) for one in copies)

    @property
    def window_counts(self) -> np.ndarray:
        """The number of tokens of each row (B,) that layers with a window have."""
        return self.counts - self.dropped_counts

    @property
    def window_capacity(self) -> int:
        """The tokens that a row of a layer with a window has memory for; `capacity` if there is no such layer."""
        if not self.window_layers:
            return self.capacity
        first = self.window_layers[0]
        return self.keys[first].shape[1] - self.state_places(first)

    def tokens_in(self, layer: int) -> int:
        """The tokens of the longest row that a layer has, and before them the places of a state."""
        held = int(self.window_counts.max()) if layer in self.window_layers else self.length
        return self.state_places(layer) + held

    def state_places(self, layer: int) -> int:
        """The places that a layer has for a state, before those of its tokens."""
        return self.states[layer].size if layer in self.states else 0

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

        A negative count removes the last tokens; InputError where a window no longer has what is before them.
        """
        counts = self.counts + count
        if counts.min() < 0 or counts.max() > self.capacity:
            raise InputError(
                f"rows of {counts.min()} to {counts.max()} tokens, but the cache has room for {self.capacity}"
            )
        if np.min(count) < 0:
            if self._lacks(counts).any():
                raise InputError(
                    f"rows of {counts.tolist()} tokens, of which the cache no longer has the window: compute them anew"
                )
            self.dropped_counts = np.where(counts, self.dropped_counts, 0)
        if isinstance(count, np.ndarray):
            self.counts = counts
            return
        self._start.add(count, self.counts, counts)
        if self.window_layers:
            self._window_start.add(count, self.counts, counts, self.dropped_counts)
        self.counts = counts

    def take(self, layers: Iterable[tuple[Array, Array]], count: int) -> None:
        """Begin an empty cache of one row with `count` tokens: each layer's keys and values of all of them, or of the
        last ones in a layer with a window, (n, G, K).
        """
        for i, pair in enumerate(layers):
            places = self.state_places(i)
            for arrays, of in zip((self.keys, self.values), pair, strict=True):
                if places and len(of) > arrays[i].shape[1]:  # nothing before a state's tokens may be left out
                    arrays[i] = _zeros_as(arrays[i], (1, len(of), *of.shape[1:]))
                n = min(len(of), arrays[i].shape[1]) - places
                arrays[i][0, :places], arrays[i][0, places : places + n] = of[:places], of[len(of) - n :]
                if i in self.window_layers:
                    self.dropped_counts = np.array([count - n])
        self.advance(count)

    def rewind(self, counts: np.ndarray | int) -> None:
        """Remove the last tokens of each row, so that `counts` (B,) are left, or none where a window lacks the rest.

        What comes next is the rest of a prompt, which has positions of its own where an image is in it.
        """
        counts, self.shifts = np.minimum(self.counts, counts), np.zeros_like(self.shifts)
        self.advance(np.where(self._lacks(counts), 0, counts) - self.counts)

    def _lacks(self, counts: np.ndarray) -> np.ndarray:
        """True (B,) where rows of these lengths, but for empty ones, lack tokens of their window."""
        return (counts > 0) & (self.dropped_counts > 0) & (counts - self.dropped_counts < self.window)

    def lacks_room(self, T: int, rows: slice = ALL_ROWS) -> bool:
        """True if layers with a window have no room for T more tokens of some rows."""
        return bool(self.window_layers) and int(self.window_counts[rows].max()) + T > self.window_capacity

    def make_room(self, T: int, rows: slice = ALL_ROWS) -> None:
        """Let layers with a window have room for T more tokens of some rows: drop what no later token attends to, or
        grow.
        """
        if not self.lacks_room(T, rows):
            return
        held, slots = self.window_counts, self.window_capacity
        left = held.copy()
        left[rows] = np.minimum(held[rows], self.window_tokens)
        if self.states:
            left = held - (held - left) // STATE_STEP * STATE_STEP
        most, needed = int(left.max()), min(self.capacity, int(left[rows].max()) + T)
        places = np.minimum((held - left)[:, None] + np.arange(most), slots - 1)
        at: Any = ops.as_ids(places, self._start.memory, "index", slots)
        of: Any = ops.as_ids(np.arange(len(held))[:, None], self._start.memory, "index", len(held))
        for i in self.window_layers:
            places = self.state_places(i)
            state = self._state_after(i, held - left) if places else ()
            for k, arrays in enumerate((self.keys, self.values)):
                kept = arrays[i][of, at + places]
                if needed > slots:
                    arrays[i] = _zeros_as(arrays[i], (len(held), places + needed, *kept.shape[2:]))
                arrays[i][:, places : places + most] = kept
                if places:
                    arrays[i][:, :places] = state[k]
        self.dropped_counts = self.counts - left

    def _state_after(self, layer: int, counts: np.ndarray) -> tuple[Array, Array]:
        """What a layer's places of a state have after the first `counts` (B,) of each row's tokens."""
        (G, N, H), keys, values = self.states[layer], self.keys[layer], self.values[layer]
        n, B = N + int(counts.max()), len(counts)
        at = np.arange(n)
        there = (at < N + counts[:, None]) & ((at >= N) | (self.dropped_counts[:, None] > 0))
        on_device: Any = ops.as_ids(there * 1, self._start.memory, "places", 2) > 0
        parts = keys[:, :n, 0, : G * N].reshape(B, n, G, N), values[:, :n, 0].reshape(B, n, H, -1)
        state = ops.ssd_state(ops.StatePast(*parts, keys[:, :n, 0, G * N :], on_device))
        return state_keys(self.states[layer], keys), state.reshape(B, N, 1, -1)

    def check_lengths(self, lengths: Array, T: int) -> np.ndarray:
        """The lengths (B,), if they are from 1 to T; InputError otherwise."""
        lengths, batch = np.asarray(lengths, np.int64), len(self.counts)
        if lengths.shape != (batch,) or lengths.min() < 1 or lengths.max() > T:
            raise InputError(f"lengths are {lengths}, expected {batch} numbers from 1 to {T}")
        return lengths

    def select(self, index: np.ndarray) -> None:
        """Replace row i by row index[i]: drops, reorders (beams) or repeats rows.  index (B',)."""
        index, batch = np.asarray(index, np.int64), len(self.counts)
        if self.cross:
            self._select_cross(index, batch)
        rows, lengths, larger = len(index), [self.tokens_in(i) for i in range(len(self.keys))], self.larger
        if batch < rows:
            if larger is not None and (len(larger.counts) < rows or not all(map(_begins, larger.keys, self.keys))):
                larger = None
            every, nothing = ops.as_ids(index, self._start.memory, "index", batch, ndim=1), [None] * len(lengths)
            keys, values = (nothing, nothing) if larger is None else (larger.keys, larger.values)
            for mine, memory in ((self.keys, keys), (self.values, values)):
                mine[:] = [_repeat_rows(*each, every) for each in zip(mine, lengths, memory, strict=True)]
            self._resize_copies(rows, larger)
        else:
            moved = np.flatnonzero(index != np.arange(rows))
            if len(moved):
                to, of = (ops.as_ids(i, self._start.memory, "index", batch, ndim=1) for i in (moved, index[moved]))
                for x, n in zip((*self.keys, *self.values), 2 * lengths, strict=True):
                    x[:, :n][to] = x[:, :n][of]
            self.keys, self.values = [x[:rows] for x in self.keys], [x[:rows] for x in self.values]
            self._resize_copies(rows)
        self.counts, self.dropped_counts, self.shifts = (
            x[index] for x in (self.counts, self.dropped_counts, self.shifts)
        )

    def admit(self, other: KVCache, rows: int) -> None:
        """Append the rows of another cache of the same model, and take the larger of both capacities.

        rows: the number to keep memory for, so that rows come, and go by `select`, without a copy of the others.
        """
        if self.cross or other.cross:
            raise InputError("rows with an encoder's states cannot join a batch: expected a decoder alone")
        batch, total = len(self.counts), len(self.counts) + len(other.counts)
        for mine, theirs in ((self.keys, other.keys), (self.values, other.values)):
            for i, (x, new) in enumerate(zip(mine, theirs, strict=True)):
                size = max(x.shape[1], new.shape[1])
                memory = self._memory.get(key := (mine is self.values, i))
                if memory is None or len(memory) < total or memory.shape[1] < size or not _begins(memory, x):
                    memory = self._memory[key] = _zeros_as(x, (max(rows, total), size, *x.shape[2:]))
                    memory[:batch, : self.tokens_in(i)] = x[:, : self.tokens_in(i)]
                memory[batch:total, : other.tokens_in(i)] = new[:, : other.tokens_in(i)]
                mine[i] = memory[:total]
        self.capacity = max(self.capacity, other.capacity)
        self.counts = np.append(self.counts, other.counts)
        self.dropped_counts = np.append(self.dropped_counts, other.dropped_counts)
        self.shifts = np.append(self.shifts, other.shifts)
        self._resize_copies(total)

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


def _repeat_rows(x: Array, length: int, memory: Array | None, index: Any) -> Array:
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
