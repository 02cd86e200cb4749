"""Megatron-BERT (Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053), GatorTron (Yang et al. 2022,
https://arxiv.org/abs/2203.03540) among them: BERT with norms before the parts of each layer and one after all layers.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import TextInputs
from ...inputs.heads import TokenClassification
from ...nn import Dropout, Module
from ...typing import Array
from ...weights import Weights
from ..bert import heads
from ..bert import model as bert
from ..bert.pre_norm import PreNormModel
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


class MegatronBertModel(PreNormModel):
    config_class = MegatronBertConfig
    name_map = NAME_MAP
    embeddings_class = Embeddings
    norms = "attention.ln", "ln", "encoder.ln"


class MegatronBertHead(bert.BertHead):
    config_class = MegatronBertConfig
    name_map = NAME_MAP
    base_class = MegatronBertModel


class MegatronBertForMaskedLM(MegatronBertHead, bert.BertForMaskedLM): ...


class MegatronBertForSequenceClassification(MegatronBertHead, heads.BertForSequenceClassification): ...


class MegatronBertForTokenClassification(TokenClassification, MegatronBertHead): ...
