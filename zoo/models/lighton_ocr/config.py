"""The config of a LightOnOCR checkpoint, whose parts are Pixtral's encoder of images and a Qwen3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...inputs.image_text_config import ImageTextConfig
from ..mistral3.config import PixtralVisionConfig
from ..qwen3.config import Qwen3Config


@dataclass(frozen=True, kw_only=True)
class LightOnOcrConfig(ImageTextConfig):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": Qwen3Config,
        "vision_config": PixtralVisionConfig,
    }
    projector_hidden_act: ClassVar[str] = "gelu"
    multimodal_projector_bias: ClassVar[bool] = False
    model_type: str = "lighton_ocr"
    image_token_id: int = 151655
    spatial_merge_size: int = 2
    tie_word_embeddings: bool = True
    text_config: Qwen3Config
    vision_config: PixtralVisionConfig

    def __post_init__(self) -> None:
        self.positive("spatial_merge_size")
        self.check_image_token()
