"""ERNIE (Sun et al. 2019, https://arxiv.org/abs/1904.09223), 1.0 to 3.0: BERT, trained to predict whole words and
names.

Shapes: B batch, T tokens, D hidden_size.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import TextInputs
from ...inputs.heads import TokenClassification
from ...typing import Array
from ...weights import Weights
from ..bert import heads
from ..bert import model as bert
from .config import ErnieConfig

NAME_MAP = replace(
    bert.NAME_MAP,
    prefix="ernie",
    # A buffer, embeddings of tasks that the config leaves out, and heads of pretraining.
    ignored=(r"(^|\.)embeddings\.(position_ids|task_type_embeddings\.weight)$", r"^(ernie\.)?pooler\.", r"^cls\."),
)
TIED_WEIGHTS = {
    "cls.predictions.decoder.weight": "ernie.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


class Embeddings(bert.Embeddings):
    def __init__(self, w: Weights, cfg: ErnieConfig):
        super().__init__(w, cfg)
        self.task = None
        if cfg.use_task_id:
            self.task = w.get("task_type_embeddings.weight", (cfg.task_type_vocab_size, cfg.hidden_size))

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        if self.task is None:
            return super().__call__(t)
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        at = self.positions(t) if t.position_ids is None else t.position_ids
        segments = self.token_type[0]
        if t.token_type_ids is not None:
            segments = ops.embedding(t.token_type_ids, self.token_type, "token_type_ids")
        x = x + segments + ops.embedding(at, self.position, "position_ids") + self.task[0]
        return self.dropout(self.norm(x))


class ErnieModel(bert.BertModel):
    config_class = ErnieConfig
    name_map = NAME_MAP
    inputs, options = bert.INPUTS, ()
    embeddings_class = Embeddings


class ErnieHead(bert.BertHead):
    config_class = ErnieConfig
    name_map = NAME_MAP
    base_class = ErnieModel


class ErnieForMaskedLM(ErnieHead, bert.BertForMaskedLM):
    tied = TIED_WEIGHTS


class ErnieForSequenceClassification(ErnieHead, heads.BertForSequenceClassification): ...


class ErnieForTokenClassification(TokenClassification, ErnieHead): ...
