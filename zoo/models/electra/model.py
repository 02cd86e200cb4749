"""ELECTRA (Clark et al. 2020, https://arxiv.org/abs/2003.10555): BERT's layers over narrower embeddings, trained to
find the tokens that a small generator has replaced.

Shapes: B batch, T tokens, E embedding_size, D hidden_size, V vocab_size, C labels.
"""

from __future__ import annotations

from dataclasses import replace

from ...inputs import ChoiceModel, TextInputs
from ...inputs.heads import CausalLM, MaskedLM, MaskedLMHead, QuestionAnswering, TokenClassification
from ...nn import Dropout, LayerNorm, Linear
from ...typing import Array
from ...weights import Weights
from ..bert import model as bert
from .config import ElectraConfig

NAME_MAP = replace(
    bert.NAME_MAP,
    prefix="electra",
    base=("embeddings", "embeddings_project", "encoder"),
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^generator_", r"^discriminator_"),
)
TIED_WEIGHTS = {"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"}
INPUTS = {**bert.INPUTS, "inputs_embeds": "embedding_size"}
DECODER_INPUTS = {**INPUTS, "encoder_hidden_states": "hidden_size"}


class ElectraModel(bert.BertModel):
    config_class = ElectraConfig
    name_map = NAME_MAP
    inputs = DECODER_INPUTS

    def __init__(self, w: Weights, cfg: ElectraConfig, pooler: bool | None = None):
        E, D = cfg.embedding_size, cfg.hidden_size
        self.config, self.pooler = cfg, None
        self.embeddings = bert.Embeddings(w / "embeddings", cfg, E)
        self.projection = Linear(w / "embeddings_project", E, D) if E != D else None
        self.layers = [bert.Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        if self.projection is not None:
            x = self.projection(x)
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, t.context, cache)
        return x


class ElectraHead(bert.BertHead):
    config_class = ElectraConfig
    name_map = NAME_MAP
    inputs = INPUTS
    base_class = ElectraModel


class Predictions(MaskedLMHead):
    """The generator's head: a logit for each word of the vocabulary."""

    def __init__(self, w: Weights, cfg: ElectraConfig):
        E = cfg.embedding_size
        self.dense = Linear(w / "generator_predictions.dense", cfg.hidden_size, E, act="gelu")
        self.norm = LayerNorm(w / "generator_predictions.LayerNorm", E, cfg.layer_norm_eps)
        self.decoder = Linear(w / "generator_lm_head", E, cfg.vocab_size, vocab=True)


class ElectraForMaskedLM(MaskedLM, ElectraHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: ElectraConfig):
        super().__init__(w, cfg)
        self.head = Predictions(w, cfg)


class ElectraForCausalLM(CausalLM, ElectraForMaskedLM):
    """The decoder: logits of the next token."""

    inputs = ElectraModel.inputs


class ElectraForPreTraining(ElectraHead):
    """The discriminator."""

    def __init__(self, w: Weights, cfg: ElectraConfig):
        super().__init__(w, cfg)
        w, D = w / "discriminator_predictions", cfg.hidden_size
        self.dense = Linear(w / "dense", D, D, act=cfg.hidden_act)
        self.prediction = Linear(w / "dense_prediction", D, 1)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, T): above 0 for a token that was replaced."""
        return self.prediction(self.dense(self.base_model.encode(t)))[:, :, 0]


class ElectraForSequenceClassification(ElectraHead):
    def __init__(self, w: Weights, cfg: ElectraConfig):
        super().__init__(w, cfg)
        self.dense = Linear(w / "classifier.dense", cfg.hidden_size, cfg.hidden_size, act="gelu")
        self.dropout = Dropout(cfg.head_dropout)
        self.out = Linear(w / "classifier.out_proj", cfg.hidden_size, cfg.num_labels)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        return self.out(self.dropout(self.dense(self.dropout(self.base_model.encode(t)[:, 0]))))


class ElectraForMultipleChoice(ChoiceModel, ElectraHead):
    def __init__(self, w: Weights, cfg: ElectraConfig):
        super().__init__(w, cfg)
        D = cfg.hidden_size
        self.summary = Linear(
            w / "sequence_summary.summary", D, D, act=cfg.summary_activation, dropout=cfg.summary_last_dropout
        )
        self.classifier = Linear(w / "classifier", D, 1)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, 1) of each choice by itself."""
        return self.classifier(self.summary(self.base_model.encode(t)[:, 0]))


class ElectraForTokenClassification(TokenClassification, ElectraHead): ...


class ElectraForQuestionAnswering(QuestionAnswering, ElectraHead): ...
