"""A model that finds in an image what a text says, as a mask.

Shapes: B images and the text of each, T tokens, h and w rows and columns of patches, E width of what is known of a
patch, P width of a text's vector, Y and X height and width of a mask.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import ops
from ..errors import InputError
from ..typing import Array, GraphMethod, RecordField
from .dual_encoder import DualEncoder
from .images import ImageInputs
from .texts import TextInputs


class ImageStates(NamedTuple):
    """What is known of images before they are asked about."""

    first: Array  # (B, E), of the class token
    patches: Array  # (B, h, w, E)


class MaskInputs(NamedTuple):
    """Images, and the vector of a text about each."""

    first: Array  # (B, E)
    patches: Array  # (B, h, w, E)
    conditional_embeddings: Array  # (B, P)

    fields = (
        RecordField("first", "first", ("B", "E"), "float32"),
        RecordField("patches", "patches", ("B", "H", "W", "E"), "float32"),
        RecordField("conditional_embeddings", "conditional_embeddings", ("B", "P"), "float32"),
    )


class MaskOutput(NamedTuple):
    logits: Array  # (B, Y, X)
    conditional_embeddings: Array  # (B, P), of the texts
    pooled_output: Array  # (B, P), of the images


class TextMaskModel(DualEncoder):
    """A model of images with a text about each.

    Its maths are `image_states`, `conditional_embeddings`, `logits` and `pooled_output`, which an engine runs one by
    one: an image is seen once, however many texts are about it.
    """

    is_base_model = False
    in_pairs = True  # there are as many texts as images
    record = MaskInputs  # the record of `logits`

    def __call__(  # type: ignore[override]
        self, input_ids: Array, pixel_values: Array, attention_mask: Array | None = None, **unknown: Any
    ) -> MaskOutput:
        """The output for input_ids and attention_mask (B, T), pixel_values (B, Y, X, channels)."""
        p, t = self.records(input_ids, pixel_values, attention_mask, **unknown)
        run = self.runner.run
        states, text = run(self.image_states, p), run(self.conditional_embeddings, t)
        return MaskOutput(run(self.logits, MaskInputs(*states, text)), text, run(self.pooled_output, p))

    def records(self, *args: Any, **given: Any) -> tuple[ImageInputs, TextInputs]:
        p, t = super().records(*args, **given)
        if (images := p.pixel_values.shape[0]) != (texts := t.shape[0]):
            raise InputError(f"there are {texts} texts for {images} images, expected one for each")
        return p, t

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        p, t = self.records(**self.example(seed, **sizes))
        asked = MaskInputs(*self.image_states(p), self.conditional_embeddings(t))
        return [
            GraphMethod("image", self.image_states, (p,)),
            GraphMethod("text", self.conditional_embeddings, (t,), "conditional_embeddings"),
            GraphMethod("model", self.logits, (asked,)),
            GraphMethod("pooled", self.pooled_output, (p,), "pooled_output"),
        ]

    def forward(self, p: ImageInputs, t: TextInputs) -> MaskOutput:  # type: ignore[override]
        text = self.conditional_embeddings(t)
        return MaskOutput(self.logits(MaskInputs(*self.image_states(p), text)), text, self.pooled_output(p))

    def place(self, states: ImageStates, text_embeds: Array) -> MaskInputs:
        """Images' states, one or B, and vectors of texts (B, P), checked and placed beside the weights."""
        B = len(text_embeds)
        first, patches = (ops.cat([x] * (B if x.shape[0] == 1 else 1), 0) for x in states)
        text = ops.as_hidden_states(text_embeds[None], self.like, "text_embeds", text_embeds.shape[-1])[0]
        return MaskInputs(first, patches, text)

    def image_states(self, p: ImageInputs) -> ImageStates:
        """What is known of images before they are asked about."""
        raise NotImplementedError

    def conditional_embeddings(self, t: TextInputs) -> Array:
        """-> (B, P), of the texts."""
        raise NotImplementedError

    def pooled_output(self, p: ImageInputs) -> Array:
        """-> (B, P), of the images."""
        raise NotImplementedError

    def logits(self, m: MaskInputs) -> Array:
        """-> logits (B, Y, X)."""
        raise NotImplementedError
