"""Texts: tokens, masks, positions, an encoder's hidden states and a cache.

Shapes: B rows, T tokens, S tokens to attend to (those of a cache too), M states of an encoder, D a width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from .. import ops
from ..cache import CHUNK, CHUNK_GPU, KVCache, LayerCache, StateShape
from ..errors import InputError
from ..pretrained import Pretrained
from ..typing import Array, RecordField

L = TypeVar("L")


class Context(NamedTuple):
    """The arguments of every layer besides its input.  Masks are true for a token and false for padding."""

    mask: Array | None = None  # (B, S); None: nothing is padding
    start: Array | None = None  # (B,): causal, row b begins after start[b] tokens; None: not causal
    encoder_states: Array | None = None  # (C, M, D): B / C rows that follow one another share those of one
    encoder_mask: Array | None = None  # (C, M)
    texts: Array | None = None  # (B, T): the number of each token's text, which sees no other; None: a row is one text

    def other_texts_bias(self, x: Array) -> Array | None:
        """The bias (B, 1, T, T) of attention that hides the tokens of a row's other texts, in the dtype of x."""
        if self.texts is None:
            return None
        zero = ops.zeros((1,), x)
        return ops.where((self.texts[:, :, None] == self.texts[:, None, :])[:, None], zero, zero - math.inf)


class TextInputs(NamedTuple):
    """A batch of texts.  Either input_ids or inputs_embeds is None."""

    input_ids: Array | None  # (B, T)
    inputs_embeds: Array | None  # (B, T, D)
    token_type_ids: Array | None  # (B or 1, T)
    position_ids: Array | None  # (B or 1, T); None: consecutive
    context: Context
    cache: KVCache | None
    length: int  # the tokens of the longest row, those in the cache counted
    logits_to_keep: int = 0  # the last tokens whose logits are computed; 0: all
    mrope_position_ids: Array | None = None  # (B, T, 3): in time, height and width; None: as position_ids
    global_attention_mask: Array | None = None  # (B, T) bool: tokens that see all and that all see

    fields = (
        RecordField("input_ids", "input_ids", ("B", "T"), "int64"),
        RecordField("inputs_embeds", "inputs_embeds", ("B", "T", "D"), "float32"),
        RecordField("context.mask", "attention_mask", ("B", "T"), "int64", 1),
        RecordField("token_type_ids", "token_type_ids", ("B", "T"), "int64", 0),
        RecordField("position_ids", "position_ids", ("B", "T"), "int64"),
        RecordField("mrope_position_ids", "mrope_position_ids", ("B", "T", "axes"), "int64"),
        RecordField("global_attention_mask", "global_attention_mask", ("B", "T"), "int64"),
        RecordField("context.encoder_states", "encoder_hidden_states", ("C", "M", "E"), "float32"),
        RecordField("context.encoder_mask", "encoder_attention_mask", ("C", "M"), "int64", 1),
    )

    @property
    def shape(self) -> tuple[int, int]:
        """(B, T)."""
        x: Any = self.input_ids if self.inputs_embeds is None else self.inputs_embeds
        return x.shape[0], x.shape[1]

    @property
    def ids(self) -> Array:
        """(B, T), for a model that is never called with inputs_embeds."""
        assert self.input_ids is not None
        return self.input_ids

    @property
    def start(self) -> Array:
        """(B,): the number of tokens in the cache before each row of a causal model."""
        assert self.context.start is not None
        return self.context.start

    @property
    def blocks(self) -> Array | None:
        """(B, T): the numbers of blocks whose tokens attend to each other, those after them too, in a causal model
        whose tokens of one type 1 after another do; None: no tokens do.
        """
        types = self.token_type_ids
        if types is None:
            return None
        begins = 1 - types[:, 1:] * types[:, :-1]
        return ops.cumsum(ops.cat([types[:, :1] * 0, begins], 1), 1)

    @property
    def past(self) -> Array | int:
        """The position of the first token: 0, or (B, 1) with a cache."""
        return 0 if self.cache is None else self.start[:, None]

    def with_cache(self, layers: Iterable[L]) -> Iterator[tuple[L, LayerCache | None]]:
        """Each layer with its part of the cache."""
        cache = self.cache
        return ((layer, None if cache is None else cache[i]) for i, layer in enumerate(layers))

    def last_tokens(self, x: Array) -> Array:
        """The hidden states, of x (B, T, D), whose logits are asked for."""
        return x[:, -self.logits_to_keep :] if self.logits_to_keep else x


class TextModel(Pretrained):
    """A model of texts.  `forward(tokens)` is its maths.

    Its `base_model` has `embeddings`, with the table `word` (V, D) and the number `max_positions`.
    """

    # The arguments besides attention_mask -> the config's field that bounds their ids or is the width of their vectors.
    inputs: ClassVar[Mapping[str, str]] = {"input_ids": "vocab_size"}
    record = TextInputs
    embeds: ClassVar[str | None] = None  # the field of the output that is a text's vector; None: its tokens are pooled
    pads_texts: ClassVar[bool] = False  # True if a text's vector is that of a text padded to all positions
    ends_with_cls: ClassVar[bool] = False  # True if the token that stands for a text is its last, after any padding
    is_causal = False  # True if a token attends only to itself and those before it
    separates_texts: ClassVar[bool] = False  # True if position_ids that do not count on begin another text
    depends_on_values: ClassVar[bool] = False  # True if the sizes of arrays in `forward` follow from its inputs' values
    # "cache", "logits_to_keep" and "global_attention_mask", where the class takes them
    options: ClassVar[tuple[str, ...]] = ()

    def __call__(
        self,
        input_ids: Array | None = None,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        *,
        position_ids: Array | None = None,
        inputs_embeds: Array | None = None,
        encoder_hidden_states: Array | None = None,
        encoder_attention_mask: Array | None = None,
        cache: KVCache | None = None,
        logits_to_keep: int = 0,
        **unknown: Any,
    ) -> Any:
        """The output of `forward` for input_ids, attention_mask, token_type_ids and position_ids (B, T).

        Where a decoder's position_ids begin anew, without a mask or cache, a row has several texts that do not see
        each other.  inputs_embeds (B, T, D): instead of input_ids.  cache: the tokens before these, from `new_cache`;
        with it attention_mask is (B, length + T).  encoder_hidden_states (C, M, D), encoder_attention_mask (C, M): for
        cross-attention, needed once for each cache; B / C rows share one.  logits_to_keep: the number of last tokens
        whose logits are returned, 0 for all.  InputError: an argument that this class does not take, or whose shape or
        values do not fit.
        """
        t = self.tokens(
            input_ids,
            attention_mask,
            token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            encoder_hidden_states=encoder_hidden_states,
            encoder_attention_mask=encoder_attention_mask,
            cache=cache,
            logits_to_keep=logits_to_keep,
            **unknown,
        )
        out = self.runner.run(self.forward, t)
        if cache is not None:
            cache.advance(t.shape[1])
        return out

    def forward(self, t: TextInputs) -> Any:
        """The class's output for checked inputs; the caller advances the cache."""
        raise NotImplementedError

    def records(self, *args: Any, **given: Any) -> tuple[Any, ...]:
        return (self.tokens(*args, **given),)

    def example(
        self,
        seed: int = 0,
        *,
        rows: int = 2,
        length: int = 7,
        size: tuple[int, int] = (96, 128),
        padded: bool = False,
    ) -> dict[str, Any]:
        """Random tokens, their segments, and an encoder's states, where the class takes these.

        One row where the config names no padding, but for a decoder with an encoder: some heads cannot tell where rows
        end.
        """
        rng, cfg = np.random.default_rng(seed), self.config
        sees_states = "encoder_hidden_states" in self.inputs and getattr(cfg, "add_cross_attention", True)
        rows = 1 if getattr(cfg, "pad_token_id", 0) is None and not sees_states else rows
        shape = rows, min(length, self.max_positions)
        found: dict[str, Any] = {"input_ids": rng.integers(min(5, cfg.vocab_size - 1), cfg.vocab_size, shape)}
        if padded and rows > 1:
            lengths = np.maximum(shape[1] - shape[1] // rows * np.arange(rows), 1)
            found["attention_mask"] = (np.arange(shape[1]) < lengths[:, None]).astype(np.int64)
        if "token_type_ids" in self.inputs and (types := self._size("token_type_ids")) > 1:
            found["token_type_ids"] = rng.integers(0, types, shape)
        if sees_states:
            width = self._size("encoder_hidden_states")
            found["encoder_hidden_states"] = rng.standard_normal((rows, shape[1] + 4, width), np.float32)
        return found

    @property
    def like(self) -> Array:
        """An array with the dtype and the device of hidden states."""
        return self.base_model.embeddings.word

    @property
    def max_positions(self) -> int:
        """The length of the longest text."""
        return self.base_model.embeddings.max_positions

    @property
    def windows(self) -> Sequence[int | None]:
        """Of each layer the tokens before its own that a token attends to, None for all; () if none has a window."""
        return ()

    @property
    def states(self) -> Mapping[int, StateShape]:
        """Of the parts of a cache those that keep a state, and its shape; their window is 0."""
        return {}

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        """The number of layers, the heads of keys, and the size of a head."""
        cfg = self.config
        return cfg.num_hidden_layers, cfg.num_attention_heads, cfg.hidden_size // cfg.num_attention_heads

    @property
    def cache_shapes(self) -> Sequence[tuple[int, ...]]:
        """The heads and the size of a head of each layer, and the size of values where it is another."""
        layers, heads, size = self.cache_shape
        return [(heads, size)] * layers

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        """An empty cache of a decoder; capacity in tokens, by default all positions of the checkpoint."""
        layers, heads, size = self.cache_shape
        capacity = self.max_positions if capacity is None else capacity
        windows, states = (self.windows, self.states) if self.runner.drops_tokens else ((), {})
        chunk = CHUNK_GPU if ops.is_cuda(self.like) else CHUNK
        return KVCache(layers, batch, capacity, heads, size, self.like, windows, chunk, self.cache_shapes, states)

    def tokens(
        self,
        input_ids: Array | None = None,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        *,
        position_ids: Array | None = None,
        inputs_embeds: Array | None = None,
        encoder_hidden_states: Array | None = None,
        encoder_attention_mask: Array | None = None,
        cache: KVCache | None = None,
        logits_to_keep: int = 0,
        mrope_position_ids: Array | None = None,
        global_attention_mask: Array | None = None,
        **unknown: Any,
    ) -> TextInputs:
        """The inputs, checked and placed beside the weights; arguments as for a call."""
        if unknown:
            self.refuse(next(iter(unknown)), self._known_arguments(), is_known=False)
        like, ids, embeds = self.like, None, None
        if input_ids is not None and inputs_embeds is None:
            ids = ops.as_ids(input_ids, like, "input_ids", self._size("input_ids"))
            B, T = ids.shape
        elif inputs_embeds is not None and input_ids is None:
            embeds = ops.as_hidden_states(inputs_embeds, like, "inputs_embeds", self._size("inputs_embeds"))
            B, T = embeds.shape[:2]
        else:
            found = "neither" if input_ids is None else "both"
            raise InputError(f"found {found} of input_ids and inputs_embeds, expected one of them")
        length, start = T, None
        if cache is not None:
            if "cache" not in self.options:
                self.refuse("cache", self._known_arguments())
            cache.check(B)
            if not self.is_causal:
                raise InputError("a cache needs a decoder: the config says is_decoder = False")
            length, start = cache.length + T, cache.start
        elif self.is_causal:
            start = ops.arange(B, like) * 0
        if token_type_ids is not None:
            token_type_ids = self._ids(token_type_ids, "token_type_ids", (B, T))
        if position_ids is not None:
            position_ids = self._ids(position_ids, "position_ids", (B, T))
        elif length > self.max_positions:
            raise InputError(f"{length} tokens, but the checkpoint has positions for {self.max_positions}")
        mask, states, states_mask = attention_mask, encoder_hidden_states, encoder_attention_mask
        if mask is not None:
            mask = ops.as_key_mask(mask, like, "attention_mask", (B, length))
        if states is not None or states_mask is not None:
            states, states_mask = self._encoder_states(states, states_mask, B)
        if logits_to_keep and "logits_to_keep" not in self.options:
            self.refuse("logits_to_keep", self._known_arguments())
        context = Context(mask, start, states, states_mask)
        if position_ids is not None and cache is None and attention_mask is None and self.separates_texts:
            context = context._replace(texts=self._texts(position_ids, B))
        if position_ids is not None and self.depends_on_length:
            length = int(ops.to_numpy(position_ids).max()) + 1  # as in transformers
        t = TextInputs(ids, embeds, token_type_ids, position_ids, context, cache, length, logits_to_keep)
        if global_attention_mask is not None:
            name = "global_attention_mask"
            if name not in self.options:
                self.refuse(name, self._known_arguments())
            t = t._replace(global_attention_mask=ops.as_mask(global_attention_mask, like, name, (B, T)))
        if mrope_position_ids is None:
            return t
        name, most = "mrope_position_ids", self._size("mrope_position_ids")
        in_axes = ops.as_ids(mrope_position_ids, like, name, most, ndim=3)
        if tuple(in_axes.shape) != (B, T, 3):
            raise InputError(f"{name} has shape {tuple(in_axes.shape)}, expected {(B, T, 3)}")
        return t._replace(mrope_position_ids=in_axes)

    def _known_arguments(self) -> list[str]:
        """The arguments that this class takes."""
        found = [*self.inputs, "attention_mask"]
        if "encoder_hidden_states" in found:
            found.append("encoder_attention_mask")
        return [*found, *self.options]

    def _size(self, name: str) -> int:
        """The bound of an argument's ids, or the width of its vectors; InputError if the class does not take it."""
        if name not in self.inputs:
            self.refuse(name, self._known_arguments())
        return getattr(self.config, self.inputs[name])

    def _ids(self, given: Array, name: str, shape: tuple[int, int]) -> Array:
        ids = ops.as_ids(given, self.like, name, self._size(name))
        if tuple(ids.shape) not in (shape, (1, shape[1])):
            raise InputError(f"{name} has shape {tuple(ids.shape)}, expected {shape}")
        return ids

    def _texts(self, position_ids: Array, rows: int) -> Array | None:
        """The number of each token's text (rows, T), where positions that do not count on begin another text, as in
        transformers; None if each row is one text.
        """
        begins = np.diff(ops.to_numpy(position_ids), axis=1) != 1
        if not begins.any():
            return None
        numbers = np.pad(begins.cumsum(1), ((0, 0), (1, 0)))
        T = numbers.shape[1]
        return ops.as_ids(np.broadcast_to(numbers, (rows, T)), self.like, "position_ids", T)

    def _encoder_states(self, states: Array | None, mask: Array | None, rows: int) -> tuple[Array, Array | None]:
        if states is None:
            raise InputError("encoder_attention_mask needs encoder_hidden_states")
        width = self._size("encoder_hidden_states")
        if not getattr(self.config, "add_cross_attention", True):
            raise InputError("encoder_hidden_states need cross-attention: the config says add_cross_attention = False")
        seen = ops.as_hidden_states(states, self.like, "encoder_hidden_states", width)
        if rows % seen.shape[0]:
            raise InputError(
                f"input_ids have {rows} rows, which is not a multiple of the {seen.shape[0]} rows of "
                "encoder_hidden_states"
            )
        if mask is not None:
            mask = ops.as_key_mask(mask, self.like, "encoder_attention_mask", tuple(seen.shape[:2]))
        return seen, mask


def spans_of_chunks(length: int, chunk: int, token_type_ids: Array | None) -> list[tuple[int, int]]:
    """Where each chunk of `length` tokens begins and ends: `chunk` tokens, and those of type 1 that the last of them
    attend to, in any row of token_type_ids (B, T).
    """
    if token_type_ids is None:
        return [(a, min(a + chunk, length)) for a in range(0, length, chunk)]
    types = np.asarray(ops.to_numpy(token_type_ids))
    cuts = ~(types[:, 1:] & types[:, :-1] == 1).any(0)  # after each token but the last
    spans, begin = [], 0
    while begin < length:
        end = min(begin + chunk, length)
        while end < length and not cuts[end - 1]:
            end += 1
        spans.append((begin, end))
        begin = end
    return spans


class ChoiceModel(TextModel):
    """A model of several texts for each row, (B, choices, T), with one logit for each."""

    def __call__(
        self,
        input_ids: Array | None = None,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        **options: Any,
    ) -> Array:
        """input_ids, attention_mask, token_type_ids (B, choices, T) -> logits (B, choices)."""
        ids = ops.as_ids(input_ids, self.like, "input_ids", self._size("input_ids"), ndim=3)
        B, choices, T = ids.shape
        if (marked := options.get("global_attention_mask")) is not None:
            options["global_attention_mask"] = _merge_choices(marked, "global_attention_mask", (B, choices, T))
        mask = _merge_choices(attention_mask, "attention_mask", (B, choices, T))
        types = _merge_choices(token_type_ids, "token_type_ids", (B, choices, T))
        return super().__call__(ids.reshape(-1, T), mask, types, **options).reshape(B, choices)

    def example(self, seed: int = 0, **sizes: Any) -> dict[str, Any]:
        """As for other texts; each row has one choice."""
        return {name: array[:, None] for name, array in super().example(seed, **sizes).items()}

    def records(self, *args: Any, **given: Any) -> tuple[Any, ...]:
        return (self.tokens(*args, **{name: array.reshape(-1, array.shape[-1]) for name, array in given.items()}),)


def _merge_choices(x: Any, name: str, shape: tuple[int, ...]) -> Array | None:
    """(B, choices, T) -> (B choices, T)."""
    if x is None:
        return None
    x = np.asarray(x) if isinstance(x, (list, tuple)) else x
    if tuple(x.shape) != shape:
        raise InputError(f"{name} has shape {tuple(x.shape)}, expected {shape}")
    return x.reshape(-1, shape[-1])
