"""A decoder's steps by ONNX Runtime; `zoo.engines.onnx.step` documents the graph.

Shapes: B rows, T new tokens, S capacity of the cache, G key heads, K head size, V vocab_size; C rows of M encoder
states.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ...cache import KVCache
from ...inputs import Context, TextInputs
from ...inputs.heads import CausalLM
from ...inputs.texts import spans_of_chunks
from ...typing import Array
from .step import CROSS_KEYS, PAST_KEYS, PRESENT_KEYS, trace_cross, trace_step

if TYPE_CHECKING:
    from .runner import OnnxRunner, OpenGraph
    from .trace import Traced

INITIAL_CAPACITY = 64  # capacity of a new cache in tokens; it doubles as the cache grows
CAPACITY_IN_PLACE = 4096  # the same where no graph reads the unused part
SCORES = 1 << 24  # numbers: heads, times tokens of a prompt's chunk, times capacity of the cache
# Tokens of a prompt's chunk.  256 take 0.96 of the time that 128 take, and 60 MB more for a Llama of a billion
# parameters; in int8, whose products take least, 0.92 of the time.
MIN_CHUNK, CHUNK, CHUNK_INT8 = 32, 128, 256


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

    def next_logits(self, input_ids: Array | None, lengths: Array | None, cache: KVCache, **context: Any) -> Array:
        """Logits (B, V) after the last token of each row, as `CausalLM.next_logits` returns them."""
        t = self._model.tokens(input_ids, cache=cache, **context)
        (B, T), ids = t.shape, _tokens_of(t)
        count = np.full(B, T) if lengths is None else cache.check_lengths(lengths, T)
        cache.check_room(B, T)
        if t.context.encoder_states is not None:
            self._cache_encoder_states(cache, t.context)
        types, at = t.token_type_ids, self._mrope_positions(t)
        if types is None and self._runner.in_place(self._model):
            rows = [slice(b, b + 1) for b in range(B)] if T > 1 else [slice(0, B)]
            logits = [self._append(cache, ids[own, : count[own].max()], own, 1, at) for own in rows]
            return np.concatenate(logits)[:, 0]
        logits = None
        for a, b in spans_of_chunks(T, CHUNK, types):
            own = np.clip(count - a, 0, b - a)
            more = {"token_type_ids": types, "mrope_position_ids": at}
            found = self._step(cache, ids[:, a:b], own, {k: x[:, a:b] for k, x in more.items() if x is not None})
            logits = found if logits is None else np.where(own[:, None] > 0, found, logits)
        assert logits is not None
        return logits

    def every_logits(self, input_ids: Array, cache: KVCache) -> Array:
        """Logits (B, T, V) after each of T tokens, as `CausalLM.every_logits` returns them."""
        t = self._model.tokens(input_ids, cache=cache)
        (B, T), ids = t.shape, np.asarray(t.ids, np.int64)
        cache.check_room(B, T)
        at = self._mrope_positions(t)
        if not self._runner.in_place(self._model):
            return self._step(cache, ids, np.full(B, T), {} if at is None else {"mrope_position_ids": at}, every=True)
        logits = [self._append(cache, ids[b : b + 1], slice(b, b + 1), T, at) for b in range(B)]
        return np.concatenate(logits)

    def _mrope_positions(self, t: TextInputs) -> np.ndarray | None:
        """The positions (B, T, 3) of tokens, for a model that has these; None for others."""
        if "mrope_position_ids" not in self._model.inputs or t.mrope_position_ids is not None:
            return None if t.mrope_position_ids is None else np.asarray(t.mrope_position_ids, np.int64)
        assert t.cache is not None
        at = (t.cache.counts + t.cache.shifts)[:, None] + np.arange(t.shape[1])
        return np.repeat(at[:, :, None], 3, 2)

    def _append(
        self, cache: KVCache, ids: np.ndarray, rows: slice, kept: int, at: np.ndarray | None = None
    ) -> np.ndarray:
        """Logits (R, kept, V) after the last of ids (R, T), or of vectors (R, T, D), of some rows, which are added to
        the cache.  R or T is 1.

        at (B, T or more, 3): the positions of all rows, in three axes.
        """
        ensure_capacity(cache, cache.length + ids.shape[1], CAPACITY_IN_PLACE)
        heads = getattr(self.config, "num_attention_heads", self._model.cache_shape[1])
        most = CHUNK_INT8 if self._runner.precision == "int8" else CHUNK
        chunk = max(MIN_CHUNK, min(most, SCORES // (heads * max(x.shape[1] for x in cache.keys))))
        graph, found = self._graph(bool(cache.cross), in_place=True, embeds=ids.ndim == 3), []
        if kept > 1:  # they may be taken back, so that none must be dropped after the first chunk
            cache.make_room(ids.shape[1], rows)
        is_own = np.zeros(len(cache.counts), np.int64)
        is_own[rows] = 1
        for a in range(0, ids.shape[1], chunk):
            some = np.ascontiguousarray(ids[:, a : a + chunk])
            cache.make_room(T := some.shape[1], rows)
            feed = _counts(cache, rows) | {_name_of(some): some, "kept": np.arange(max(0, T - kept), T)}
            if at is not None:
                feed["mrope_position_ids"] = np.ascontiguousarray(at[rows, a : a + T])
            (logits,) = graph.session(feed, self._bind(graph.session, cache, rows))
            found = [*found, logits] if kept > 1 else [logits]
            cache.advance(T * is_own)
        return np.concatenate(found, 1)[:, -kept:]

    def _step(
        self, cache: KVCache, ids: np.ndarray, own: np.ndarray, more: Mapping[str, Any], every: bool = False
    ) -> np.ndarray:
        """Logits (B, V) after the first own[b] tokens of each row of ids (B, T), or of vectors (B, T, D), which are
        added to the cache.

        every: (B, T, V), after each of them.  more: token_type_ids and mrope_position_ids, where the graph has them.
        """
        cache.make_room(ids.shape[1])
        ensure_capacity(cache, cache.length + ids.shape[1])
        every_row = slice(0, len(cache.counts))
        feed = _counts(cache, every_row) | _arrays(cache, every_row) | {_name_of(ids): ids}
        feed |= {} if every else {"last": np.maximum(own - 1, 0)}
        feed |= {name: np.ascontiguousarray(x, np.int64) for name, x in more.items()}
        logits, *new = self._graph(bool(cache.cross), every=every, embeds=ids.ndim == 3).session(feed)
        for i, pair in enumerate(zip(new[::2], new[1::2], strict=True)):
            start = cache.window_counts + cache.state_places(i) if i in cache.window_layers else cache.counts
            for kept, x in zip((cache.keys[i], cache.values[i]), pair, strict=True):
                for b, (at, n) in enumerate(zip(start, own, strict=True)):
                    kept[b, at : at + n] = x[b, :, :n].transpose(1, 0, 2)
        cache.advance(own)
        return logits

    def _graph(self, seen: bool, in_place: bool = False, every: bool = False, embeds: bool = False) -> OpenGraph:
        name = f"{type(self._model).__name__}.step" + ("" if seen or not crosses(self._model) else ", alone")

        def make(precision: Any) -> Traced:
            form: Any = {"in_place": in_place, "every": every, "embeds": embeds, "drops": self._runner.drops_tokens}
            standard = self._runner.runtime.standard_only and not in_place
            return trace_step(self._model, seen, standard, precision, **form)

        form = (", in place" if in_place else ", every" if every else "") + (", vectors" if embeds else "")
        return self._runner.graph_of(name + form, self._model, make)

    def _bind(self, session: Any, cache: KVCache, rows: slice) -> Any:
        """The arrays of some rows of a cache, bound for a session, again only if one of them is another."""
        key = [session, *cache.keys, *cache.values]
        begin, end, before, bound = _bound.get(cache, (0, 0, [], None))
        is_same = (begin, end) == (rows.start, rows.stop) and not cache.cross and len(before) == len(key)
        if bound is None or not is_same or not all(map(operator.is_, before, key)) or not session.is_bound(bound):
            into = {}
            for i, (k, v) in enumerate(zip(cache.keys, cache.values, strict=True)):
                into |= {f"{PRESENT_KEYS}.{i}.{part}": _heads_first(x[rows]) for part, x in (("key", k), ("value", v))}
            bound = session.bind(_arrays(cache, rows), into)
            _bound[cache] = rows.start, rows.stop, key, bound
        return bound

    def _cache_encoder_states(self, cache: KVCache, c: Context) -> None:
        """Store the keys and values of the encoder's states in the cache."""
        name = f"{type(self._model).__name__}.cross"
        graph = self._runner.graph_of(
            name, self._model, lambda precision: trace_cross(self._model, self._runner.runtime.standard_only, precision)
        )
        found = graph.session({"encoder_hidden_states": np.ascontiguousarray(c.encoder_states)})
        for i, (k, v) in enumerate(zip(found[::2], found[1::2], strict=True)):
            cache.cross[i] = k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3), c.encoder_mask


# cache -> first and end row, session and arrays, and their binding, which takes half a millisecond for 18 layers.
_bound: WeakKeyDictionary[KVCache, tuple[int, int, list[Any], Any]] = WeakKeyDictionary()


def _counts(cache: KVCache, rows: slice) -> dict[str, np.ndarray]:
    """The graph's inputs of a cache that are others in every step."""
    feed = {"past_lengths": cache.counts[rows]}
    return feed | {"window_lengths": cache.window_counts[rows]} if cache.window_layers else feed


def _arrays(cache: KVCache, rows: slice) -> dict[str, np.ndarray]:
    """The graph's inputs of a cache: keys and values of some rows, and of their encoder's states."""
    feed = {}
    for i, pair in enumerate(zip(cache.keys, cache.values, strict=True)):
        feed |= _as_inputs(f"{PAST_KEYS}.{i}", *(x[rows] for x in pair))
    for i, (k, v, mask) in cache.cross.items():
        each = len(cache.counts) // len(k)  # rows that share an encoder's states
        own = slice(rows.start // each, -(-rows.stop // each))
        feed |= _as_inputs(f"{CROSS_KEYS}.{i}", k[own], v[own])
        if i == 0:
            mask = np.ones(k.shape[:2]) if mask is None else mask
            feed["encoder_attention_mask"] = np.ascontiguousarray(np.asarray(mask)[own], np.int64)
    return feed


def _tokens_of(t: TextInputs) -> np.ndarray:
    """The ids (B, T), or the vectors (B, T, D) of a prompt with images in it."""
    return np.asarray(t.ids, np.int64) if t.inputs_embeds is None else np.asarray(t.inputs_embeds, np.float32)


def _name_of(tokens: np.ndarray) -> str:
    return "input_ids" if tokens.ndim == 2 else "inputs_embeds"


def crosses(model: CausalLM) -> bool:
    """Return True if a decoder has cross-attention."""
    return bool(getattr(model.config, "add_cross_attention", "encoder_hidden_states" in model.inputs))


def ensure_capacity(cache: KVCache, tokens: int, least: int = INITIAL_CAPACITY) -> None:
    """Lay a cache's keys and values out as a graph reads them; layers that keep all tokens get room for `tokens`."""
    kept = [i for i in range(len(cache.keys)) if i not in cache.window_layers]  # these grow together
    grow = any(tokens > cache.keys[i].shape[1] or not _is_laid_out(cache.keys[i]) for i in kept)
    for arrays in (cache.keys, cache.values):
        for i, x in enumerate(map(np.asarray, arrays)):
            (B, S, G, K), drops, n = x.shape, i in cache.window_layers, cache.tokens_in(i)
            if (grow and not drops) or not _is_laid_out(x):
                wanted = S if drops else min(cache.capacity, max(tokens + least, 2 * n))
                y = np.zeros((B, G, wanted, K), x.dtype).transpose(0, 2, 1, 3)
                y[:, :n] = x[:, :n]
                arrays[i] = y


def _heads_first(x: Any) -> np.ndarray:
    """(B, S, G, K) as a graph has it, (B, G, S, K)."""
    return x.transpose(0, 2, 1, 3)


def _is_laid_out(x: Any) -> bool:
    """True if keys or values (B, S, G, K) lie in memory as a graph reads them."""
    return _heads_first(np.asarray(x)).flags.c_contiguous


def _as_inputs(name: str, k: Any, v: Any) -> dict[str, np.ndarray]:
    """Keys and values (B, S, G, K) as inputs of the graph, (B, G, S, K)."""
    return {f"{name}.{part}": np.ascontiguousarray(_heads_first(x)) for part, x in (("key", k), ("value", v))}
