"""RoBERTa as fairseq can train it (Ott et al. 2019, https://arxiv.org/abs/1904.01038), with norms before the parts of
each layer and one after all layers (efficient_mlm_*, Wettig et al. 2022, https://arxiv.org/abs/2202.08005).

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, C labels.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import Context, TextInputs
from ...inputs.heads import DenseClassifier, MaskedLM
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..bert import model as bert
from ..roberta import model as roberta
from .config import RobertaPreLayerNormConfig

NAME_MAP = replace(
    roberta.NAME_MAP,
    prefix="roberta_prelayernorm",
    base=("embeddings", "encoder", "LayerNorm", "pooler"),
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^(roberta_prelayernorm\.)?pooler\.", r"^lm_head\."),
)
TIED_WEIGHTS = {
    "lm_head.decoder.weight": "roberta_prelayernorm.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}


class Layer(Module):
    def __init__(self, w: Weights, cfg: RobertaPreLayerNormConfig):
        D, F, rate = cfg.hidden_size, cfg.intermediate_size, cfg.hidden_dropout_prob
        self.heads = cfg.num_attention_heads
        self.norm = LayerNorm(w / "attention.LayerNorm", D, cfg.layer_norm_eps)
        self.qkv = Linear.fuse(w / "attention.self", ["query", "key", "value"], D, [D, D, D])
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "attention.output.dense", D, D, dropout=rate)
        self.up_norm = LayerNorm(w / "intermediate.LayerNorm", D, cfg.layer_norm_eps)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=rate)

    def __call__(self, x: Array, c: Context) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(self.norm(x)), self.heads)
        a = ops.attention(q, k, v, mask=c.mask, dropout=self.dropout.rate)
        x = self.out(a.reshape(x.shape), residual=x)
        return self.down(self.up(self.up_norm(x)), residual=x)


class RobertaPreLayerNormModel(bert.BertModel):
    config_class = RobertaPreLayerNormConfig
    name_map = NAME_MAP
    inputs, options = bert.INPUTS, ()

    def __init__(self, w: Weights, cfg: RobertaPreLayerNormConfig, pooler: bool | None = None):
        D = cfg.hidden_size
        self.config = cfg
        self.embeddings = roberta.RobertaEmbeddings(w / "embeddings", cfg)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "LayerNorm", D, cfg.layer_norm_eps)
        if pooler is None:
            pooler = "pooler" in w
        self.pooler = Linear(w / "pooler.dense", D, D, act="tanh") if pooler else None

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer in self.layers:
            x = layer(x, t.context)
        return self.norm(x)


class RobertaPreLayerNormHead(bert.BertHead):
    config_class = RobertaPreLayerNormConfig
    name_map = NAME_MAP
    base_class = RobertaPreLayerNormModel


class RobertaPreLayerNormForMaskedLM(MaskedLM, RobertaPreLayerNormHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: RobertaPreLayerNormConfig):
        super().__init__(w, cfg)
        self.head = roberta.LMHead(w / "lm_head", cfg)


class RobertaPreLayerNormForSequenceClassification(RobertaPreLayerNormHead):
    def __init__(self, w: Weights, cfg: RobertaPreLayerNormConfig):
        super().__init__(w, cfg)
        self.classifier = DenseClassifier(w / "classifier", cfg, cfg.head_dropout)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        return self.classifier(self.base_model.encode(t)[:, 0])
