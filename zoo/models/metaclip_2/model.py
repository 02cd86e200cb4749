"""MetaCLIP 2 (Chuang et al. 2025, https://arxiv.org/abs/2507.22062): CLIP for the world's languages, with XLM-V's
vocabulary.  Of a text it takes the state at the first token eos_token_id, which is 2 in the files.

Shapes: as in CLIP's models.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...typing import Array
from ..clip import model as clip
from .config import MetaClip2Config, MetaClip2TextConfig, MetaClip2VisionConfig

NAME_MAP = replace(clip.NAME_MAP, prefix="metaclip_2")


class MetaClip2TextModel(clip.CLIPTextModel):
    config_class = MetaClip2TextConfig

    def eos_positions(self, ids: Array) -> Array:
        """ids (B, T) -> (B,): the first place of the token that ends a text; the first token if there is none."""
        seen = ops.cumsum(ids == self.config.eos_token_id, 1)
        return ops.cumsum(seen < 1, 1)[:, -1] * (seen[:, -1] > 0)


class MetaClip2TextModelWithProjection(clip.CLIPTextModelWithProjection):
    config_class = MetaClip2TextConfig
    base_class = MetaClip2TextModel


class MetaClip2VisionModel(clip.CLIPVisionModel):
    config_class = MetaClip2VisionConfig


class MetaClip2VisionModelWithProjection(clip.CLIPVisionModelWithProjection):
    config_class = MetaClip2VisionConfig


class MetaClip2ForImageClassification(clip.CLIPForImageClassification):
    config_class = MetaClip2Config
    name_map = replace(clip.CLIPForImageClassification.name_map, prefix="metaclip_2")


class MetaClip2Model(clip.CLIPModel):
    config_class = MetaClip2Config
    name_map = NAME_MAP
    text_class = MetaClip2TextModel
