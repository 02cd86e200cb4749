"""The configs of a MetaCLIP 2 checkpoint: CLIP's, of the encoder of texts, of that of images, and of both together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ..clip.config import CLIPConfig, CLIPTextConfig, CLIPVisionConfig


@dataclass(frozen=True, kw_only=True)
class MetaClip2TextConfig(CLIPTextConfig):
    model_type: str = "metaclip_2_text_model"


@dataclass(frozen=True, kw_only=True)
class MetaClip2VisionConfig(CLIPVisionConfig):
    model_type: str = "metaclip_2_vision_model"


@dataclass(frozen=True, kw_only=True)
class MetaClip2Config(CLIPConfig):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": MetaClip2TextConfig,
        "vision_config": MetaClip2VisionConfig,
    }
    model_type: str = "metaclip_2"
