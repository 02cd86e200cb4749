"""The configs of a CLIP checkpoint: of the encoder of texts, of that of images, and of both together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from ...config import Config, read_part
from ...errors import ConfigError
from ..vit.config import VisionConfig

C = TypeVar("C", bound="CLIPConfig")
P = TypeVar("P", bound=Config)


@dataclass(frozen=True, kw_only=True)
class CLIPTextConfig(Config):
    model_type: str = "clip_text_model"
    vocab_size: int = 49408
    hidden_size: int = 512
    intermediate_size: int = 2048
    projection_dim: int = 512
    num_hidden_layers: int = 12
    num_attention_heads: int = 8
    max_position_embeddings: int = 77
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5
    attention_dropout: float = 0.0
    pad_token_id: int | None = 1
    eos_token_id: int = 49407

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        self.positive("max_position_embeddings", "projection_dim")
        self.fractions("attention_dropout")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("layer_norm_eps")


@dataclass(frozen=True, kw_only=True)
class CLIPVisionConfig(VisionConfig):
    prefix_tokens: ClassVar[tuple[str, ...]] = ("class_embedding",)
    model_type: str = "clip_vision_model"
    projection_dim: int = 512
    patch_size: int | list[int] | tuple[int, ...] = 32
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5
    attention_dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("projection_dim")
        self.fractions("attention_dropout")
        if self.grid[0] != self.grid[1]:
            raise ConfigError(f"image_size = {self.image_size} is not a square of patches of {self.patch_size}")


@dataclass(frozen=True, kw_only=True)
class CLIPConfig(Config):
    """`text_config` and `vision_config` are configs of their own."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": CLIPTextConfig,
        "vision_config": CLIPVisionConfig,
    }
    model_type: str = "clip"
    projection_dim: int = 512
    text_config: CLIPTextConfig
    vision_config: CLIPVisionConfig

    def __post_init__(self) -> None:
        self.positive("projection_dim")

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        return super().from_dict({**raw, **{name: _part(name, raw, kind) for name, kind in cls.part_classes.items()}})

    def part(self, kind: type[P]) -> P | None:
        found: Any = super().part(kind)  # whose own width of the vectors is not that of its checkpoint
        return found if found is None or found is self else replace(found, projection_dim=self.projection_dim)

    # What a classifier of images, whose checkpoint has this config, is asked for.
    image = property(lambda self: self.vision_config.image)
    patch = property(lambda self: self.vision_config.patch)
    patch_size = property(lambda self: self.vision_config.patch_size)
    num_channels = property(lambda self: self.vision_config.num_channels)


def _part(name: str, raw: dict[str, Any], kind: type[Config]) -> Config:
    part, more = raw.get(name) or {}, raw.get(f"{name}_dict") or {}  # the latter is in files of 2022, and counts
    wrong = [given for given in (part, more) if not isinstance(given, dict)]
    return read_part(name, wrong[0] if wrong else {**part, **more}, kind)
