"""An encoder that reads a text with an image in it, and the decoder that answers.

Shapes: C images and texts, T tokens, I vectors of an image, D width of the encoder.  Images are (C, Y, X, channels).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..errors import InputError
from ..typing import Array, GraphMethod
from .encoder_decoder import EncoderDecoder
from .images import ImageInputs
from .texts import TextInputs


class ImageTextToText(EncoderDecoder):
    """Its config has image_token_id: each such token of a text is the place of a vector of its images.

    The encoder's record is a text's vectors, those of images among them, which are computed before.
    """

    parts = ("vision_model", "encoder", "decoder")
    arguments = ("input_ids", "attention_mask", "pixel_values")
    vision_model: Any  # an ImageModel with `encode`

    @property
    def embeddings(self) -> Any:
        """Those of the decoder, whose tokens prompts are."""
        return self.decoder.base_model.embeddings

    def image_length(self, grid: tuple[int, int]) -> int:
        """I: the number of tokens of an image of a grid of patches."""
        raise NotImplementedError

    def image_features(self, p: ImageInputs) -> Array:
        """-> (C, I, D), the vectors that the encoder reads."""
        raise NotImplementedError

    def word_embeddings(self, t: TextInputs) -> Array:
        """-> (C, T, D), the vectors of words, without positions."""
        raise NotImplementedError

    def encoder_inputs(
        self, input_ids: Array, attention_mask: Array | None = None, pixel_values: Array | None = None
    ) -> TextInputs:
        """The text's vectors, those of the images in their places."""
        t = self.encoder.tokens(input_ids, attention_mask)
        p = None if pixel_values is None else self.vision_model.pixels(pixel_values)
        here = t.ids == self.config.image_token_id
        found = int(np.asarray(ops.to_numpy(here)).sum())
        if found != (wanted := 0 if p is None else p.pixel_values.shape[0] * self.image_length(p.grid)):
            raise InputError(f"input_ids have {found} places of images, and the images take {wanted}")
        if p is None:
            return t
        features = self.runner.run(self.image_features, p)
        flat = features.reshape(-1, features.shape[2])
        at = (ops.cumsum(here.reshape(-1), 0).reshape(*here.shape) - 1) * here
        words = self.word_embeddings(t) if self.runner.has_weights else self.runner.run(self.word_embeddings, t)
        merged = ops.where(here[:, :, None], ops.embedding(at, flat, "image tokens"), words)
        return t._replace(input_ids=None, inputs_embeds=merged)

    def example(self, seed: int = 0, *, rows: int = 2, length: int = 7, **sizes: Any) -> dict[str, Any]:
        pixels = self.vision_model.example(seed, rows=rows, **sizes)["pixel_values"]
        count, place = self.image_length(self.vision_model.grid(pixels)), self.config.image_token_id
        found = super().example(seed, rows=rows, length=length + count, **sizes)
        ids = found["input_ids"]
        ids[ids == place] = (place + 1) % self.config.vocab_size
        ids[:, :count] = place
        return {**found, "pixel_values": pixels[: len(ids)]}

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        given = self.example(seed, **sizes)
        t, p = self.encoder.tokens(given["input_ids"]), self.vision_model.pixels(given["pixel_values"])
        vision = GraphMethod("vision", self.image_features, (p,), "image_features")
        words = GraphMethod("embeddings", self.word_embeddings, (t,), "inputs_embeds")
        x, _ = self.records(**given)
        return [vision, words, GraphMethod("encoder", self.encoder_states, (x,), "encoder_hidden_states")]
