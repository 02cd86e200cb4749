"""ALBERT (Lan et al. 2019, https://arxiv.org/abs/1909.11942): BERT whose layers share their weights, over narrower
embeddings, trained to predict words and the order of two segments.

Shapes: B batch, T tokens, E embedding_size, D hidden_size, F intermediate_size, V vocab_size, C labels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ... import ops
from ...inputs import Context, TextInputs
from ...inputs.heads import MaskedLM, MaskedLMHead, QuestionAnswering, TokenClassification
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..bert import heads
from ..bert import model as bert
from .config import AlbertConfig

NAME_MAP = replace(
    bert.NAME_MAP,
    prefix="albert",
    ignored=(
        r"(^|\.)embeddings\.position_ids$",
        # The heads of pretraining, which stay in files that no longer use them.
        *(r"^(albert\.)?pooler\.", r"^predictions\.", r"^sop_classifier\."),
    ),
)
TIED_WEIGHTS = {
    "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
    "predictions.decoder.bias": "predictions.bias",
}
INPUTS = {**bert.INPUTS, "inputs_embeds": "embedding_size"}


class AlbertForPreTrainingOutput(NamedTuple):
    prediction_logits: Array  # (B, T, V)
    sop_logits: Array  # (B, 2)


class Layer(Module):
    def __init__(self, w: Weights, cfg: AlbertConfig):
        D, F, a = cfg.hidden_size, cfg.intermediate_size, w / "attention"
        self.heads = cfg.num_attention_heads
        self.qkv = Linear.fuse(a, ["query", "key", "value"], D, [D, D, D])
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(a / "dense", D, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(a / "LayerNorm", D, cfg.layer_norm_eps)
        self.up, self.down = Linear(w / "ffn", D, F, act=cfg.hidden_act), Linear(w / "ffn_output", F, D)
        self.output_norm = LayerNorm(w / "full_layer_layer_norm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, c: Context) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        a = ops.attention(q, k, v, mask=c.mask, dropout=self.dropout.rate)
        x = self.norm(self.out(a.reshape(x.shape)), residual=x)
        return self.output_norm(self.down(self.up(x)), residual=x)


class Group(Module):
    """Layers that are run one after another, mostly a single one."""

    def __init__(self, w: Weights, cfg: AlbertConfig):
        self.parts = [Layer(w / "albert_layers" / i, cfg) for i in range(cfg.inner_group_num)]

    def __call__(self, x: Array, c: Context) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        for part in self.parts:
            x = part(x, c)
        return x


class AlbertModel(bert.BertModel):
    """num_hidden_layers steps, in which each group of layers takes several turns."""

    config_class = AlbertConfig
    name_map = NAME_MAP
    inputs, options = INPUTS, ()

    def __init__(self, w: Weights, cfg: AlbertConfig, pooler: bool | None = None):
        D, encoder = cfg.hidden_size, w / "encoder"
        self.config = cfg
        self.embeddings = bert.Embeddings(w / "embeddings", cfg, cfg.embedding_size)
        self.projection = Linear(encoder / "embedding_hidden_mapping_in", cfg.embedding_size, D)
        self.layers = [Group(encoder / "albert_layer_groups" / i, cfg) for i in range(cfg.num_hidden_groups)]
        pooler = "pooler" in w if pooler is None else pooler
        self.pooler = Linear(w / "pooler", D, D, act="tanh") if pooler else None

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, steps = self.projection(self.embeddings(t)), self.config.num_hidden_layers
        for i in range(steps):
            x = self.layers[i * len(self.layers) // steps](x, t.context)
        return x


class AlbertHead(bert.BertHead):
    config_class = AlbertConfig
    name_map = NAME_MAP
    inputs = INPUTS
    base_class = AlbertModel


class Predictions(MaskedLMHead):
    """A logit for each word of the vocabulary."""

    def __init__(self, w: Weights, cfg: AlbertConfig):
        E = cfg.embedding_size
        self.dense = Linear(w / "dense", cfg.hidden_size, E, act=cfg.hidden_act)
        self.norm = LayerNorm(w / "LayerNorm", E, cfg.layer_norm_eps)
        self.decoder = Linear(w / "decoder", E, cfg.vocab_size, vocab=True)


class AlbertForMaskedLM(MaskedLM, AlbertHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: AlbertConfig):
        super().__init__(w, cfg)
        self.head = Predictions(w / "predictions", cfg)


class AlbertForPreTraining(AlbertHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: AlbertConfig):
        super().__init__(w, cfg, pooler=True)
        self.head, self.dropout = Predictions(w / "predictions", cfg), Dropout(cfg.head_dropout)
        self.classifier = Linear(w / "sop_classifier.classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, t: TextInputs) -> AlbertForPreTrainingOutput:
        """-> logits of the words, and of whether the two segments are in their order."""
        x, pooled = self.base_model.forward(t)
        return AlbertForPreTrainingOutput(self.head(x), self.classifier(self.dropout(pooled)))


class AlbertForSequenceClassification(AlbertHead, heads.BertForSequenceClassification): ...


class AlbertForMultipleChoice(AlbertHead, heads.BertForMultipleChoice): ...


class AlbertForTokenClassification(TokenClassification, AlbertHead): ...


class AlbertForQuestionAnswering(QuestionAnswering, AlbertHead): ...
