"""The configs of an OWLv2 checkpoint: OWL-ViT's, with smaller patches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ...config import Config
from ..owlvit.config import OwlViTConfig, OwlViTTextConfig, OwlViTVisionConfig


@dataclass(frozen=True, kw_only=True)
class Owlv2TextConfig(OwlViTTextConfig):
    model_type: str = "owlv2_text_model"


@dataclass(frozen=True, kw_only=True)
class Owlv2VisionConfig(OwlViTVisionConfig):
    model_type: str = "owlv2_vision_model"
    patch_size: int | list[int] | tuple[int, ...] = 16


@dataclass(frozen=True, kw_only=True)
class Owlv2Config(OwlViTConfig):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": Owlv2TextConfig,
        "vision_config": Owlv2VisionConfig,
    }
    model_type: str = "owlv2"
    text_config: Owlv2TextConfig = field(default_factory=Owlv2TextConfig)
    vision_config: Owlv2VisionConfig = field(default_factory=Owlv2VisionConfig)
