"""The configs of an OWL-ViT checkpoint: CLIP's, with short texts and large images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ...config import Config
from ...errors import ConfigError
from ..clip.config import CLIPConfig, CLIPTextConfig, CLIPVisionConfig

BOX_EPS = 1e-4  # added to a part of the image before its logit


@dataclass(frozen=True, kw_only=True)
class OwlViTTextConfig(CLIPTextConfig):
    model_type: str = "owlvit_text_model"
    max_position_embeddings: int = 16
    pad_token_id: int | None = 0


@dataclass(frozen=True, kw_only=True)
class OwlViTVisionConfig(CLIPVisionConfig):
    model_type: str = "owlvit_vision_model"
    image_size: int | list[int] | tuple[int, ...] = 768


@dataclass(frozen=True, kw_only=True)
class OwlViTConfig(CLIPConfig):
    """`text_config` and `vision_config` are configs of their own."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": OwlViTTextConfig,
        "vision_config": OwlViTVisionConfig,
    }
    model_type: str = "owlvit"
    text_config: OwlViTTextConfig = field(default_factory=OwlViTTextConfig)
    vision_config: OwlViTVisionConfig = field(default_factory=OwlViTVisionConfig)

    def check_widths(self) -> None:
        """The vector of a patch, as wide as a text's states, is compared with that of a text."""
        if self.projection_dim != self.text_config.hidden_size:
            width = f"hidden_size = {self.text_config.hidden_size} of text_config"
            raise ConfigError(f"projection_dim = {self.projection_dim} and {width}, expected the same")


def box_logits(grid: tuple[int, int]) -> np.ndarray:
    """Of each patch of a grid (h, w) the logits of a box as large as it, around its far corner.  -> (h w, 4)."""
    h, w = grid
    at, one = np.arange(h * w), np.ones(h * w)
    parts = np.stack([(at % w + 1) / w, (at // w + 1) / h, one / w, one / h], 1)
    return np.log(parts + BOX_EPS) - np.log1p(BOX_EPS - parts)
