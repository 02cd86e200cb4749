"""A decoder's step as a graph: new tokens in, logits and the new keys and values out.

The cache is the caller's, in arrays (B, G, S, K) of any capacity S, which the graph reads without copying: in row b
only the keys before past_lengths[b] are seen.  One graph serves prompts, their chunks, and single tokens.
In place, the graph also writes the new keys and values to the cache.

Shapes: B rows, T new tokens, S capacity of the cache, W that of layers with a window, G key heads, K head size, V
vocab_size; C rows of encoder states (B is a multiple of C: consecutive rows share one), M states in each, E their
width, H heads; N tokens with logits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import ops
from ...cache import recent_vectors, state_mask
from ...errors import UnsupportedError
from ...inputs import Context, TextInputs
from ...inputs.heads import CausalLM
from .ops import CachedKeys, CachedValues
from .ops.graph import GraphBuilder
from .ops.symbol import BOOL, FLOAT, INT, Symbol
from .signature import GraphInput
from .trace import Traced, as_symbols, finish

PAST_KEYS, PRESENT_KEYS, CROSS_KEYS = "past_key_values", "present", "cross_key_values"
# Lengths in the trace: all distinct, and none is 1.
HINTS = {"B": 6, "T": 5, "S": 7, "C": 3, "M": 11, "N": 4, "W": 13, "Q": 17}


class _Layer:
    """One layer's part of the cache: inputs of the graph, and the keys and values that the layer adds."""

    def __init__(
        self,
        keys: Symbol,
        values: Symbol,
        cross: Any,
        in_place: bool,
        start: Symbol,
        held: Symbol | None,
        state_places: int,
    ):
        self.start, self.state_places = start, state_places
        self.keys, self.values, self.cross = keys, values, cross  # (B, G, S or W, K) twice, and the encoder's
        self.in_place, self.window_start = (
            in_place,
            held,
        )  # window_start (B,): the tokens that a layer with a window has
        self.pair: tuple[CachedKeys, CachedValues]

    def extend(self, k: Any, v: Any, masked: bool = False) -> tuple[Symbol, Symbol]:
        self.pair = CachedKeys(self.keys, k, self.in_place), CachedValues(self.values, v, self.in_place)
        return self.pair

    def rotate_and_extend(
        self, q: Any, k: Any, v: Any, cos_sin: Any, masked: bool = False, interleaved: bool = False
    ) -> tuple[Any, Any, Any]:
        q, k = (ops.rope(x, *cos_sin, interleaved=interleaved) for x in (q, k))
        return (q, *self.extend(k, v))

    def recall(self, x: Any, count: int) -> Any:
        (B, T, _), K = x.shape, self.keys.shape[-1]
        pair: tuple[Any, ...] = self.keys, self.values
        keys, values = (past.transpose(0, 2, 1, 3) for past in pair)
        self.extend(*(part.reshape(B, T, 1, part.shape[-1]) for part in (x[..., :K], x[..., K:])))
        start: Any = self.start if self.window_start is None else self.window_start
        return ops.cat([recent_vectors(keys, values, start, count), x], 1)

    def past(self) -> tuple[Any, Any, Any]:
        pair: tuple[Any, ...] = self.keys, self.values
        keys, values = (past.transpose(0, 2, 1, 3) for past in pair)
        start: Any = self.start
        at = ops.arange(keys.shape[1], start)
        if not self.state_places:
            return keys, values, at < start[:, None]
        held: Any = self.window_start
        return keys, values, state_mask(at, start, held, self.state_places)

    def attention_arguments(self, visible: dict[str, Any]) -> dict[str, Any]:
        return visible if self.window_start is None else {**visible, "start": self.window_start}


def trace_step(
    model: CausalLM,
    cross: bool = False,
    standard: bool = False,
    precision: Any = None,
    in_place: bool = False,
    every: bool = False,
    drops: bool = False,
    embeds: bool = False,
) -> Traced:
    """Trace a step: input_ids (B, T), or with `embeds` inputs_embeds (B, T, D), with token_type_ids (B, T) if the model
    takes these, mrope_position_ids (B, T, 3) likewise, past_lengths (B,), last (B,) and
    past_key_values.I.key and .value (B, G, S, K) -> logits (B, V) after the new token last[b] of each row, and
    present.I.key and .value (B, G, T, K).

    cross: it also takes the encoder's keys and values, cross_key_values.I.key and .value (C, H, M, K), as the graph of
    `trace_cross` returns them, and encoder_attention_mask (C, M).

    in_place: instead of `last` it takes kept (N,), the new tokens of every row after which there are logits (B, N, V),
    since B or T is 1 and no row is padded, and the outputs present are the whole cache (B, G, S, K), which shares the
    memory of past.  K must be a multiple of 8.

    every: the logits are (B, T, V), after each of the new tokens, and there is no `last`.

    drops: the cache of a layer with a window is (B, G, W, K), without a row's first tokens, and window_lengths (B,) are
    the numbers of those that it has.
    """
    step = _Step(model, standard, precision)
    t = step.tokens(embeds)
    kept: Any = step.input("kept", ("N",), INT) if in_place else None
    last: Any = None if in_place or every else step.input("last", ("B",), INT)
    cache = step.cache(cross, in_place, drops)
    x: Any = step.model.base_model.encode(t._replace(cache=cache))
    B, T, D = x.shape
    if not every:
        first = ops.arange(B, x) * T
        at = first + last if kept is None else first[:, None] + kept
        x = ops.embedding(at, x.reshape(B * T, D), "last")
    outputs = [("logits", step.model.head(x), False)]
    for i, layer in enumerate(cache):
        for name, one in zip(("key", "value"), layer.pair, strict=True):
            new = one.present if in_place else one.recent.transpose(0, 2, 1, 3)
            outputs.append((f"{PRESENT_KEYS}.{i}.{name}", new, False))
    return finish(step.graph, step.inputs, outputs, direct=in_place)


def trace_cross(model: CausalLM, standard: bool = False, precision: Any = None) -> Traced:
    """Trace the cross-attention's keys and values, computed once for all steps: encoder_hidden_states (C, M, E) ->
    cross_key_values.I.key and .value (C, H, M, K).
    """
    step = _Step(model, standard, precision)
    width = getattr(model.config, model.inputs["encoder_hidden_states"])
    states: Any = step.input("encoder_hidden_states", ("C", "M", width), FLOAT)
    t = step.tokens()
    cache = step.cache(cross=False)
    t = t._replace(context=t.context._replace(encoder_states=states), cache=cache)  # type: ignore[arg-type]
    step.model.base_model.encode(t)
    outputs = [
        (f"{CROSS_KEYS}.{i}.{name}", layer.cross[j].transpose(0, 2, 1, 3), False)
        for i, layer in enumerate(cache)
        for j, name in enumerate(("key", "value"))
    ]
    return finish(step.graph, step.inputs[:1], outputs)


class _Step:
    """The symbolic model, and the inputs of its step."""

    def __init__(self, model: CausalLM, standard: bool, precision: Any):
        if model.depends_on_length:
            raise UnsupportedError(
                "rope_type 'dynamic', whose positions change with a text's length, cannot be a graph"
            )
        self.graph = GraphBuilder(standard, precision)
        self.model = as_symbols(self.graph, model)
        self.inputs: list[GraphInput] = []

    def input(self, name: str, dims: tuple[int | str, ...], dtype: np.dtype) -> Symbol:
        self.inputs.append(GraphInput(name, dims, str(dtype), -1, name))
        lengths = [n if isinstance(n, int) else self.graph.input_dim(n, HINTS[n], name, i) for i, n in enumerate(dims)]
        return Symbol(self.graph, name, lengths, dtype)

    def tokens(self, embeds: bool = False) -> TextInputs:
        ids: Any = None if embeds else self.input("input_ids", ("B", "T"), INT)
        vectors: Any = None
        if embeds:
            width = getattr(self.model.config, self.model.inputs["inputs_embeds"])
            vectors = self.input("inputs_embeds", ("B", "T", width), FLOAT)
        takes_types = embeds and "token_type_ids" in self.model.inputs
        types: Any = self.input("token_type_ids", ("B", "T"), INT) if takes_types else None
        has_axes = "mrope_position_ids" in self.model.inputs
        at: Any = self.input("mrope_position_ids", ("B", "T", 3), INT) if has_axes else None
        start: Any = self.input("past_lengths", ("B",), INT)
        self.start = start
        t = TextInputs(ids, vectors, types, None, Context(start=start), None, (vectors if embeds else ids).shape[1])
        return t._replace(mrope_position_ids=at)

    def cache(self, cross: bool, in_place: bool = False, drops: bool = False) -> Any:
        windows, states = (self.model.windows, self.model.states) if drops else ((), {})
        mask, held, found = None, None, []
        if any(window is not None for window in windows):
            held = self.input("window_lengths", ("B",), INT)
        if cross:
            mask = self.input("encoder_attention_mask", ("C", "M"), INT).to(BOOL)
        for i, (heads, size, *other) in enumerate(self.model.cache_shapes):
            own = held if windows and windows[i] is not None else None
            places = states[i].size if i in states else 0
            shape = "B", heads, "S" if own is None else "Q" if places else "W"
            sizes = (("key", size), ("value", *(other or (size,))))
            keys, values = (self.input(f"{PAST_KEYS}.{i}.{name}", (*shape, n), FLOAT) for name, n in sizes)
            seen = None
            if cross:
                k, v = (
                    self.input(f"{CROSS_KEYS}.{i}.{name}", ("C", heads, "M", size), FLOAT) for name in ("key", "value")
                )
                seen = k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3), mask
            found.append(_Layer(keys, values, seen, in_place, self.start, own, places))
        return found
