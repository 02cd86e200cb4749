"""The configs of a Mistral 3 checkpoint: of Pixtral's encoder of images, and of the whole, with a Mistral decoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import Config, read_part
from ...errors import ConfigError
from ...inputs.image_text_config import ImageIndexConfig
from ...rope import Rope, axial_rope_of
from ..ministral3.config import Ministral3Config
from ..mistral.config import MistralConfig
from ..vit.config import PatchesConfig


@dataclass(frozen=True, kw_only=True)
class PixtralVisionConfig(PatchesConfig):
    """image_size: the longest side of an image, which may have any; it changes nothing."""

    model_type: str = "pixtral"
    hidden_size: int = 1024
    intermediate_size: int = 4096
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    num_channels: int = 3
    image_size: int | list[int] | tuple[int, ...] = 1024
    patch_size: int | list[int] | tuple[int, ...] = 16
    hidden_act: str = "gelu"
    attention_dropout: float = 0.0
    rope_theta: float = 10000.0
    rope_parameters: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.positive("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_channels")
        self.fractions("attention_dropout")
        self.divides("num_attention_heads", "hidden_size")
        self.require(head_dim=self.head_size)
        if self.head_size % 4:
            raise ConfigError(f"heads of {self.head_size} features: positions in a plane need a multiple of 4")
        self.image, self.patch, self.rope()  # whose numbers are checked

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads

    def rope(self) -> Rope:
        """The rotary positions, whose frequencies are those of height and of width in turn."""
        given = {"rope_theta": self.rope_theta, **(self.rope_parameters or {})}
        return axial_rope_of(given, self.head_size)


@dataclass(frozen=True, kw_only=True)
class Mistral3Config(ImageIndexConfig):
    """text_config is a Mistral's, or a Ministral 3's if its model_type says so."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": MistralConfig,
        "vision_config": PixtralVisionConfig,
    }
    model_type: str = "mistral3"
    image_token_index: int = 10
    projector_hidden_act: str = "gelu"
    vision_feature_layer: int = -1
    multimodal_projector_bias: bool = False
    spatial_merge_size: int = 2
    tie_word_embeddings: bool = True
    text_config: MistralConfig | Ministral3Config
    vision_config: PixtralVisionConfig

    def __post_init__(self) -> None:
        self.positive("spatial_merge_size")
        self.check_image_token()
        depth = self.vision_config.num_hidden_layers
        if not -depth - 1 <= self.vision_feature_layer <= depth:
            raise ConfigError(f"vision_feature_layer = {self.vision_feature_layer}, and the encoder has {depth} layers")

    @classmethod
    def _part(cls, name: str, part: Any) -> Config:
        if name == "text_config" and isinstance(part, dict) and part.get("model_type") == Ministral3Config.model_type:
            return read_part(name, part, Ministral3Config)
        return super()._part(name, part)

    @property
    def feature_layers(self) -> int:
        """The number of the encoder's layers before the states that the decoder reads."""
        return self.vision_feature_layer % (self.vision_config.num_hidden_layers + 1)
