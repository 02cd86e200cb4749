"""The configs of a GOT-OCR 2.0 checkpoint: of the encoder of images, and of the whole, whose decoder is a Qwen2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...inputs.image_text_config import ImageIndexConfig
from ..qwen2.config import Qwen2Config
from ..sam.config import SamVisionConfig


@dataclass(frozen=True, kw_only=True)
class GotOcr2VisionConfig(SamVisionConfig):
    model_type: str = "got_ocr2_vision"
    mlp_dim: int = 3072


@dataclass(frozen=True, kw_only=True)
class GotOcr2Config(ImageIndexConfig):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": Qwen2Config,
        "vision_config": GotOcr2VisionConfig,
    }
    model_type: str = "got_ocr2"
    image_token_index: int = 151859
    tie_word_embeddings: bool = True
    text_config: Qwen2Config
    vision_config: GotOcr2VisionConfig

    def __post_init__(self) -> None:
        self.check_image_token()
