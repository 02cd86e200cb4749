"""The config of a LLaVA checkpoint, whose parts are CLIP's encoder of images and a Llama."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from ...config import Config, read_part
from ...errors import ConfigError, UnsupportedError
from ..clip.config import CLIPVisionConfig
from ..llama3.config import LlamaConfig

C = TypeVar("C", bound="LlavaConfig")

# What files of 2023 leave out of vision_config, which names its model_type alone.
VISION = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}
VISION |= {"image_size": 336, "patch_size": 14, "projection_dim": 768}


@dataclass(frozen=True, kw_only=True)
class LlavaConfig(Config):
    """`text_config` and `vision_config` are configs of their own."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": LlamaConfig,
        "vision_config": CLIPVisionConfig,
    }
    aliases: ClassVar[Mapping[str, str]] = {"image_token_id": "image_token_index"}
    model_type: str = "llava"
    image_token_index: int = 32000
    projector_hidden_act: str = "gelu"
    vision_feature_select_strategy: str = "default"
    vision_feature_layer: int = -2
    multimodal_projector_bias: bool = True
    tie_word_embeddings: bool = False
    text_config: LlamaConfig
    vision_config: CLIPVisionConfig

    def __post_init__(self) -> None:
        if not 0 <= self.image_token_index < self.text_config.vocab_size:
            most = self.text_config.vocab_size - 1
            raise ConfigError(f"image_token_index = {self.image_token_index} is out of range, expected 0 ... {most}")
        if self.vision_feature_select_strategy not in ("default", "full"):
            found = self.vision_feature_select_strategy
            raise ConfigError(f"vision_feature_select_strategy = {found!r}, expected 'default' or 'full'")
        depth = self.vision_config.num_hidden_layers
        if not -depth - 1 <= self.vision_feature_layer <= depth:
            raise ConfigError(f"vision_feature_layer = {self.vision_feature_layer}, and the encoder has {depth} layers")

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        parts = {name: _part(name, raw, kind) for name, kind in cls.part_classes.items()}
        tied = bool(raw.get("tie_word_embeddings")) or parts["text_config"].tie_word_embeddings
        return super().from_dict({**raw, **parts, "tie_word_embeddings": tied})

    @property
    def image_token_id(self) -> int:
        return self.image_token_index

    @property
    def feature_layers(self) -> int:
        """The number of the encoder's layers before the states that the decoder reads."""
        return self.vision_feature_layer % (self.vision_config.num_hidden_layers + 1)

    @property
    def skips_class_token(self) -> bool:
        return self.vision_feature_select_strategy == "default"

    # What the tasks of decoders and of images ask a config for.
    vocab_size = property(lambda self: self.text_config.vocab_size)
    hidden_size = property(lambda self: self.text_config.hidden_size)
    image = property(lambda self: self.vision_config.image)
    patch = property(lambda self: self.vision_config.patch)
    num_channels = property(lambda self: self.vision_config.num_channels)


def _part(name: str, raw: dict[str, Any], kind: type[Config]) -> Config:
    part = raw.get(name)
    if isinstance(part, dict):
        if (found := part.get("model_type", kind.model_type)) != kind.model_type:
            raise UnsupportedError(f"{name} is of the model_type {found!r}, expected {kind.model_type!r}")
        part = {**VISION, **part} if name == "vision_config" else part
    return read_part(name, part, kind)
