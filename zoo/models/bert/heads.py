"""The heads of BERT (https://arxiv.org/abs/1810.04805) that judge texts, pairs, choices and tokens.

Shapes: B batch, T tokens, V vocab_size, C labels.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from ...inputs import ChoiceModel, TextInputs
from ...inputs.heads import QuestionAnswering, TokenClassification
from ...nn import Dropout, Linear
from ...typing import Array
from ...weights import Weights
from .config import BertConfig
from .model import TIED_WEIGHTS, BertHead, Predictions


class BertForPreTrainingOutput(NamedTuple):
    prediction_logits: Array  # (B, T, V)
    seq_relationship_logits: Array  # (B, 2)


class BertForPreTraining(BertHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: BertConfig):
        super().__init__(w, cfg, pooler=True)
        self.head = Predictions(w / "cls.predictions", cfg)
        self.seq_relationship = Linear(w / "cls.seq_relationship", cfg.hidden_size, 2)

    def forward(self, t: TextInputs) -> BertForPreTrainingOutput:
        x, pooled = self.base_model.forward(t)
        return BertForPreTrainingOutput(self.head(x), self.seq_relationship(pooled))


class BertForNextSentencePrediction(BertHead):
    def __init__(self, w: Weights, cfg: BertConfig):
        super().__init__(w, cfg, pooler=True)
        self.seq_relationship = Linear(w / "cls.seq_relationship", cfg.hidden_size, 2)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, 2), where 0 means is next."""
        return self.seq_relationship(self.base_model.forward(t).pooler_output)


class BertForSequenceClassification(BertHead):
    labels: ClassVar[int | None] = None  # their number, if not the config's

    def __init__(self, w: Weights, cfg: BertConfig):
        super().__init__(w, cfg, pooler=True)
        self.dropout = Dropout(cfg.head_dropout)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, self.labels or cfg.num_labels)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        return self.classifier(self.dropout(self.base_model.forward(t).pooler_output))


class BertForMultipleChoice(ChoiceModel, BertForSequenceClassification):
    """A classifier with one logit, which `forward` gives for each choice by itself."""

    labels = 1


class BertForTokenClassification(TokenClassification, BertHead): ...


class BertForQuestionAnswering(QuestionAnswering, BertHead): ...
