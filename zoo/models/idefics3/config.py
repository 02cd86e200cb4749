"""The configs of an Idefics3 or SmolVLM checkpoint: of the encoder of images, of the decoder, and of both together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from ...config import Config, read_part
from ...errors import ConfigError, UnsupportedError
from ..llama3.config import LlamaConfig
from ..siglip.config import SiglipVisionConfig

C = TypeVar("C", bound="Idefics3Config")


@dataclass(frozen=True, kw_only=True)
class Idefics3VisionConfig(SiglipVisionConfig):
    model_type: str = "idefics3_vision"
    hidden_size: int = 1152
    num_attention_heads: int = 16
    patch_size: int | list[int] | tuple[int, ...] = 32


@dataclass(frozen=True, kw_only=True)
class Idefics3Config(Config):
    """`text_config` and `vision_config` are configs of their own."""

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
        if not 0 <= self.image_token_id < self.text_config.vocab_size:
            most = self.text_config.vocab_size - 1
            raise ConfigError(f"image_token_id = {self.image_token_id} is out of range, expected 0 ... {most}")
        if self.vision_config.grid[0] % self.scale_factor:
            raise ConfigError(
                f"scale_factor = {self.scale_factor} does not divide {self.vision_config.grid[0]}, the number of "
                "patches along the side of an image"
            )

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        return super().from_dict({**raw, **{name: _part(name, raw, kind) for name, kind in cls.part_classes.items()}})

    # What the tasks of decoders and of images ask a config for.
    vocab_size = property(lambda self: self.text_config.vocab_size)
    hidden_size = property(lambda self: self.text_config.hidden_size)
    image = property(lambda self: self.vision_config.image)
    patch = property(lambda self: self.vision_config.patch)
    num_channels = property(lambda self: self.vision_config.num_channels)


@dataclass(frozen=True, kw_only=True)
class SmolVLMConfig(Idefics3Config):
    model_type: str = "smolvlm"


def _part(name: str, raw: dict[str, Any], kind: type[Config]) -> Config:
    part = raw.get(name)
    if isinstance(part, dict):
        # The encoder has a dozen names in files, and none changes it; the decoder may be another family's.
        if name == "text_config" and (found := part.get("model_type", "llama")) != kind.model_type:
            raise UnsupportedError(f"text_config is of the model_type {found!r}, expected {kind.model_type!r}")
        part = {**part, "model_type": kind.model_type}
    return read_part(name, part, kind)
