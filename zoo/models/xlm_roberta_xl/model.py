"""XLM-R XL and XXL (Goyal et al. 2021, https://arxiv.org/abs/2105.00572): XLM-R with norms before the parts of each
layer and one after all layers.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, C labels.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import TextInputs
from ...nn import Dropout, Module
from ...typing import Array
from ...weights import Weights
from ..bert.pre_norm import PreNormModel
from ..roberta import model as roberta
from .config import XLMRobertaXLConfig

NAME_MAP = replace(roberta.NAME_MAP, renames={})


class Embeddings(Module):
    """The sum of word, segment and position embeddings; positions count from pad_token_id + 1 and skip padding."""

    def __init__(self, w: Weights, cfg: XLMRobertaXLConfig):
        D = cfg.hidden_size
        self.pad, self.max_positions = cfg.pad_token_id, cfg.max_position_embeddings - cfg.pad_token_id - 1
        self.word = w.embedding("word_embeddings.weight", cfg.vocab_size, D)
        self.position = w.get("position_embeddings.weight", (cfg.max_position_embeddings, D))
        self.token_type = w.get("token_type_embeddings.weight", (cfg.type_vocab_size, D))
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def positions(self, t: TextInputs) -> Array:
        """Positions by input_ids, not by the mask.  -> (T,) or (B, T)."""
        if t.input_ids is None:
            return ops.arange(t.shape[1], self.word) + (self.pad + 1)
        token = t.ids != self.pad
        return ops.cumsum(token, 1) * token + self.pad

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.pad)
        at = self.positions(t) if t.position_ids is None else t.position_ids
        x = x + ops.embedding(at, self.position, "position_ids", self.pad)
        if t.token_type_ids is None:
            return self.dropout(x + self.token_type[0])
        return self.dropout(x + ops.embedding(t.token_type_ids, self.token_type, "token_type_ids"))


class XLMRobertaXLModel(PreNormModel):
    config_class = XLMRobertaXLConfig
    name_map = NAME_MAP
    embeddings_class = Embeddings
    norms = "attention.self_attn_layer_norm", "LayerNorm", "encoder.LayerNorm"

    def __init__(self, w: Weights, cfg: XLMRobertaXLConfig, pooler: bool | None = None):
        super().__init__(w, cfg, pooler)
        for layer in self.layers:
            layer.down.dropout = Dropout(0.0)  # as in transformers


class XLMRobertaXLHead(roberta.RobertaHead):
    config_class = XLMRobertaXLConfig
    name_map = NAME_MAP
    base_class = XLMRobertaXLModel


class XLMRobertaXLForMaskedLM(XLMRobertaXLHead, roberta.RobertaForMaskedLM): ...


class XLMRobertaXLForSequenceClassification(XLMRobertaXLHead, roberta.RobertaForSequenceClassification): ...
