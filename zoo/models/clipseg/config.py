"""The configs of a CLIPSeg checkpoint: CLIP's of the encoder of texts and of that of images, and of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError
from ..clip.config import CLIPConfig, CLIPTextConfig, CLIPVisionConfig


@dataclass(frozen=True, kw_only=True)
class CLIPSegTextConfig(CLIPTextConfig):
    model_type: str = "clipseg_text_model"


@dataclass(frozen=True, kw_only=True)
class CLIPSegVisionConfig(CLIPVisionConfig):
    model_type: str = "clipseg_vision_model"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patch[0] != self.patch[1]:
            raise ConfigError(f"patch_size = {self.patch_size} is not a square")


@dataclass(frozen=True, kw_only=True)
class CLIPSegConfig(CLIPConfig):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": CLIPSegTextConfig,
        "vision_config": CLIPSegVisionConfig,
    }
    model_type: str = "clipseg"
    text_config: CLIPSegTextConfig
    vision_config: CLIPSegVisionConfig
    extract_layers: list[int] | tuple[int, ...] = (3, 6, 9)
    reduce_dim: int = 64
    decoder_num_attention_heads: int = 4
    decoder_intermediate_size: int = 2048
    conditional_layer: int = 0  # counted in the decoder; without such a layer nothing is conditional
    use_complex_transposed_convolution: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("reduce_dim", "decoder_num_attention_heads", "decoder_intermediate_size")
        self.divides("decoder_num_attention_heads", "reduce_dim")
        layers, wanted = self.vision_config.num_hidden_layers, self.extract_layers
        if not 1 <= len(wanted) <= layers or not all(type(i) is int and 0 <= i < layers for i in wanted):
            raise ConfigError(
                f"extract_layers = {wanted!r}, expected numbers of layers of the image, 0 ... {layers - 1}"
            )
        if self.use_complex_transposed_convolution and (self.vision_config.patch[0] < 4 or self.reduce_dim < 2):
            raise ConfigError(
                f"patch_size = {self.vision_config.patch_size}, reduce_dim = {self.reduce_dim} leave "
                "use_complex_transposed_convolution nothing: expected at least 4 and 2"
            )
