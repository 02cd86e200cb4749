"""The configs of BLIP: of an image's encoder, of the decoder, and of both together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from ...config import Config, read_part
from ...errors import ConfigError
from ..vit.config import PatchesConfig

C = TypeVar("C", bound="BlipConfig")


@dataclass(frozen=True, kw_only=True)
class BlipVisionConfig(PatchesConfig):
    model_type: str = "blip_vision_model"
    image_size: int | list[int] | tuple[int, ...] = 384
    hidden_size: int = 768
    intermediate_size: int = 3072
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-5
    attention_dropout: float = 0.0

    def __post_init__(self) -> None:
        self.positive("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
        self.fractions("attention_dropout")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("layer_norm_eps")
        if self.image[0] != self.image[1] or self.patch[0] != self.patch[1]:
            raise ConfigError(f"image_size = {self.image_size}, patch_size = {self.patch_size}: expected squares")
        if self.patch[0] > self.image[0]:
            raise ConfigError(f"patch_size = {self.patch_size} is larger than image_size = {self.image_size}")

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.image[0] // self.patch[0], self.image[1] // self.patch[1]

    @property
    def num_channels(self) -> int:
        return 3


@dataclass(frozen=True, kw_only=True)
class BlipTextConfig(Config):
    model_type: str = "blip_text_model"
    vocab_size: int = 30524
    hidden_size: int = 768
    encoder_hidden_size: int = 768
    intermediate_size: int = 3072
    num_hidden_layers: int = 12
    num_attention_heads: int = 8
    max_position_embeddings: int = 512
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    bos_token_id: int | None = 30522
    eos_token_id: int | list[int] | None = 2
    pad_token_id: int | None = 0
    sep_token_id: int | None = 102

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size", "encoder_hidden_size", "intermediate_size", "num_hidden_layers")
        self.positive("num_attention_heads", "max_position_embeddings")
        self.fractions("hidden_dropout_prob", "attention_probs_dropout_prob")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("layer_norm_eps")
        self.require(is_decoder=True)

    @property
    def decoder_start_token_id(self) -> int | None:
        """The token that a text starts with."""
        return self.bos_token_id


@dataclass(frozen=True, kw_only=True)
class BlipConfig(Config):
    """`vision_config` and `text_config` are configs; the width of states that the decoder sees is the encoder's."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "vision_config": BlipVisionConfig,
        "text_config": BlipTextConfig,
    }
    model_type: str = "blip"
    vision_config: BlipVisionConfig
    text_config: BlipTextConfig

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        given = {name: {} if raw.get(name) is None else raw[name] for name in ("vision_config", "text_config")}
        vision = read_part("vision_config", given["vision_config"], BlipVisionConfig)
        text = read_part("text_config", given["text_config"], BlipTextConfig)
        text = replace(text, encoder_hidden_size=vision.hidden_size)
        return super().from_dict({**raw, "vision_config": vision, "text_config": text})

    @property
    def is_tied(self) -> bool:
        return self.tie_word_embeddings or self.text_config.tie_word_embeddings

    @property
    def vocab_size(self) -> int:
        return self.text_config.vocab_size

    @property
    def decoder(self) -> BlipTextConfig:
        """The decoder's config, by the name that tasks know."""
        return self.text_config
