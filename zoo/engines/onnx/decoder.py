"""A decoder's steps by ONNX Runtime; `zoo.engines.onnx.step` documents the graph.

Shapes: B rows, T new tokens, S capacity of the cache, G key heads, K head size, V vocab_size; C rows of M encoder
states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...cache import KVCache
from ...inputs import Context
from ...inputs.causal import CHUNK, CausalLM
from ...typing import Array
from .step import CROSS, PAST, trace_cross, trace_step

if TYPE_CHECKING:
    from .runner import OnnxRunner

ROOM = 64  # capacity of a new cache in tokens; it doubles as the cache grows


class OnnxDecoder:
    """Stands in for the model in `zoo.generate`.  The model's own cache is used, its arrays laid out as the graph reads
    them, so that nothing is copied.
    """

    def __init__(self, model: CausalLM, runner: OnnxRunner):
        self._model, self._runner = model, runner
        self.config = model.config

    @property
    def max_positions(self) -> int:
        return self._model.max_positions

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        return self._model.new_cache(batch, capacity)

    def next_logits(self, input_ids: Array, lengths: Array | None, cache: KVCache, **context: Any) -> Array:
        """Logits (B, V) after the last token of each row, as `CausalLM.next_logits` returns them."""
        t = self._model.tokens(input_ids, cache=cache, **context)
        (B, T), ids = t.shape, np.asarray(t.ids)
        count = np.full(B, T) if lengths is None else cache.checked(lengths, T)
        cache.check_room(B, T)
        if t.context.encoder_states is not None:
            self._see(cache, t.context)
        logits = None
        for a in range(0, T, CHUNK):
            own = np.clip(count - a, 0, CHUNK)
            found = self._step(cache, ids[:, a : a + CHUNK], own)
            logits = found if logits is None else np.where(own[:, None] > 0, found, logits)
        assert logits is not None
        return logits

    def _step(self, cache: KVCache, ids: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Logits (B, V) after the first own[b] tokens of each row of ids (B, T), which are added to the cache."""
        start, seen = cache.counts, bool(cache.cross)
        room(cache, cache.length + ids.shape[1])
        feed = {"input_ids": ids, "past_lengths": start, "last": np.maximum(own - 1, 0)}
        for i, pair in enumerate(zip(cache.keys, cache.values, strict=True)):
            feed |= _named(f"{PAST}.{i}", *pair)
        for i, (k, v, mask) in cache.cross.items():
            feed |= _named(f"{CROSS}.{i}", k, v)
            if i == 0:
                mask = np.ones(k.shape[:2]) if mask is None else mask
                feed["encoder_attention_mask"] = np.asarray(mask, np.int64)
        name = f"{type(self._model).__name__}.step" + ("" if seen or not crosses(self._model) else ", alone")
        graph = self._runner.made(
            name, self._model, lambda precision: trace_step(self._model, seen, precision=precision)
        )
        logits, *new = graph.session(feed)
        for i, pair in enumerate(zip(new[::2], new[1::2], strict=True)):
            for kept, x in zip((cache.keys[i], cache.values[i]), pair, strict=True):
                for b, (at, n) in enumerate(zip(start, own, strict=True)):
                    kept[b, at : at + n] = x[b, :, :n].transpose(1, 0, 2)
        cache.advance(own)
        return logits

    def _see(self, cache: KVCache, c: Context) -> None:
        """Store the keys and values of the encoder's states in the cache."""
        name = f"{type(self._model).__name__}.cross"
        graph = self._runner.made(name, self._model, lambda precision: trace_cross(self._model, precision=precision))
        found = graph.session({"encoder_hidden_states": np.ascontiguousarray(c.encoder_states)})
        for i, (k, v) in enumerate(zip(found[::2], found[1::2], strict=True)):
            cache.cross[i] = k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3), c.encoder_mask


def crosses(model: CausalLM) -> bool:
    """Return True if a decoder has cross-attention."""
    return bool(getattr(model.config, "add_cross_attention", "encoder_hidden_states" in model.inputs))


def room(cache: KVCache, tokens: int) -> None:
    """Lay a cache's keys and values out as a graph reads them, with a capacity of at least `tokens`."""
    for arrays in (cache.keys, cache.values):
        for i, x in enumerate(map(np.asarray, arrays)):
            B, S, G, K = x.shape
            if tokens > S or not x.transpose(0, 2, 1, 3).flags.c_contiguous:
                wanted = min(cache.capacity, max(tokens + ROOM, 2 * cache.length))
                y = np.zeros((B, G, wanted, K), x.dtype).transpose(0, 2, 1, 3)
                y[:, : cache.length] = x[:, : cache.length]
                arrays[i] = y


def _named(name: str, k: Any, v: Any) -> dict[str, np.ndarray]:
    """Keys and values (B, S, G, K) as inputs of the graph, (B, G, S, K)."""
    return {f"{name}.{part}": np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for part, x in (("key", k), ("value", v))}
