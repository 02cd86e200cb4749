"""An encoder of images and a decoder that writes what it sees, as one model that `generate` takes.

Shapes: B rows, C images (B is a multiple: rows that follow one another share one), T tokens, S tokens of the encoder,
E their width, V vocab_size.  Images are (C, Y, X, channels).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cache import KVCache
from ..errors import InputError
from ..pretrained import Pretrained
from ..typing import Array
from . import ImageInputs, TextInputs
from .causal import CausalLM

INPUTS = ("pixel_values", "decoder_input_ids", "decoder_attention_mask", "interpolate_pos_encoding")


class ImageToText(Pretrained):
    """`encoder_states(pixels)` is what the decoder attends to; `forward(pixels, tokens)` runs both."""

    parts = ("encoder", "decoder")
    encoder: Any  # an ImageModel with `encode`
    decoder: CausalLM

    def __call__(
        self,
        pixel_values: Array,
        decoder_input_ids: Array,
        decoder_attention_mask: Array | None = None,
        interpolate_pos_encoding: bool = False,
        **unknown: Any,
    ) -> Any:
        """pixel_values (C, Y, X, channels), decoder_input_ids and decoder_attention_mask (B, T) -> logits (B, T, V)."""
        if unknown:
            self.refuse(next(iter(unknown)), INPUTS, is_known=False)
        p = self._pixels(pixel_values, interpolate_pos_encoding)
        t = self.decoder.tokens(decoder_input_ids, decoder_attention_mask)
        B, C = t.shape[0], p.pixel_values.shape[0]
        if B % C:
            raise InputError(f"decoder_input_ids have {B} rows, which is no multiple of the {C} images in pixel_values")
        return self.runner.run(self.forward, p, t)

    def forward(self, p: ImageInputs, t: TextInputs) -> Any:
        raise NotImplementedError

    def encoder_states(self, p: ImageInputs) -> Array:
        """The hidden states that the decoder attends to, (C, S, E)."""
        raise NotImplementedError

    def encode(self, pixel_values: Array, interpolate_pos_encoding: bool = False) -> Array:
        """pixel_values (C, Y, X, channels) -> encoder_hidden_states (C, S, E) for `next_logits`."""
        return self.runner.run(self.encoder_states, self._pixels(pixel_values, interpolate_pos_encoding))

    @property
    def max_positions(self) -> int:
        """The largest number of tokens in a row."""
        return self.decoder.max_positions

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        """An empty cache for the decoder; capacity in tokens, by default all positions of the checkpoint."""
        return self.decoder.new_cache(batch, capacity)

    def next_logits(
        self,
        input_ids: Array,
        lengths: np.ndarray | None,
        cache: KVCache,
        *,
        encoder_hidden_states: Array | None = None,
    ) -> Array:
        """The decoder's next logits; encoder_hidden_states (C, S, E), from `encode`, in the first call."""
        if encoder_hidden_states is None and not cache.cross:
            raise InputError(
                "the first call with a cache needs encoder_hidden_states: pass the result of `encode(pixel_values)`"
            )
        return self.decoder.next_logits(input_ids, lengths, cache, encoder_hidden_states=encoder_hidden_states)

    def _pixels(self, pixel_values: Array, any_size: bool) -> ImageInputs:
        asked = any_size and not self.encoder.any_size  # BEiT takes any size without the argument
        return self.encoder.pixels(pixel_values, interpolate_pos_encoding=asked)
