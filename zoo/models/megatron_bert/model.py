"""Megatron-BERT (Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053), GatorTron (Yang et al. 2022,
https://arxiv.org/abs/2203.03540) among them: BERT with norms before the parts of each layer and one after all layers.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import Context, TextInputs
from ...inputs.heads import TokenClassification
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..bert import heads
from ..bert import model as bert
from .config import MegatronBertConfig

NAME_MAP = replace(bert.NAME_MAP, renames={})


class Embeddings(Module):
    """The sum of word, segment and position embeddings."""

    def __init__(self, w: Weights, cfg: MegatronBertConfig):
        D = cfg.hidden_size
        self.padding, self.max_positions = cfg.pad_token_id, cfg.max_position_embeddings
        self.word = w.embedding("word_embeddings.weight", cfg.vocab_size, D)
        self.position = w.get("position_embeddings.weight", (cfg.max_position_embeddings, D))
        self.token_type = w.get("token_type_embeddings.weight", (cfg.type_vocab_size, D))
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        at = ops.arange(t.shape[1], self.word) if t.position_ids is None else t.position_ids
        x = x + ops.embedding(at, self.position, "position_ids")
        if t.token_type_ids is None:
            return self.dropout(x + self.token_type[0])
        return self.dropout(x + ops.embedding(t.token_type_ids, self.token_type, "token_type_ids"))


class Layer(Module):
    def __init__(self, w: Weights, cfg: MegatronBertConfig):
        D, F, rate = cfg.hidden_size, cfg.intermediate_size, cfg.hidden_dropout_prob
        self.heads = cfg.num_attention_heads
        self.norm = LayerNorm(w / "attention.ln", D, cfg.layer_norm_eps)
        self.qkv = Linear.fuse(w / "attention.self", ["query", "key", "value"], D, [D, D, D])
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "attention.output.dense", D, D, dropout=rate)
        self.up_norm = LayerNorm(w / "ln", D, cfg.layer_norm_eps)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=rate)

    def __call__(self, x: Array, c: Context) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(self.norm(x)), self.heads)
        a = ops.attention(q, k, v, mask=c.mask, dropout=self.dropout.rate)
        x = self.out(a.reshape(x.shape), residual=x)
        return self.down(self.up(self.up_norm(x)), residual=x)


class MegatronBertModel(bert.BertModel):
    config_class = MegatronBertConfig
    name_map = NAME_MAP
    inputs, options = bert.INPUTS, ()

    def __init__(self, w: Weights, cfg: MegatronBertConfig, pooler: bool | None = None):
        D = cfg.hidden_size
        self.config = cfg
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "encoder.ln", D, cfg.layer_norm_eps)
        if pooler is None:
            pooler = "pooler" in w
        self.pooler = Linear(w / "pooler.dense", D, D, act="tanh") if pooler else None

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer in self.layers:
            x = layer(x, t.context)
        return self.norm(x)


class MegatronBertHead(bert.BertHead):
    config_class = MegatronBertConfig
    name_map = NAME_MAP
    base_class = MegatronBertModel


class MegatronBertForMaskedLM(MegatronBertHead, bert.BertForMaskedLM): ...


class MegatronBertForSequenceClassification(MegatronBertHead, heads.BertForSequenceClassification): ...


class MegatronBertForTokenClassification(TokenClassification, MegatronBertHead): ...
