"""LayerCache: one layer's part of a cache, which a model's layer is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..typing import Array
from .states import recent_vectors, state_mask

if TYPE_CHECKING:
    from .kv import KVCache


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
        start = self._room(*k.shape[:2])
        ops.write_(cache.keys[layer], k, start)
        ops.write_(cache.values[layer], v, start)
        return self._keys_and_values(k.shape[1], masked)

    def rotate_and_extend(
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
        start = self._room(*k.shape[:2])  # which may replace the layer's memory
        places = cache.keys[layer], cache.values[layer], start
        q = ops.rope_write_(q, k, v, *cos_sin, *places, interleaved=interleaved)
        return (q, *self._keys_and_values(k.shape[1], masked))

    def recall(self, x: Array, count: int) -> Array:
        """Store vectors (B, T, C) at each row's end -> with the `count` before them, (B, count + T, C); before a row's
        first they are zeros.  A layer of one head has their first features in keys, and the others in values.
        """
        cache, (B, T, _) = self._cache, x.shape
        start = self._room(B, T)
        places = cache.keys[self._layer], cache.values[self._layer]
        before = recent_vectors(*places, start, count)
        K = places[0].shape[-1]
        for place, part in zip(places, (x[..., :K], x[..., K:]), strict=True):
            ops.write_(place, part.reshape(B, T, 1, part.shape[-1]), start)
        return ops.cat([before, x], 1)

    def past(self) -> tuple[Array, Array, Array]:
        """The keys and values of the tokens so far (B, S, G, K), and where a row has one (B, S), before `extend`.

        Of a layer with a state, it comes first, as tokens of its own.
        """
        cache, places = self._cache, self._cache.state_places(self._layer)
        keys, values = cache.keys[self._layer], cache.values[self._layer]
        if not cache.whole:
            total = cache.tokens_in(self._layer)
            keys, values = keys[:, :total], values[:, :total]
        at, start = ops.arange(keys.shape[1], cache.start), cache.start
        if not places:
            return keys, values, at < start[:, None]
        return keys, values, state_mask(at, start, cache.window_start, places)

    def attention_arguments(self, visible: dict[str, Any]) -> dict[str, Any]:
        """Arguments of `ops.attention`, with `start` (B,) and a mask (B, length + T) of the keys that the layer has."""
        cache, mask = self._cache, visible["mask"]
        if self._layer not in cache.window_layers:
            return visible
        if mask is not None and cache.dropped_counts.any():
            rows, width = np.arange(len(cache.counts)), mask.shape[1]
            at = cache.dropped_counts[:, None] + np.arange(width - cache.length + cache.tokens_in(self._layer))
            at = np.minimum(at, width - 1)
            of: Any = [ops.as_ids(x, cache.window_start, "index", width) for x in (rows[:, None], at)]
            mask = mask[of[0], of[1]]
        return {**visible, "start": cache.window_start, "mask": mask}

    def _room(self, batch: int, T: int) -> Array:
        """Where each of the rows (B,) has its next T tokens; InputError if they do not fit."""
        cache = self._cache
        cache.check_room(batch, T)
        cache.make_room(T)
        if self._layer not in cache.window_layers:
            return cache.start
        places = cache.state_places(self._layer)
        return cache.window_start + places if places else cache.window_start

    @property
    def cross(self) -> tuple[Array, Array, Array | None] | None:
        """The keys, values and mask of an encoder's states; None before they are set."""
        return self._cache.cross.get(self._layer)

    @cross.setter
    def cross(self, value: tuple[Array, Array, Array | None]) -> None:
        self._cache.cross[self._layer] = value

    def _keys_and_values(self, T: int, masked: bool) -> tuple[Array, Array]:
        cache = self._cache
        keys, values = cache.keys[self._layer], cache.values[self._layer]
        if cache.whole and not masked:
            return keys, values
        total = cache.tokens_in(self._layer) + T
        return keys[:, :total], values[:, :total]
