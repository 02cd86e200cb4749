"""Images and a text with places for them, which are the prompt of one decoder.

Unlike an encoder-decoder, whose decoder attends to the encoder's states, the decoder reads what an encoder makes of an
image as if it were tokens: each token `image_token_id` of the text is the place of one vector.

Shapes: N images, or tiles of images, of all rows in their order, I tokens of one, B rows, T tokens, D width of the
decoder, V vocab_size.  Images are (N, Y, X, channels).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .. import ops
from ..cache import KVCache
from ..errors import InputError
from ..pretrained import Pretrained
from ..typing import Array, GraphMethod
from .heads import CausalLM
from .image_prompt import ImagePrompt
from .images import ImageInputs
from .mrope import mrope_positions
from .texts import TextInputs


class ImageTextModel(Pretrained):
    """A model of images and texts.  Its maths are `image_features` and those of `language_model`, which an engine runs
    one after the other.

    Its config has image_token_id.  Its base model has `vision_model`, whose `encode` gives states (N, h w, E), and
    `connector`, which makes of them and their grid the vectors that `language_model` reads.
    """

    parts = ("vision_model", "language_model")
    keep_16bit = True
    reads_prefixes: ClassVar[bool] = False  # True if all tokens of a prompt with images attend to each other
    vision_model: Any  # an ImageModel with `encode`
    language_model: Any  # a TextModel

    @property
    def like(self) -> Array:
        return self.language_model.like

    @property
    def has_mrope(self) -> bool:
        """True if the decoder's positions have three axes."""
        return "mrope_position_ids" in self.language_model.inputs

    def token_types(self, ids: Array) -> Array | None:
        """The token_type_ids (B, T) of prompts with images, as transformers' processor makes them: 1 for places of
        images, where those of one image attend to each other, or, where `reads_prefixes`, 0 for all; None where each
        token attends to those before it alone.
        """
        if "token_type_ids" not in self.language_model.inputs:
            return None
        return ids * 0 if self.reads_prefixes else (ids == self.config.image_token_id) * 1

    def decoder_types(self, types: Array) -> Array:
        """Of these the decoder's, which are 1 for tokens that attend to those of type 1 beside them."""
        return 1 - types if self.reads_prefixes else types

    @property
    def embeddings(self) -> Any:
        """Those of the decoder: their table `word`, and `max_positions`."""
        return self.language_model.base_model.embeddings

    @property
    def max_positions(self) -> int:
        """The length of the longest text, places of images counted."""
        return self.language_model.max_positions

    @property
    def depends_on_length(self) -> bool:
        return self.language_model.depends_on_length

    def __call__(
        self,
        input_ids: Array | None = None,
        attention_mask: Array | None = None,
        *,
        pixel_values: Array | None = None,
        **options: Any,
    ) -> Any:
        """The output of the decoder for input_ids and attention_mask (B, T), and pixel_values (N, Y, X, channels).

        options: those of the decoder; token_type_ids (B, T) follow from the ids, by `token_types`.  InputError: a text
        with other places than images have tokens.
        """
        t, *images = self.records(input_ids, attention_mask, pixel_values=pixel_values, **options)
        for p in images:
            t = self.merge(t, self.runner.run(self.image_features, p))
        out = self.runner.run(self.forward, t)
        if t.cache is not None:
            t.cache.advance(t.shape[1])
            if t.mrope_position_ids is not None:
                _shift_positions(t.cache, np.asarray(ops.to_numpy(t.mrope_position_ids)))
        return out

    def forward(self, t: TextInputs, p: ImageInputs | None = None) -> Any:
        """The decoder's output for a text, whose vectors are there already unless there are images."""
        return self.language_model.forward(t if p is None else self.merge(t, self.image_features(p)))

    def image_features(self, p: ImageInputs) -> Array:
        """-> (N, I, D), the vectors that the decoder reads."""
        base = self.base_model
        return base.connector(base.vision_model.encode(p), p.grid)

    def image_length(self, grid: tuple[int, int]) -> int:
        """I: the number of tokens that an image of a grid of patches takes."""
        raise NotImplementedError

    def token_grid(self, grid: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of the tokens of an image, for positions in three axes; their product is I."""
        raise NotImplementedError

    def records(
        self,
        input_ids: Array | None = None,
        attention_mask: Array | None = None,
        *,
        pixel_values: Array | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        t = self.language_model.tokens(input_ids, attention_mask, **options)
        p = None if pixel_values is None else self.vision_model.pixels(pixel_values)
        if p is not None and t.input_ids is None:
            raise InputError("pixel_values need input_ids, which say where the images are: inputs_embeds are given")
        if t.input_ids is not None and (p is not None or t.cache is None):
            self.check_places(t.input_ids, 0 if p is None else p.pixel_values.shape[0] * self.image_length(p.grid))
        types = self.token_types(t.ids) if t.token_type_ids is None and p is not None else t.token_type_ids
        t = t._replace(token_type_ids=None if types is None else self.decoder_types(types))
        if p is not None and self.has_mrope and t.mrope_position_ids is None and t.position_ids is None:
            t = t._replace(mrope_position_ids=self._mrope_positions(t, p))
        return (t,) if p is None else (t, p)

    def _mrope_positions(self, t: TextInputs, p: ImageInputs) -> Array:
        """The positions (B, T, 3) of a batch, 0 where the mask says padding."""
        ids = np.asarray(ops.to_numpy(t.ids))
        is_token, first = np.ones(ids.shape, bool), np.zeros(len(ids), np.int64)
        if t.cache is not None:
            first = t.cache.counts + t.cache.shifts
        if t.context.mask is not None:
            is_token = np.asarray(ops.to_numpy(t.context.mask)).astype(bool)[:, -ids.shape[1] :]
        rows, columns = self.token_grid(p.grid)
        found: Any = np.zeros((*ids.shape, 3), np.int64)
        for to, own, real, begin in zip(found, ids, is_token, first.tolist(), strict=True):
            is_place = own[real] == self.config.image_token_id
            if (count := int(is_place.sum())) % (rows * columns):
                raise InputError(f"a row of input_ids has {count} places of images, expected {rows * columns} for each")
            to[real] = mrope_positions(is_place, [(rows, columns)] * (count // (rows * columns)), begin)
        return ops.as_ids(found, self.like, "mrope_position_ids", int(found.max()) + 1, ndim=3)

    def check_places(self, input_ids: Any, expected: int) -> None:
        """InputError if a text has another number of places than images have tokens."""
        found = int((np.asarray(ops.to_numpy(input_ids)) == self.config.image_token_id).sum())
        if found != expected:
            raise InputError(
                f"input_ids have {found} places of images (image_token_id = {self.config.image_token_id}), and the "
                f"images take {expected}"
            )

    def example(self, seed: int = 0, *, rows: int = 2, length: int = 7, **sizes: Any) -> dict[str, Any]:
        """A random image in each row, and words around it."""
        pixels = self.vision_model.example(seed, rows=rows, **sizes)["pixel_values"]
        count, place = self.image_length(self.vision_model.grid(pixels)), self.config.image_token_id
        found = self.language_model.example(seed, rows=rows, length=length + count, **sizes)
        ids = found["input_ids"]
        ids[ids == place] = (place + 1) % self.config.vocab_size
        ids[:, 1 : 1 + count] = place
        if "attention_mask" in found:
            found["attention_mask"][:, : 1 + count] = 1
        found.pop("token_type_ids", None)
        return {**found, "pixel_values": pixels[: len(ids)]}

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        t, p = self.records(**self.example(seed, **sizes))
        vision = GraphMethod("vision", self.image_features, (p,), "image_features")
        words = GraphMethod("embeddings", self.word_embeddings, (t,), "inputs_embeds")
        if self.step_decoder is not None:
            return [vision, words]
        return [vision, words, GraphMethod("model", self.forward, (self.merge(t, self.image_features(p)),))]

    def word_embeddings(self, t: TextInputs) -> Array:
        """-> (B, T, D), the vectors of words; those of the places of images mean nothing."""
        return self.embeddings(t)

    def _words(self, t: TextInputs) -> Array:
        """The words' vectors, by a graph alone where there are no weights: a lookup is faster than its graph."""
        return self.word_embeddings(t) if self.runner.has_weights else self.runner.run(self.word_embeddings, t)

    def merge(self, t: TextInputs, features: Array) -> TextInputs:
        """The tokens as vectors, those of images in their places: features (N, I, D)."""
        flat = features.reshape(-1, features.shape[2])
        here = t.ids == self.config.image_token_id
        at = (ops.cumsum(here.reshape(-1), 0).reshape(*here.shape) - 1) * here
        words = self._words(t)
        merged = ops.where(here[:, :, None], ops.embedding(at, flat, "image tokens"), words)
        return t._replace(input_ids=None, inputs_embeds=merged)

    def embed(self, ids: np.ndarray, features: Array | None) -> Array:
        """The vectors (T, D) of ids (T,), those of images (P, D) in their places."""
        t = self.language_model.tokens(ids[None])
        if features is None:
            return self._words(t)[0]
        embeds = self.merge(t, features[None]).inputs_embeds
        assert embeds is not None
        return embeds[0]


class ImageTextCausalLM(ImageTextModel):
    """A decoder of images and texts that `generate` takes, whose prompts may be those of `prompt`."""

    options: ClassVar[tuple[str, ...]] = ("cache", "logits_to_keep")
    is_causal = True
    decoder_class: ClassVar[type[CausalLM]]  # the class of language_model
    steps: Any = None  # what computes the decoder's steps in its place

    def with_steps(self, steps: Any) -> ImageTextCausalLM:
        """The model, whose decoder's steps an engine computes."""
        new = copy.copy(self)
        new.steps = steps
        return new

    @property
    def vision_model(self) -> Any:
        return self.base_model.vision_model

    @property
    def step_decoder(self) -> CausalLM:
        return self.language_model

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        return self.language_model.cache_shape

    @property
    def cache_shapes(self) -> Sequence[tuple[int, ...]]:
        return self.language_model.cache_shapes

    @property
    def changes_at(self) -> int | None:
        return getattr(self.language_model, "changes_at", None)

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        """An empty cache for the decoder; capacity in tokens, by default all positions of the checkpoint."""
        return (self.steps or self.language_model).new_cache(batch, capacity)

    def prompt(self, ids: np.ndarray | list[int], images: list[np.ndarray]) -> ImagePrompt:
        """A prompt of tokens (T,) in which each image, or the tiles of one (n, Y, X, channels), has its places."""
        return ImagePrompt.of(self, np.asarray(ids, np.int64), images)

    def next_logits(
        self,
        input_ids: Array | None,
        lengths: Array | None,
        cache: KVCache,
        *,
        prompts: Sequence[np.ndarray | ImagePrompt] | None = None,
    ) -> Array:
        """The logits (B, V) after the first `lengths` (B,) of T tokens, as `CausalLM.next_logits` returns them.

        prompts: instead of input_ids and lengths the tokens of each row, with images or without.
        """
        if prompts is None:
            assert input_ids is not None
            if input_ids.shape[1] > 1:  # the decoder may write this token, and nobody else
                self.check_places(input_ids, 0)
            steps = self.steps or self.language_model
            if not self._takes_vectors_alone:
                return steps.next_logits(input_ids, lengths, cache)
            words = self._words(self.language_model.tokens(input_ids))
            return steps.next_logits(None, lengths, cache, inputs_embeds=words)
        rows = [one.embeds() if isinstance(one, ImagePrompt) else self.embed(one, None) for one in prompts]
        counts = np.array([row.shape[0] for row in rows])
        most, D = int(counts.max()), rows[0].shape[1]
        filled = [ops.cat([row, ops.zeros((most - row.shape[0], D), row)], 0)[None] for row in rows]
        padded, context = counts if (counts != most).any() else None, {}
        if "token_type_ids" in self.language_model.inputs:
            context["token_type_ids"] = types = np.zeros((len(rows), most), np.int64)
            for to, one in zip(types, prompts, strict=True):
                to[: len(one)] = one.token_types if isinstance(one, ImagePrompt) else 0
        if self.has_mrope:
            context["mrope_position_ids"] = at = np.zeros((len(rows), most, 3), np.int64)
            for to, one, count in zip(at, prompts, cache.counts.tolist(), strict=True):
                own = one.positions if isinstance(one, ImagePrompt) else None
                to[: len(one)] = (count + np.arange(len(one)))[:, None] if own is None else own
        steps = self.steps or self.language_model
        logits = steps.next_logits(None, padded, cache, inputs_embeds=ops.cat(filled, 0), **context)
        if self.has_mrope:
            _shift_positions(cache, context["mrope_position_ids"])
        return logits

    @property
    def _takes_vectors_alone(self) -> bool:
        """True where graphs compute the steps: that of prompts, which are vectors, then does for single tokens, too,
        and no second one has all weights again.
        """
        is_graph = self.runner.has_weights and not self.runner.computes_with_arrays
        return is_graph and "token_type_ids" not in self.language_model.inputs

    def every_logits(self, input_ids: Array, cache: KVCache) -> Array:
        """The decoder's logits (B, T, V) after each of T tokens, in later calls."""
        return (self.steps or self.language_model).every_logits(input_ids, cache)


def _shift_positions(cache: KVCache, positions: np.ndarray) -> None:
    """Let the tokens after those of these positions (B, T, 3), which the cache has, go on where they end."""
    cache.shifts = positions.max((1, 2)) + 1 - cache.counts
