"""Detectors of what is named in words: images and texts to boxes, and how well each text fits each box.

Shapes: B texts, T tokens, C images, N places in an image, P width of the vectors.  Images are (C, Y, X, channels).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import ops
from ..typing import Array, GraphMethod, RecordField
from .dual_encoder import ImagesAndTexts
from .images import ImageInputs
from .texts import TextInputs


class Queries(NamedTuple):
    """The texts to find."""

    text_embeds: Array  # (B, P)

    fields = (RecordField("text_embeds", "text_embeds", ("B", "P"), "float32"),)


class GroundedOutput(Protocol):
    """The output of a detector of texts."""

    @property
    def logits(self) -> Array: ...  # (C, N, B): of the box at each place, that it has what each text names

    @property
    def pred_boxes(self) -> Array: ...  # (C, N, 4): centre x and y, width and height, as parts of the image


class GroundedDetector(ImagesAndTexts):
    """A model which finds in every image what every text names.

    Its maths are `text_embeds` and `detect`, which an engine runs one by one, so that texts are encoded once for many
    images.
    """

    record = Queries
    text_model: Any
    vision_model: Any

    def __call__(
        self,
        input_ids: Array,
        pixel_values: Array,
        attention_mask: Array | None = None,
        *,
        interpolate_pos_encoding: bool = False,
        **unknown: Any,
    ) -> GroundedOutput:
        """input_ids and attention_mask (B, T), pixel_values (C, Y, X, channels) -> logits (C, N, B), boxes (C, N, 4).

        Each text is looked for in every image; in transformers, C images have C times as many texts.
        """
        options = {"interpolate_pos_encoding": interpolate_pos_encoding, **unknown}
        p, t = self.records(input_ids, pixel_values, attention_mask, **options)
        return self.runner.run(self.detect, p, Queries(self.runner.run(self.text_embeds, t)))

    def example(self, seed: int = 0, **sizes: Any) -> dict[str, Any]:
        found = super().example(seed, **sizes)
        found["input_ids"][:, 0] = np.maximum(found["input_ids"][:, 0], 1)  # 0 would be no text, in transformers
        return found

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        p, t = self.records(**self.example(seed, **sizes))
        return [
            GraphMethod("text", self.text_embeds, (t,), "text_embeds"),
            GraphMethod("model", self.detect, (p, self.queries(self.text_embeds(t)))),
        ]

    def forward(self, p: ImageInputs, t: TextInputs) -> GroundedOutput:
        """`detect` of `text_embeds`; a class says which output that is, for a graph of both."""
        raise NotImplementedError

    def queries(self, text_embeds: Array) -> Queries:
        """Vectors (B, P) of texts, checked and placed beside the weights."""
        x: Any = text_embeds
        return Queries(ops.as_hidden_states(x[None], self.like, "text_embeds", x.shape[-1])[0])

    def detect(self, p: ImageInputs, q: Queries) -> GroundedOutput:
        raise NotImplementedError
