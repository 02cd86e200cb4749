"""OWLv2 (Minderer et al. 2023, https://arxiv.org/abs/2306.09683): an OWL-ViT trained on the boxes that another found in
a billion images.  A further head says how likely a patch has an object at all.  Images are squares, padded at the right
and at the bottom, of which boxes are parts.

Shapes: as in OWL-ViT's models.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...inputs import ImageInputs, TextInputs
from ...inputs.grounding import Queries
from ...typing import Array
from ...weights import Weights
from ..owlvit import model as owlvit
from .config import Owlv2Config, Owlv2TextConfig, Owlv2VisionConfig

NAME_MAP = replace(owlvit.NAME_MAP, prefix="owlv2")


class Owlv2ObjectDetectionOutput(NamedTuple):
    logits: Array  # (C, N, B)
    pred_boxes: Array  # (C, N, 4)
    objectness_logits: Array  # (C, N)


class Owlv2TextModel(owlvit.OwlViTTextModel):
    config_class = Owlv2TextConfig


class Owlv2VisionModel(owlvit.OwlViTVisionModel):
    config_class = Owlv2VisionConfig


class Owlv2Model(owlvit.OwlViTModel):
    config_class = Owlv2Config
    name_map = replace(owlvit.OwlViTModel.name_map, prefix="owlv2")
    text_class = Owlv2TextModel
    vision_class = Owlv2VisionModel


class Owlv2ForObjectDetection(owlvit.OwlViTForObjectDetection):
    config_class = Owlv2Config
    name_map = NAME_MAP
    base_class = Owlv2Model

    def __init__(self, w: Weights, cfg: Owlv2Config):
        super().__init__(w, cfg)
        self.objectness_head = owlvit.Mlp(w / "objectness_head", cfg.vision_config.hidden_size, 1)

    def detect(self, p: ImageInputs, q: Queries) -> Owlv2ObjectDetectionOutput:  # type: ignore[override]
        x = self.patches(p)
        logits, boxes = self.class_head(x, q.text_embeds), self.boxes(x, p.grid)
        return Owlv2ObjectDetectionOutput(logits, boxes, self.objectness_head(x)[..., 0])

    def forward(self, p: ImageInputs, t: TextInputs) -> Owlv2ObjectDetectionOutput:  # type: ignore[override]
        return self.detect(p, Queries(self.text_embeds(t)))
