"""The attributes of models that tasks read; a test checks every class of every family for them.

Every model also has what `Pretrained` gives it: `config`, `report`, and `base_model`, which a bare model is itself.

Shapes: B batch, T tokens, D hidden_size, V vocab_size, N = h w patches, Y and X height and width in pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..generate.decoder import Decoder
from ..inputs import ImageInputs
from ..inputs.audio import AudioModel as AudioModel
from ..inputs.audio_text import AudioTextEncoder as AudioTextEncoder
from ..inputs.audio_text import SoundLogits as SoundLogits
from ..inputs.dual_encoder import DualEncoder as DualEncoder
from ..inputs.dual_encoder import Logits as Logits
from ..inputs.encoder_decoder import EncoderDecoder as EncoderDecoder
from ..inputs.grounding import GroundedDetector as GroundedDetector
from ..inputs.grounding import GroundedOutput as GroundedOutput
from ..inputs.mask_generation import MaskGenerator as MaskGenerator
from ..inputs.poses import PoseModel as PoseModel
from ..inputs.text_masks import TextMaskModel as TextMaskModel
from ..typing import Array


class States(Protocol):
    """The output of a bare model."""

    @property
    def last_hidden_state(self) -> Array: ...  # (B, T, D)


class Spans(Protocol):
    """The output of extractive question answering."""

    @property
    def start_logits(self) -> Array: ...  # (B, T)

    @property
    def end_logits(self) -> Array: ...  # (B, T)


class Objects(Protocol):
    """The output of a detector with Q queries."""

    @property
    def logits(self) -> Array: ...  # (B, Q, C + 1), the last for no object; or (B, Q, C), each label by itself

    @property
    def pred_boxes(self) -> Array: ...  # (B, Q, 4): centre, width and height in parts of the image


class TextEmbeddings(Protocol):
    word: Array  # (V, ...)

    @property
    def max_positions(self) -> int: ...


class TextBody(Protocol):
    """A bare model of texts."""

    inputs: Mapping[str, str]  # what it takes besides attention_mask: a task passes token_type_ids where they are
    embeddings: TextEmbeddings
    layers: Sequence[Any]  # parity looks at the output of each

    def __call__(self, input_ids: Array, attention_mask: Array | None, token_type_ids: Array | None) -> States: ...


class TextModel(Protocol):
    inputs: Mapping[str, str]
    base_model: TextBody


class MaskedLM(TextModel, Protocol):
    def head(self, x: Array) -> Array:
        """States (..., D) -> logits (..., V): asked for the masked tokens alone."""
        ...


class CausalLM(TextModel, Decoder, Protocol):
    """A model for `zoo.generate`."""


class ImageTextLM(Decoder, Protocol):
    """A model for `zoo.generate`, whose prompts may have images, or are about one."""

    def prompt(self, *args: Any, **arguments: Any) -> Any: ...


class ImageEmbeddings(Protocol):
    prefix_tokens: Sequence[Array]  # the tokens before the patches, in arrays (1, tokens, D)


class ImageBody(Protocol):
    """A bare model of images."""

    embeddings: ImageEmbeddings
    layers: Sequence[Any]

    def __call__(self, pixel_values: Array) -> States: ...

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        """(B, Y, X, channels) -> (h, w)."""
        ...


class ImageModel(Protocol):
    base_model: ImageBody


class Reader(Protocol):
    """An encoder of images and a decoder that writes what they say; its config has one of each."""

    encoder: Any
    decoder: Decoder

    def encoder_states(self, p: ImageInputs) -> Array:
        """The images as `encoder.pixels` prepares them -> states (B, T, D)."""
        ...
