"""BART (https://arxiv.org/abs/1910.13461) and Marian without a head, and BART's heads: on a decoder that reads the text
again.

Shapes: B rows, T tokens, D d_model, L labels.
"""

from __future__ import annotations

from ...inputs import TextInputs
from ...inputs.encoder_decoder import (
    BareDecoder,
    ReadTwice,
    Seq2SeqModel,
    Seq2SeqModelOutput,
    Seq2SeqQuestionAnsweringOutput,
)
from ...inputs.heads import DenseClassifier, split_spans
from ...nn import Linear
from ...typing import Array
from ...weights import Weights
from .config import BartConfig, MarianConfig
from .model import NAME_MAP, TIED_BELOW, TIED_SIDES, DecoderStack, Encoder


class BartModel(ReadTwice):
    """Both sides without a head."""

    config_class = BartConfig
    name_map = NAME_MAP
    tied = TIED_SIDES
    is_base_model = True

    def __init__(self, w: Weights, cfg: BartConfig):
        self.config = cfg
        self.encoder, self.decoder = Encoder(w, cfg), DecoderStack(w, cfg)

    def forward(self, t: TextInputs) -> Seq2SeqModelOutput:
        return Seq2SeqModelOutput(*self.encode(t))


class MarianModel(Seq2SeqModel):
    """Both sides without a head; unlike BART's, it has to be given the decoder's tokens."""

    config_class = MarianConfig
    name_map = NAME_MAP
    tied = TIED_SIDES
    is_base_model = True

    def __init__(self, w: Weights, cfg: MarianConfig):
        self.config = cfg
        self.encoder, self.decoder = Encoder(w, cfg), BareDecoder(DecoderStack(w, cfg), cfg)


class BartHead(ReadTwice):
    """The base of the classes with a head on the decoder's states."""

    config_class = BartConfig
    name_map = NAME_MAP
    tied = TIED_BELOW

    def __init__(self, w: Weights, cfg: BartConfig):
        self.config = cfg
        self.encoder, self.decoder = Encoder(w / "model", cfg), DecoderStack(w / "model", cfg)


class BartForSequenceClassification(BartHead):
    """A head on the decoder's state at the last end of the text."""

    def __init__(self, w: Weights, cfg: BartConfig):
        super().__init__(w, cfg)
        self.classifier = DenseClassifier(w / "classification_head", cfg, cfg.classifier_dropout)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(self.end(t))


class BartForQuestionAnswering(BartHead):
    def __init__(self, w: Weights, cfg: BartConfig):
        super().__init__(w, cfg)
        self.qa_outputs = Linear(w / "qa_outputs", cfg.d_model, 2)

    def forward(self, t: TextInputs) -> Seq2SeqQuestionAnsweringOutput:
        """-> logits (B, T) of an answer's first and last token."""
        x, seen = self.encode(t)
        return Seq2SeqQuestionAnsweringOutput(*split_spans(self.qa_outputs(x)), seen)
