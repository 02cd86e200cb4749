"""An encoder of images and one of texts whose vectors are compared, as one model.

Shapes: B texts, T tokens, C images, P width of the vectors.  Images are (C, Y, X, channels).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

from .. import ops
from ..pretrained import Pretrained
from ..typing import Array, GraphMethod, RecordField
from .images import ImageInputs, ImageModel
from .texts import TextInputs, TextModel


class Vectors(NamedTuple):
    """The vectors to compare."""

    image_embeds: Array  # (C, P)
    text_embeds: Array  # (B, P)

    fields = (
        RecordField("image_embeds", "image_embeds", ("C", "P"), "float32"),
        RecordField("text_embeds", "text_embeds", ("B", "P"), "float32"),
    )


class Logits(NamedTuple):
    logits_per_image: Array  # (C, B)
    logits_per_text: Array  # (B, C)


class DualOutput(NamedTuple):
    logits_per_image: Array  # (C, B)
    logits_per_text: Array  # (B, C)
    text_embeds: Array  # (B, P), of length 1
    image_embeds: Array  # (C, P), of length 1


class ImagesAndTexts(Pretrained):
    """A model of texts and images, any number of each.  Its parts, one for each, may be called by themselves."""

    parts = ("vision_model", "text_model")
    inputs: ClassVar[tuple[str, ...]] = ("interpolate_pos_encoding",)
    text_model: TextModel
    vision_model: ImageModel

    def records(
        self,
        input_ids: Array,
        pixel_values: Array,
        attention_mask: Array | None = None,
        interpolate_pos_encoding: bool = False,
        **unknown: Any,
    ) -> tuple[ImageInputs, TextInputs]:
        if unknown:
            taken = ("input_ids", "pixel_values", "attention_mask", *self.inputs)
            self.refuse(next(iter(unknown)), taken, is_known=False)
        p = self.vision_model.pixels(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding)
        return p, self.text_model.tokens(input_ids, attention_mask)

    def example(self, seed: int = 0, **sizes: Any) -> dict[str, Any]:
        return {**self.text_model.example(seed, **sizes), **self.vision_model.example(seed, **sizes)}

    def text_embeds(self, t: TextInputs) -> Array:
        """-> (B, P), of length 1."""
        raise NotImplementedError


class DualEncoder(ImagesAndTexts):
    """A model which compares the vectors of every image and every text.

    Its maths are `image_embeds`, `text_embeds` and `compare`, which an engine runs one by one, so that vectors are
    computed once.
    """

    is_base_model = True
    record = Vectors  # the record of `compare`
    scores: ClassVar[Literal["softmax", "sigmoid"]] = "softmax"  # makes logits the probability that a text fits
    label_smoothing: ClassVar[float] = 0.0  # the part of a pair's label that all others share, in its loss

    def __call__(
        self,
        input_ids: Array,
        pixel_values: Array,
        attention_mask: Array | None = None,
        *,
        interpolate_pos_encoding: bool = False,
        **unknown: Any,
    ) -> DualOutput:
        """input_ids and attention_mask (B, T), pixel_values (C, Y, X, channels) -> logits (C, B) and vectors."""
        options = {"interpolate_pos_encoding": interpolate_pos_encoding, **unknown}
        p, t = self.records(input_ids, pixel_values, attention_mask, **options)
        run = self.runner.run
        image, text = run(self.image_embeds, p), run(self.text_embeds, t)
        return DualOutput(*run(self.compare, Vectors(image, text)), text, image)

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        p, t = self.records(**self.example(seed, **sizes))
        vectors = self.vectors(self.image_embeds(p), self.text_embeds(t))
        return [
            GraphMethod("image", self.image_embeds, (p,), "image_embeds"),
            GraphMethod("text", self.text_embeds, (t,), "text_embeds"),
            GraphMethod("model", self.compare, (vectors,)),
        ]

    def forward(self, p: ImageInputs, t: TextInputs) -> DualOutput:
        image, text = self.image_embeds(p), self.text_embeds(t)
        return DualOutput(*self.compare(Vectors(image, text)), text, image)

    def vectors(self, image_embeds: Array, text_embeds: Array) -> Vectors:
        """Vectors (C, P) and (B, P), checked and placed beside the weights."""
        given = {"image_embeds": image_embeds, "text_embeds": text_embeds}
        width = given["image_embeds"].shape[-1]
        placed = (ops.as_hidden_states(x[None], self.like, name, width)[0] for name, x in given.items())
        return Vectors(*placed)

    def image_embeds(self, p: ImageInputs) -> Array:
        """-> (C, P), of length 1."""
        raise NotImplementedError

    def compare(self, v: Vectors) -> Logits:
        raise NotImplementedError


def unit_length(x: Array) -> Array:
    """x (B, P) -> (B, P), each row divided by its length."""
    P = x.shape[-1]
    return ops.rms_norm(x, ops.zeros((P,), x) + P**-0.5, 0.0)
