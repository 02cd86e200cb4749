"""The configs of a Chinese-CLIP checkpoint: BERT's of the encoder of texts, CLIP's of that of images, and of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ..bert.config import BertConfig
from ..clip.config import CLIPConfig, CLIPVisionConfig


@dataclass(frozen=True, kw_only=True)
class ChineseCLIPTextConfig(BertConfig):
    model_type: str = "chinese_clip_text_model"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(is_decoder=False, add_cross_attention=False)


@dataclass(frozen=True, kw_only=True)
class ChineseCLIPVisionConfig(CLIPVisionConfig):
    model_type: str = "chinese_clip_vision_model"


@dataclass(frozen=True, kw_only=True)
class ChineseCLIPConfig(CLIPConfig):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": ChineseCLIPTextConfig,
        "vision_config": ChineseCLIPVisionConfig,
    }
    model_type: str = "chinese_clip"
    text_config: ChineseCLIPTextConfig  # type: ignore[assignment]  # which has no width of the vectors
    vision_config: ChineseCLIPVisionConfig
