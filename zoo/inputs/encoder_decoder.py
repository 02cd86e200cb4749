"""An encoder and a decoder that writes about what it sees, as one model that `generate` takes.

Shapes: B rows, C inputs of the encoder (B is a multiple: rows that follow one another share one), T tokens, M states of
the encoder, E their width, V vocab_size, H heads, K head size.  Images are (C, Y, X, channels).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import ops
from ..cache import KVCache, LayerCache
from ..errors import InputError
from ..pretrained import Pretrained
from ..typing import Array, GraphMethod
from . import Context, ImageInputs, TextInputs, TextModel
from .encoded_prompt import EncodedPrompt, join_contexts
from .heads import CausalLM, state_at_last

# The arguments of a decoder's layers -> the config's field that bounds its ids, or is the width of its vectors.
INPUTS = {"input_ids": "vocab_size", "encoder_hidden_states": "d_model"}


class Seq2SeqOutput(NamedTuple):
    logits: Array  # (B, T, V)
    encoder_last_hidden_state: Array  # (C, M, encoder's width)


class Seq2SeqQuestionAnsweringOutput(NamedTuple):
    start_logits: Array  # (B, T)
    end_logits: Array  # (B, T)
    encoder_last_hidden_state: Array  # (B, T, D)


class Seq2SeqModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D) of the decoder
    encoder_last_hidden_state: Array  # (C, M, encoder's width)


class BareDecoder(TextModel):
    """A decoder without a head: its layers' states."""

    inputs = INPUTS
    is_causal = True

    def __init__(self, layers: Any, config: Any):
        self.config, self.base_model = config, layers

    def forward(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return self.base_model.encode(t)


class Seq2SeqDecoder(CausalLM):
    """The decoder of a model with an encoder: logits of the next token."""

    inputs = INPUTS
    is_causal = True

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        cfg = self.config
        return cfg.decoder_layers, cfg.decoder_attention_heads, cfg.d_model // cfg.decoder_attention_heads


class Seq2Seq(Pretrained):
    """An encoder and a decoder; `forward(record, tokens)` runs both.

    The encoder's record is what `encoder_inputs` makes of a user's arguments.
    """

    parts = ("encoder", "decoder")
    arguments: tuple[str, ...] = ("input_ids", "attention_mask")  # what `encoder_inputs` takes
    encoder: Any  # an ImageModel, TextModel or AudioModel with `encode`
    decoder: Any  # a TextModel

    def __call__(self, *args: Any, **given: Any) -> Any:
        """The encoder's first argument, decoder_input_ids and decoder_attention_mask (B, T), the encoder's others ->
        logits (B, T, V), or states, and the encoder's states.
        """
        return self.runner.run(self.forward, *self.records(*args, **given))

    def records(self, *args: Any, **given: Any) -> tuple[Any, TextInputs]:
        names = (self.arguments[0], "decoder_input_ids", "decoder_attention_mask", *self.arguments[1:])
        given = dict(zip(names, args, strict=False)) | given
        ids, mask = given.pop("decoder_input_ids", None), given.pop("decoder_attention_mask", None)
        x, t = self._record((), given), self.decoder.tokens(ids, mask)
        B, C = t.shape[0], count_of(x)
        if B % C:
            what = f"{C} rows in {self.arguments[0]}"
            raise InputError(f"decoder_input_ids have {B} rows, which is not a multiple of the {what}")
        return x, t

    def example(self, seed: int = 0, **sizes: Any) -> dict[str, Any]:
        found = self.encoder.example(seed, **sizes)
        rng, rows, vocab = np.random.default_rng(seed), len(found[self.arguments[0]]), self.decoder.config.vocab_size
        shape = rows, min(sizes.get("length", 7), self.max_positions)
        return {**found, "decoder_input_ids": rng.integers(min(5, vocab - 1), vocab, shape)}

    @property
    def max_positions(self) -> int:
        """The largest number of tokens in a row."""
        return self.decoder.max_positions

    def encoder_inputs(self, *args: Any, **given: Any) -> Any:
        """The encoder's inputs, checked and placed beside the weights: here input_ids and attention_mask (C, M)."""
        return self.encoder.tokens(*args, **given)

    def project_states(self, states: Array) -> Array:
        """The encoder's last states (C, M, ...) as the decoder attends to them, (C, M, E)."""
        return states

    def encode_and_decode(self, x: Any, t: TextInputs) -> tuple[Array, Array]:
        """-> the decoder's output, and the encoder's states."""
        found = self.encoder.encode(x)
        seen = {"encoder_states": self.project_states(found), "encoder_mask": mask_of(x)}
        return self.decoder.forward(t._replace(context=t.context._replace(**seen))), found

    def forward(self, x: Any, t: TextInputs) -> Any:
        """The class's output for checked inputs."""
        raise NotImplementedError

    def _record(self, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        for name in given:
            if name not in self.arguments:
                taken = (*self.arguments, "decoder_input_ids", "decoder_attention_mask")
                self.refuse(name, taken, is_known=False)
        return self.encoder_inputs(*args, **given)


class Seq2SeqModel(Seq2Seq):
    """An encoder, and a decoder without a head."""

    decoder: BareDecoder

    def forward(self, x: Any, t: TextInputs) -> Seq2SeqModelOutput:
        return Seq2SeqModelOutput(*self.encode_and_decode(x, t))


class EncoderDecoder(Seq2Seq):
    """`encoder_states(record)` is what the decoder, which writes, attends to."""

    decoder: CausalLM
    steps: Any = None  # what computes the decoder's steps in its place

    def with_steps(self, steps: Any) -> EncoderDecoder:
        """The model, whose decoder's steps an engine computes."""
        new = copy.copy(self)
        new.steps = steps
        return new

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        x = self.encoder_inputs(**self.encoder.example(seed, **sizes))
        return [GraphMethod("encoder", self.encoder_states, (x,), "encoder_hidden_states")]

    @property
    def step_decoder(self) -> CausalLM:
        return self.decoder

    def encoder_states(self, x: Any) -> Array:
        """The hidden states that the decoder attends to, (C, M, E)."""
        return self.project_states(self.encoder.encode(x))

    def forward(self, x: Any, t: TextInputs) -> Seq2SeqOutput:
        return Seq2SeqOutput(*self.encode_and_decode(x, t))

    def encode(self, *args: Any, **given: Any) -> Array:
        """The encoder's arguments -> encoder_hidden_states (C, M, E) for `next_logits`."""
        return self.runner.run(self.encoder_states, self._record(args, given))

    def context(self, *args: Any, **given: Any) -> dict[str, Array]:
        """The encoder's arguments -> the context of `generate`: its states, and the mask of their padding, if any."""
        x = self._record(args, given)
        mask = mask_of(x)
        found = {"encoder_hidden_states": self.runner.run(self.encoder_states, x)}
        return found if mask is None else {**found, "encoder_attention_mask": mask}

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        """An empty cache for the decoder; capacity in tokens, by default all positions of the checkpoint."""
        return (self.steps or self.decoder).new_cache(batch, capacity)

    def prompt(self, ids: np.ndarray | list[int], **arguments: np.ndarray) -> EncodedPrompt:
        """A prompt of the decoder's tokens (T,), and of the encoder's arguments for one input."""
        return EncodedPrompt.of_encoder(self, np.asarray(ids, np.int64), arguments)

    def next_logits(
        self,
        input_ids: Array | None,
        lengths: Array | None,
        cache: KVCache,
        *,
        prompts: Sequence[EncodedPrompt] | None = None,
        **context: Any,
    ) -> Array:
        """The decoder's next logits; context: the result of `context`, in the first call.

        prompts: instead of these the tokens of each row with what the encoder is given.
        """
        if prompts is not None:
            lengths = np.array([len(one) for one in prompts])
            input_ids = np.zeros((len(prompts), int(lengths.max())), np.int64)
            for row, one in zip(input_ids, prompts, strict=True):
                row[: len(one)] = one.ids
            lengths = lengths if (lengths != lengths[0]).any() else None
            context = join_contexts([one.context for one in prompts])
        if not context and not cache.cross:
            raise InputError(
                "the first call with a cache needs encoder_hidden_states: pass the result of "
                f"`encode({', '.join(self.arguments[:1])})`"
            )
        return (self.steps or self.decoder).next_logits(input_ids, lengths, cache, **context)

    def every_logits(self, input_ids: Array, cache: KVCache) -> Array:
        """The decoder's logits (B, T, V) after each of T tokens, in later calls."""
        return (self.steps or self.decoder).every_logits(input_ids, cache)


class ImageToText(EncoderDecoder):
    """A model that writes about images."""

    arguments = ("pixel_values", "interpolate_pos_encoding")

    @property
    def embeddings(self) -> Any:
        """Those of the decoder, whose tokens prompts are."""
        return self.decoder.base_model.embeddings

    def encoder_inputs(self, pixel_values: Array, interpolate_pos_encoding: bool = False) -> ImageInputs:
        """pixel_values (C, Y, X, channels)."""
        asked = interpolate_pos_encoding and not self.encoder.any_size  # BEiT takes any size without the argument
        return self.encoder.pixels(pixel_values, interpolate_pos_encoding=asked)


class TextToText(EncoderDecoder):
    """A model that writes about texts."""

    @property
    def base_model(self) -> Any:
        """The encoder, which says how long texts may be."""
        return self.encoder


class ReadTwice(TextModel):
    """An encoder of a text and a decoder that reads it again, moved by one token, for a head on the decoder's states.

    A subclass has `encoder`, a TextModel with `encode`, and `decoder`, the decoder's layers.
    """

    encoder: Any
    decoder: Any

    @property
    def base_model(self) -> Any:
        """The encoder, which says how long texts may be."""
        return self.encoder

    def encode(self, t: TextInputs) -> tuple[Array, Array]:
        """-> states (B, T, D) of the decoder and of the encoder."""
        ids, seen = t.ids, self.encoder.encode(t)
        start = ops.arange(t.shape[0], seen) * 0
        context = Context(start=start, encoder_states=seen, encoder_mask=t.context.mask)
        moved = ops.cat([ids[:, :1] * 0 + self.config.decoder_start_token_id, ids[:, :-1]], 1)
        return self.decoder.encode(t._replace(input_ids=moved, context=context)), seen

    def end(self, t: TextInputs) -> Array:
        """-> (B, D): the decoder's state at the last token that ends a text, or else the first token."""
        return state_at_last(self.encode(t)[0], t.ids == self.config.eos_token_id)


def count_of(x: Any) -> int:
    """The number of rows in an encoder's record."""
    return x.shape[0] if isinstance(x, TextInputs) else x[0].shape[0]


def mask_of(x: Any) -> Array | None:
    """The mask (C, M) of the states of an encoder's record, if it has one."""
    return x.context.mask if isinstance(x, TextInputs) else None


def cross_attention(
    q: Array,
    key_value: Callable[[Array], Array],
    c: Context,
    cache: LayerCache | None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Array | None:
    """Attention to an encoder's hidden states, whose keys and values are computed once for all steps and beams.

    q (B, T, H, K) -> (B, T, H K), or None for a decoder without an encoder.  key_value: from E to 2 H K.
    """
    B, T, H, K = q.shape
    seen = None if cache is None else cache.cross
    if c.encoder_states is not None:
        k_v = key_value(c.encoder_states).reshape(*c.encoder_states.shape[:2], 2 * H, K)
        seen = k_v[:, :, :H], k_v[:, :, H:], c.encoder_mask
        if cache is not None:
            cache.cross = seen
    if seen is None:
        return None
    k, v, mask = seen
    # The rows of one input become queries of one row.
    q = q.reshape(k.shape[0], -1, H, K)
    return ops.attention(q, k, v, mask=mask, scale=scale, dropout=dropout).reshape(B, T, H * K)
