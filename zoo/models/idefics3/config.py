"""The configs of an Idefics3 or SmolVLM checkpoint: of the encoder of images, of the decoder, and of both together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError
from ...inputs.image_text_config import ImageTextConfig
from ..llama3.config import LlamaConfig
from ..siglip.config import SiglipVisionConfig


@dataclass(frozen=True, kw_only=True)
class Idefics3VisionConfig(SiglipVisionConfig):
    model_type: str = "idefics3_vision"
    hidden_size: int = 1152
    num_attention_heads: int = 16
    patch_size: int | list[int] | tuple[int, ...] = 32


@dataclass(frozen=True, kw_only=True)
class Idefics3Config(ImageTextConfig):
    names_vision = False
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": LlamaConfig,
        "vision_config": Idefics3VisionConfig,
    }
    model_type: str = "idefics3"
    image_token_id: int = 128257
    scale_factor: int = 2
    tie_word_embeddings: bool = False
    text_config: LlamaConfig
    vision_config: Idefics3VisionConfig

    def __post_init__(self) -> None:
        self.positive("scale_factor")
        self.check_image_token()
        if self.vision_config.grid[0] % self.scale_factor:
            raise ConfigError(
                f"scale_factor = {self.scale_factor} does not divide {self.vision_config.grid[0]}, the number of "
                "patches along the side of an image"
            )


@dataclass(frozen=True, kw_only=True)
class SmolVLMConfig(Idefics3Config):
    model_type: str = "smolvlm"
