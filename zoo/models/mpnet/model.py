"""MPNet (Song et al. 2020, https://arxiv.org/abs/2004.09297): BERT's post-norm layers, RoBERTa's positions and heads,
and a bias of relative positions that all layers share.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, V vocab_size, C labels.
"""

from __future__ import annotations

from ... import ops
from ...inputs import TextInputs
from ...inputs.heads import QuestionAnswering, TokenClassification
from ...nn import DistanceBias, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert.heads import BertForMultipleChoice
from ..bert.model import BertHead, BertModel
from ..roberta.model import RobertaEmbeddings, RobertaForMaskedLM, RobertaForSequenceClassification
from .config import BUCKETS, MAX_DISTANCE, PADDING, MPNetConfig

NAME_MAP = NameMap(
    prefix="mpnet",
    base=("embeddings", "encoder", "pooler"),
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^(mpnet\.)?pooler\.", r"^lm_head\."),
)
TIED_WEIGHTS = {
    "lm_head.decoder.weight": "mpnet.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}
INPUTS = {"input_ids": "vocab_size"}


class Embeddings(RobertaEmbeddings):
    def __init__(self, w: Weights, cfg: MPNetConfig):
        self.padding = self.pad = self.position_padding = PADDING
        self.word = w.embedding("word_embeddings.weight", cfg.vocab_size, cfg.hidden_size)
        self.position = w.get("position_embeddings.weight", (cfg.max_position_embeddings, cfg.hidden_size))
        self.norm = LayerNorm(w / "LayerNorm", cfg.hidden_size, cfg.layer_norm_eps)
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = ops.embedding(t.ids, self.word, "input_ids", PADDING)
        return self.dropout(self.norm(x + ops.embedding(self.positions(t), self.position, "positions", PADDING)))


class Layer(Module):
    def __init__(self, w: Weights, cfg: MPNetConfig):
        D, F, eps, rate = cfg.hidden_size, cfg.intermediate_size, cfg.layer_norm_eps, cfg.hidden_dropout_prob
        self.heads = cfg.num_attention_heads
        self.qkv = Linear.fuse(w / "attention.attn", ["q", "k", "v"], D, [D, D, D])
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "attention.attn.o", D, D, dropout=rate)
        self.attention_norm = LayerNorm(w / "attention.LayerNorm", D, eps)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=rate)
        self.norm = LayerNorm(w / "output.LayerNorm", D, eps)

    def __call__(self, x: Array, mask: Array | None, bias: Array) -> Array:
        """x (B, T, D), mask (B, T), bias (1, H, T, T) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        a = ops.attention(q, k, v, mask=mask, bias=bias, dropout=self.dropout.rate)
        x = self.attention_norm(self.out(a.reshape(x.shape)), residual=x)
        return self.norm(self.down(self.up(x)), residual=x)


class MPNetModel(BertModel):
    config_class, name_map, inputs = MPNetConfig, NAME_MAP, INPUTS
    options = ()

    def __init__(self, w: Weights, cfg: MPNetConfig, pooler: bool | None = None):
        self.config = cfg
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.distances = DistanceBias(
            w / "encoder.relative_attention_bias", BUCKETS, cfg.num_attention_heads, MAX_DISTANCE
        )
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        pooler = "pooler" in w if pooler is None else pooler
        self.pooler = Linear(w / "pooler.dense", cfg.hidden_size, cfg.hidden_size, act="tanh") if pooler else None

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        bias = self.distances(ops.arange(t.shape[1], x)[None])
        for layer in self.layers:
            x = layer(x, t.context.mask, bias)
        return x


class MPNetHead(BertHead):
    config_class, name_map, inputs = MPNetConfig, NAME_MAP, INPUTS
    base_class = MPNetModel


class MPNetForMaskedLM(MPNetHead, RobertaForMaskedLM):
    tied = TIED_WEIGHTS


class MPNetForSequenceClassification(MPNetHead, RobertaForSequenceClassification): ...


class MPNetForMultipleChoice(MPNetHead, BertForMultipleChoice): ...


class MPNetForTokenClassification(TokenClassification, MPNetHead): ...


class MPNetForQuestionAnswering(QuestionAnswering, MPNetHead): ...
