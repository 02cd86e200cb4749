"""The configs of a SLANeXt checkpoint, and of the encoder that it looks through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import Config, read_part
from ...errors import ConfigError
from ..sam.config import SamVisionConfig
from ..slanet.config import MAX_TOKENS


@dataclass(frozen=True, kw_only=True)
class SLANeXtVisionConfig(SamVisionConfig):
    model_type: str = "slanext_vision"
    image_size: int | list[int] | tuple[int, ...] = 512
    mlp_dim: int = 3072


@dataclass(frozen=True, kw_only=True)
class SLANeXtConfig(Config):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {"vision_config": SLANeXtVisionConfig}
    model_type: str = "slanext"
    post_conv_in_channels: int = 256
    post_conv_out_channels: int = 512
    out_channels: int = 50
    hidden_size: int = 512
    max_text_length: int = 500
    vision_config: SLANeXtVisionConfig

    def __post_init__(self) -> None:
        self.positive("post_conv_out_channels", "out_channels", "hidden_size", "max_text_length")
        if self.max_text_length > MAX_TOKENS:
            raise ConfigError(f"max_text_length = {self.max_text_length} is out of range, expected 1 ... {MAX_TOKENS}")
        if self.post_conv_in_channels != (wanted := self.vision_config.output_channels):
            raise ConfigError(f"post_conv_in_channels = {self.post_conv_in_channels}, expected the encoder's {wanted}")

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> SLANeXtConfig:
        part = read_part("vision_config", raw.get("vision_config") or {}, SLANeXtVisionConfig)
        return super().from_dict({**raw, "vision_config": part})

    image = property(lambda self: self.vision_config.image)
    patch = property(lambda self: self.vision_config.patch)
    num_channels = property(lambda self: self.vision_config.num_channels)
