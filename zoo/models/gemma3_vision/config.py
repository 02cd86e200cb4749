"""The config of a Gemma 3 checkpoint of images and texts, whose parts are SigLIP's encoder of images and a Gemma 3."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError, UnsupportedError
from ...inputs.image_text_config import ImageIndexConfig
from ..gemma3.config import Gemma3TextConfig
from ..siglip.config import SiglipVisionConfig


@dataclass(frozen=True, kw_only=True)
class Gemma3Config(ImageIndexConfig):
    """mm_tokens_per_image: the number of an image's vectors, which are means of squares of patches."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": Gemma3TextConfig,
        "vision_config": SiglipVisionConfig,
    }
    model_type: str = "gemma3"
    mm_tokens_per_image: int = 256
    image_token_index: int = 262_144
    tie_word_embeddings: bool = True
    text_config: Gemma3TextConfig
    vision_config: SiglipVisionConfig

    def __post_init__(self) -> None:
        self.positive("mm_tokens_per_image")
        self.check_image_token()
        for name in ("use_bidirectional_attention", "final_logit_softcapping"):  # the latter transformers leaves out
            if found := getattr(self.text_config, name):
                raise UnsupportedError(f"text_config: {name} = {found} is not implemented beside images")
        side, (h, w) = math.isqrt(self.mm_tokens_per_image), self.vision_config.grid
        if side**2 != self.mm_tokens_per_image or h != w or h % side:
            raise ConfigError(
                f"mm_tokens_per_image = {self.mm_tokens_per_image} are no squares of the {h} x {w} patches of an image"
            )

    @property
    def pool(self) -> int:
        """The side of the square of patches that become one vector."""
        return self.vision_config.grid[0] // math.isqrt(self.mm_tokens_per_image)
