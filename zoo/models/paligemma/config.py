"""The config of a PaliGemma checkpoint, whose parts are SigLIP's encoder of images and a Gemma."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import Config
from ...errors import ConfigError, UnsupportedError
from ...inputs.image_text_config import ImageIndexConfig
from ..gemma.config import GemmaConfig
from ..siglip.config import SiglipVisionConfig


@dataclass(frozen=True, kw_only=True)
class PaliGemmaConfig(ImageIndexConfig):
    """projection_dim: the width of an image's vectors, which is that of the decoder."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": GemmaConfig,
        "vision_config": SiglipVisionConfig,
    }
    model_type: str = "paligemma"
    image_token_index: int = 256_000
    projection_dim: int = 2048
    tie_word_embeddings: bool = True
    text_config: GemmaConfig
    vision_config: SiglipVisionConfig

    def __post_init__(self) -> None:
        self.check_image_token()
        if self.projection_dim != self.text_config.hidden_size:
            width = self.text_config.hidden_size
            raise ConfigError(f"projection_dim = {self.projection_dim}, and the decoder has the width {width}")

    @classmethod
    def _part(cls, name: str, part: Any) -> Config:
        if name == "text_config" and isinstance(part, dict):
            # What the tokens of a prompt do here, null in files and true in those that transformers writes.
            part = dict(part)
            if (found := part.pop("use_bidirectional_attention", None)) not in (None, True):
                raise UnsupportedError(f"text_config: use_bidirectional_attention = {found!r} is not implemented")
        return super()._part(name, part)
