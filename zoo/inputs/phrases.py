"""Detectors that are given a text of phrases with each image: which tokens of the text say what is in each box.

Shapes: B images and the text of each, T tokens, D width of tokens, N places in an image, M the most tokens of a text.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import ops
from ..errors import InputError
from ..typing import Array, GraphMethod, RecordField
from .grounding import GroundedDetector
from .images import ImageInputs
from .texts import TextInputs


class Phrases(NamedTuple):
    """What is known of texts before an image is seen: one text for each image."""

    text_states: Array  # (B, T, D)
    input_ids: Array  # (B, T)
    attention_mask: Array | None = None  # (B, T): false for padding

    fields = (
        RecordField("text_states", "text_states", ("C", "T", "D"), "float32"),
        RecordField("input_ids", "input_ids", ("C", "T"), "int64"),
        RecordField("attention_mask", "attention_mask", ("C", "T"), "int64", 1),
    )


class PhraseDetector(GroundedDetector):
    """A model of images with a text about each, whose logits (B, N, M) are of tokens: -inf where there is none.

    Its maths are `text_states` and `detect`, which an engine runs one by one, so that a text is read once for many
    images.
    """

    in_pairs = True  # there are as many texts as images
    inputs = ("attention_mask", "pixel_mask", "token_type_ids")
    record = Phrases
    delimiters: ClassVar[tuple[int, ...]]  # ids that end a phrase: of a text's first token, its last, a full stop, ...

    def __call__(  # type: ignore[override]
        self,
        input_ids: Array,
        pixel_values: Array,
        attention_mask: Array | None = None,
        *,
        pixel_mask: Array | None = None,
        token_type_ids: Array | None = None,
        **unknown: Any,
    ) -> Any:
        """input_ids, attention_mask and token_type_ids (B, T), pixel_values (B, Y, X, channels), pixel_mask (B, Y, X),
        false where an image was padded -> logits (B, N, M), boxes (B, N, 4).
        """
        p, t = self.records(
            input_ids, pixel_values, attention_mask, pixel_mask=pixel_mask, token_type_ids=token_type_ids, **unknown
        )
        return self.runner.run(self.detect, p, self.phrases(t, self.runner.run(self.text_states, t)))

    def records(  # type: ignore[override]
        self,
        input_ids: Array,
        pixel_values: Array,
        attention_mask: Array | None = None,
        pixel_mask: Array | None = None,
        token_type_ids: Array | None = None,
        **unknown: Any,
    ) -> tuple[ImageInputs, TextInputs]:
        if unknown:
            self.refuse(next(iter(unknown)), ("input_ids", "pixel_values", *self.inputs), is_known=False)
        p = self.vision_model.pixels(pixel_values, pixel_mask)
        t = self.text_model.tokens(input_ids, attention_mask, token_type_ids)
        if (images := p.pixel_values.shape[0]) != (texts := t.shape[0]):
            raise InputError(f"there are {texts} texts for {images} images, expected one for each")
        return p, t

    def phrases(self, t: TextInputs, text_states: Array, count: int = 1) -> Phrases:
        """Texts and their states, `count` times."""
        states = ops.as_hidden_states(text_states, self.like, "text_states", text_states.shape[-1])
        found = Phrases(states, t.ids, t.context.mask)
        if count == 1:
            return found
        mask = None if found.attention_mask is None else ops.cat([found.attention_mask] * count, 0)
        return Phrases(ops.cat([states] * count, 0), ops.cat([found.input_ids] * count, 0), mask)

    def example(self, seed: int = 0, **sizes: Any) -> dict[str, Any]:
        """As for its parts; the text has phrases, if the vocabulary has what ends them."""
        found = {**self.text_model.example(seed, **sizes), **self.vision_model.example(seed, **sizes)}
        ids, (first, last, stop, *_) = found["input_ids"], self.delimiters
        if self.config.text_config.vocab_size > max(self.delimiters):
            ids[:, 0], ids[:, -1], ids[:, -2], ids[:, ids.shape[1] // 2] = first, last, stop, stop
        count = min(len(ids), len(found["pixel_values"]))
        return {name: np.asarray(x)[:count] for name, x in found.items()}

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        p, t = self.records(**self.example(seed, **sizes))
        return [
            GraphMethod("text", self.text_states, (t,), "text_states"),
            GraphMethod("model", self.detect, (p, self.phrases(t, self.text_states(t)))),
        ]

    def text_states(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        raise NotImplementedError

    def forward(self, p: ImageInputs, t: TextInputs) -> Any:
        return self.detect(p, Phrases(self.text_states(t), t.ids, t.context.mask))

    def detect(self, p: ImageInputs, q: Phrases) -> Any:  # type: ignore[override]
        raise NotImplementedError
