"""The configs of a SigLIP 2 NaFlex checkpoint: SigLIP's, with a number of patches in the place of an image's size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError
from ..siglip.config import SiglipConfig, SiglipTextConfig, SiglipVisionConfig


@dataclass(frozen=True, kw_only=True)
class Siglip2TextConfig(SiglipTextConfig):
    model_type: str = "siglip2_text_model"


@dataclass(frozen=True, kw_only=True)
class Siglip2VisionConfig(SiglipVisionConfig):
    """`num_patches` counts the positions, which are a square; images have other numbers of rows and columns."""

    model_type: str = "siglip2_vision_model"
    num_patches: int = 256

    def __post_init__(self) -> None:
        self.positive("num_patches")
        if self.grid[0] ** 2 != self.num_patches:
            raise ConfigError(
                f"num_patches = {self.num_patches} is not a square number, and the positions are a square"
            )
        if self.patch[0] != self.patch[1]:
            raise ConfigError(f"patch_size = {self.patch_size}, expected a square")
        super().__post_init__()

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the positions."""
        return isqrt(self.num_patches), isqrt(self.num_patches)

    @property
    def image(self) -> tuple[int, int]:
        """The size of an image that has a patch for each position."""
        return self.grid[0] * self.patch[0], self.grid[1] * self.patch[1]


@dataclass(frozen=True, kw_only=True)
class Siglip2Config(SiglipConfig):
    """`text_config` and `vision_config` are configs of their own."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": Siglip2TextConfig,
        "vision_config": Siglip2VisionConfig,
    }
    model_type: str = "siglip2"
    text_config: Siglip2TextConfig
    vision_config: Siglip2VisionConfig
