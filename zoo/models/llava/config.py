"""The config of a LLaVA checkpoint, whose parts are CLIP's encoder of images and a Llama."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from ...config import Config
from ...errors import ConfigError
from ...inputs.image_text_config import ImageIndexConfig
from ..clip.config import CLIPVisionConfig
from ..llama3.config import LlamaConfig

C = TypeVar("C", bound="LlavaConfig")


@dataclass(frozen=True, kw_only=True)
class LlavaConfig(ImageIndexConfig):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": LlamaConfig,
        "vision_config": CLIPVisionConfig,
    }
    model_type: str = "llava"
    projector_hidden_act: str = "gelu"
    vision_feature_select_strategy: str = "default"
    vision_feature_layer: int = -2
    multimodal_projector_bias: bool = True
    tie_word_embeddings: bool = False
    text_config: LlamaConfig
    vision_config: CLIPVisionConfig

    def __post_init__(self) -> None:
        self.check_image_token()
        if self.vision_feature_select_strategy not in ("default", "full"):
            found = self.vision_feature_select_strategy
            raise ConfigError(f"vision_feature_select_strategy = {found!r}, expected 'default' or 'full'")
        depth = self.vision_config.num_hidden_layers
        if not -depth - 1 <= self.vision_feature_layer <= depth:
            raise ConfigError(f"vision_feature_layer = {self.vision_feature_layer}, and the encoder has {depth} layers")

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        config = super().from_dict(raw)
        return replace(config, tie_word_embeddings=config.tie_word_embeddings or config.text_config.tie_word_embeddings)

    @property
    def feature_layers(self) -> int:
        """The number of the encoder's layers before the states that the decoder reads."""
        return self.vision_feature_layer % (self.vision_config.num_hidden_layers + 1)

    @property
    def skips_class_token(self) -> bool:
        return self.vision_feature_select_strategy == "default"
