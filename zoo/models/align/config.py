"""The configs of an ALIGN checkpoint: BERT's of the encoder of texts, EfficientNet's of that of images, and of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError
from ..bert.config import BertConfig
from ..clip.config import CLIPConfig
from ..efficientnet.config import EfficientNetBlocks


@dataclass(frozen=True, kw_only=True)
class AlignTextConfig(BertConfig):
    model_type: str = "align_text_model"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(is_decoder=False, add_cross_attention=False)


@dataclass(frozen=True, kw_only=True)
class AlignVisionConfig(EfficientNetBlocks):
    model_type: str = "align_vision_model"
    image_size: int | list[int] | tuple[int, int] = 600  # changes nothing: images may have any size

    @property
    def hidden_size(self) -> int:
        """The width of the last block."""
        return self.blocks[-1].d_out


@dataclass(frozen=True, kw_only=True)
class AlignConfig(CLIPConfig):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": AlignTextConfig,
        "vision_config": AlignVisionConfig,
    }
    model_type: str = "align"
    projection_dim: int = 640
    temperature_init_value: float = 1.0
    text_config: AlignTextConfig  # type: ignore[assignment]  # which has no width of the vectors
    vision_config: AlignVisionConfig  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.projection_dim != self.vision_config.hidden_size:
            raise ConfigError(
                f"projection_dim = {self.projection_dim}, but the vectors of images are the "
                f"{self.vision_config.hidden_size} channels of the last block"
            )
