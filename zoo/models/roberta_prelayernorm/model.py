"""RoBERTa as fairseq can train it (Ott et al. 2019, https://arxiv.org/abs/1904.01038), with norms before the parts of
each layer and one after all layers (efficient_mlm_*, Wettig et al. 2022, https://arxiv.org/abs/2202.08005).

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, C labels.
"""

from __future__ import annotations

from dataclasses import replace

from ...inputs import TextInputs
from ...inputs.heads import DenseClassifier, MaskedLM
from ...typing import Array
from ...weights import Weights
from ..bert import model as bert
from ..bert.pre_norm import PreNormModel
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


class RobertaPreLayerNormModel(PreNormModel):
    config_class = RobertaPreLayerNormConfig
    name_map = NAME_MAP
    embeddings_class = roberta.RobertaEmbeddings
    norms = "attention.LayerNorm", "intermediate.LayerNorm", "LayerNorm"


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
