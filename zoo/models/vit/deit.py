"""DeiT (Touvron et al. 2020, https://arxiv.org/abs/2012.12877): ViT with one more token, which learns from a teacher.

Checkpoints that were trained without a teacher have no such token: their model_type is vit.  Shapes: as for ViT.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...inputs import ImageInputs
from ...nn import Linear
from ...typing import Array
from ...weights import NameMap, Weights
from .config import DeiTConfig
from .model import (
    BASE,
    LAYER_NAMES,
    ViTForImageClassification,
    ViTForMaskedImageModeling,
    ViTHead,
    ViTModel,
)

NAME_MAP = NameMap(
    prefix="deit",
    base=BASE,
    renames=LAYER_NAMES,
    # Files keep them after another head was trained.
    ignored=(r"^(deit\.)?pooler\.", r"(^|\.)embeddings\.mask_token$"),
)


class DeiTForImageClassificationWithTeacherOutput(NamedTuple):
    logits: Array  # (B, L): the mean of the other two
    cls_logits: Array  # (B, L)
    distillation_logits: Array  # (B, L)


class DeiTModel(ViTModel):
    config_class = DeiTConfig
    name_map = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^(cls_|distillation_)?classifier\.", r"^decoder\."))


class DeiTHead(ViTHead):
    config_class = DeiTConfig
    name_map = NAME_MAP
    base_class = DeiTModel


class DeiTForImageClassification(DeiTHead, ViTForImageClassification): ...


class DeiTForImageClassificationWithTeacher(DeiTHead):
    """A classifier of the class token, and one of the distillation token, which learned from the teacher."""

    def __init__(self, w: Weights, cfg: DeiTConfig):
        super().__init__(w, cfg)
        self.cls_classifier = Linear(w / "cls_classifier", cfg.hidden_size, cfg.num_labels)
        self.distillation_classifier = Linear(w / "distillation_classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> DeiTForImageClassificationWithTeacherOutput:
        """-> logits (B, L) of both classifiers, and their mean."""
        x = self.base_model.encode(p)
        own, taught = self.cls_classifier(x[:, 0]), self.distillation_classifier(x[:, 1])
        return DeiTForImageClassificationWithTeacherOutput((own + taught) / 2, own, taught)


class DeiTForMaskedImageModeling(DeiTHead, ViTForMaskedImageModeling): ...
