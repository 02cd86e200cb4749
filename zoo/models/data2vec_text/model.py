"""data2vec of texts (Baevski et al. 2022, https://arxiv.org/abs/2202.03555): RoBERTa's network, trained to predict its
own states.

Shapes: as in RoBERTa's models.
"""

from __future__ import annotations

from dataclasses import replace

from ..roberta import model as roberta
from .config import Data2VecTextConfig

NAME_MAP = replace(
    roberta.NAME_MAP,
    prefix="data2vec_text",
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^(data2vec_text\.)?pooler\.", r"^lm_head\."),
)
TIED_WEIGHTS = {
    "lm_head.decoder.weight": "data2vec_text.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}


class Data2VecTextModel(roberta.RobertaModel):
    config_class = Data2VecTextConfig
    name_map = NAME_MAP


class Data2VecTextHead(roberta.RobertaHead):
    config_class = Data2VecTextConfig
    name_map = NAME_MAP
    base_class = Data2VecTextModel


class Data2VecTextForMaskedLM(Data2VecTextHead, roberta.RobertaForMaskedLM):
    tied = TIED_WEIGHTS


class Data2VecTextForSequenceClassification(Data2VecTextHead, roberta.RobertaForSequenceClassification): ...
