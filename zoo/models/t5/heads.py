"""Heads on T5 (https://arxiv.org/abs/1910.10683): of the encoder's tokens, and of a decoder that reads the text again.

Shapes: B rows, T tokens, D d_model, L labels.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...inputs import TextInputs
from ...inputs.encoder_decoder import ReadTwice, Seq2SeqQuestionAnsweringOutput
from ...inputs.heads import DenseClassifier, TokenClassification, split_spans
from ...nn import Dropout, Linear
from ...typing import Array
from ...weights import NameMap, Weights
from .config import T5Config
from .model import IGNORED_WEIGHTS, TIED_ENCODER, TIED_SIDES, T5EncoderModel, T5Stack


def _prefix_ties(ties: Mapping[str, str]) -> dict[str, str]:
    """The ties of a model below the name "transformer"."""
    return {f"transformer.{name}": f"transformer.{owner}" for name, owner in ties.items()}


class T5ForTokenClassification(TokenClassification):
    """A classifier of the encoder's tokens."""

    config_class = T5Config
    name_map = T5EncoderModel.name_map
    tied = _prefix_ties(TIED_ENCODER)

    def __init__(self, w: Weights, cfg: T5Config):
        self.config = cfg
        self.base_model = T5EncoderModel(w / "transformer", cfg)
        self.dropout = Dropout(cfg.classifier_dropout)
        self.classifier = Linear(w / "classifier", cfg.d_model, cfg.num_labels)


class T5ForSequenceClassification(ReadTwice):
    """A head on the decoder's state at the last end of the text."""

    config_class = T5Config
    name_map = NameMap(prefix="transformer", base=("shared", "encoder", "decoder"), ignored=IGNORED_WEIGHTS)
    tied = _prefix_ties(TIED_SIDES)

    def __init__(self, w: Weights, cfg: T5Config):
        self.config = cfg
        cfg.require_tokens()
        self.encoder, self.decoder = T5EncoderModel(w / "transformer", cfg), T5Stack(w / "transformer", cfg)
        self.classifier = DenseClassifier(w / "classification_head", cfg, cfg.classifier_dropout)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(self.end(t))


class T5ForQuestionAnswering(ReadTwice):
    config_class = T5Config
    name_map = NameMap(prefix="transformer", base=(), ignored=IGNORED_WEIGHTS)
    tied = TIED_SIDES

    def __init__(self, w: Weights, cfg: T5Config):
        self.config = cfg
        cfg.require_tokens()
        self.encoder, self.decoder = T5EncoderModel(w, cfg), T5Stack(w, cfg)
        self.qa_outputs = Linear(w / "qa_outputs", cfg.d_model, 2)

    def forward(self, t: TextInputs) -> Seq2SeqQuestionAnsweringOutput:
        """-> logits (B, T) of an answer's first and last token."""
        x, seen = self.encode(t)
        return Seq2SeqQuestionAnsweringOutput(*split_spans(self.qa_outputs(x)), seen)
