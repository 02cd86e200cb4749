"""Donut's encoder (Kim et al. 2021, https://arxiv.org/abs/2111.15664): Swin without the norm after the last stage.

Shapes: B batch, D width of the last stage, L labels.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import ImageInputs
from ...nn import Dropout, Linear
from ...typing import Array
from ...weights import Weights
from ..swin.model import NAME_MAP as SWIN
from ..swin.model import SwinModel, SwinPretrained
from .config import DonutSwinConfig

NAME_MAP = replace(SWIN, prefix="donut", base=("embeddings", "encoder"), renames={})


class DonutSwinPretrained(SwinPretrained):
    config_class = DonutSwinConfig
    name_map = NAME_MAP
    only_saved = (r"\.relative_position_index$",)


class DonutSwinModel(DonutSwinPretrained, SwinModel):
    is_base_model = True
    name_map = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^classifier\."))

    def __init__(self, w: Weights, cfg: DonutSwinConfig):
        super().__init__(w, cfg, normed=False)
        for block in (block for stage in self.layers for block in stage.blocks):
            block.attention.out.dropout = Dropout(cfg.attention_probs_dropout_prob)


class DonutSwinForImageClassification(DonutSwinPretrained):
    def __init__(self, w: Weights, cfg: DonutSwinConfig):
        self.config = cfg
        self.base_model = DonutSwinModel(w / "donut", cfg)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(ops.mean(self.base_model.encode(p), 1))
