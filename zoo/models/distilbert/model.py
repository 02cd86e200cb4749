"""DistilBERT (Sanh et al. 2019, https://arxiv.org/abs/1910.01108): every second layer of BERT, without segments and
without a pooler, trained to give BERT's answers.

Shapes: B batch, T tokens, D dim, F hidden_dim, V vocab_size, C labels.
"""

from __future__ import annotations

from ... import ops
from ...inputs import ChoiceModel, TextInputs, TextModel
from ...inputs.heads import MaskedLM, MaskedLMHead, QuestionAnsweringOutput, TokenClassification, split_spans
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert.model import BertModelOutput
from .config import DistilBertConfig

EPS = 1e-12  # every norm's; no config says it
NAME_MAP = NameMap(
    prefix="distilbert",
    base=("embeddings", "transformer"),
    # A buffer that counts up from 0, and the head of pretraining.
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^vocab_"),
)
TIED_WEIGHTS = {"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"}
INPUTS = {
    "input_ids": "vocab_size",
    "position_ids": "max_position_embeddings",
    "inputs_embeds": "dim",
}


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: DistilBertConfig):
        self.padding = cfg.pad_token_id
        self.word = w.embedding("word_embeddings.weight", cfg.vocab_size, cfg.dim)
        self.position = w.get("position_embeddings.weight", (cfg.max_position_embeddings, cfg.dim))
        self.norm = LayerNorm(w / "LayerNorm", cfg.dim, EPS)
        self.dropout = Dropout(cfg.dropout)

    @property
    def max_positions(self) -> int:
        """The length of the longest text."""
        return self.position.shape[0]

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        at = ops.arange(t.shape[1], self.word) if t.position_ids is None else t.position_ids
        return self.dropout(self.norm(x + ops.embedding(at, self.position, "position_ids")))


class Layer(Module):
    def __init__(self, w: Weights, cfg: DistilBertConfig):
        D, F = cfg.dim, cfg.hidden_dim
        self.heads = cfg.n_heads
        self.qkv = Linear.fuse(w / "attention", ["q_lin", "k_lin", "v_lin"], D, [D, D, D])
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "attention.out_lin", D, D)
        self.attention_norm = LayerNorm(w / "sa_layer_norm", D, EPS)
        self.up = Linear(w / "ffn.lin1", D, F, act=cfg.activation)
        self.down = Linear(w / "ffn.lin2", F, D, dropout=cfg.dropout)
        self.norm = LayerNorm(w / "output_layer_norm", D, EPS)

    def __call__(self, x: Array, mask: Array | None) -> Array:
        """x (B, T, D), mask (B, T) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        a = ops.attention(q, k, v, mask=mask, dropout=self.dropout.rate)
        x = self.attention_norm(self.out(a.reshape(x.shape)), residual=x)
        return self.norm(self.down(self.up(x)), residual=x)


class DistilBertPretrained(TextModel):
    config_class = DistilBertConfig
    name_map = NAME_MAP
    inputs = INPUTS


class DistilBertModel(DistilBertPretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: DistilBertConfig):
        self.config = cfg
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [Layer(w / "transformer.layer" / i, cfg) for i in range(cfg.n_layers)]

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer in self.layers:
            x = layer(x, t.context.mask)
        return x

    def forward(self, t: TextInputs) -> BertModelOutput:
        return BertModelOutput(self.encode(t), None)


class DistilBertHead(DistilBertPretrained):
    """The base of the classes with a head."""

    def __init__(self, w: Weights, cfg: DistilBertConfig):
        self.config = cfg
        self.base_model = DistilBertModel(w / "distilbert", cfg)


class Predictions(MaskedLMHead):
    """The masked language modelling head: a logit for each word of the vocabulary."""

    def __init__(self, w: Weights, cfg: DistilBertConfig):
        self.dense = Linear(w / "vocab_transform", cfg.dim, cfg.dim, act=cfg.activation)
        self.norm = LayerNorm(w / "vocab_layer_norm", cfg.dim, EPS)
        self.decoder = Linear(w / "vocab_projector", cfg.dim, cfg.vocab_size, vocab=True)


class DistilBertForMaskedLM(MaskedLM, DistilBertHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: DistilBertConfig):
        super().__init__(w, cfg)
        self.head = Predictions(w, cfg)


class DistilBertForSequenceClassification(DistilBertHead):
    def __init__(self, w: Weights, cfg: DistilBertConfig, labels: int | None = None):
        super().__init__(w, cfg)
        self.dense = Linear(w / "pre_classifier", cfg.dim, cfg.dim, act="relu", dropout=cfg.seq_classif_dropout)
        self.classifier = Linear(w / "classifier", cfg.dim, labels or cfg.num_labels)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        return self.classifier(self.dense(self.base_model.encode(t)[:, 0]))


class DistilBertForMultipleChoice(ChoiceModel, DistilBertForSequenceClassification):
    """A classifier with one logit, which `forward` gives for each choice by itself."""

    def __init__(self, w: Weights, cfg: DistilBertConfig):
        super().__init__(w, cfg, labels=1)


class DistilBertForTokenClassification(TokenClassification, DistilBertHead):
    def __init__(self, w: Weights, cfg: DistilBertConfig):
        DistilBertHead.__init__(self, w, cfg)
        self.dropout = Dropout(cfg.dropout)
        self.classifier = Linear(w / "classifier", cfg.dim, cfg.num_labels)


class DistilBertForQuestionAnswering(DistilBertHead):
    def __init__(self, w: Weights, cfg: DistilBertConfig):
        super().__init__(w, cfg)
        self.dropout = Dropout(cfg.qa_dropout)
        self.qa_outputs = Linear(w / "qa_outputs", cfg.dim, 2)

    def forward(self, t: TextInputs) -> QuestionAnsweringOutput:
        """-> logits (B, T) of an answer's first and last token."""
        return split_spans(self.qa_outputs(self.dropout(self.base_model.encode(t))))
