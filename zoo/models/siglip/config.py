"""The configs of a SigLIP checkpoint: of the encoder of texts, of that of images, and of both together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ..clip.config import CLIPConfig, CLIPTextConfig, CLIPVisionConfig


@dataclass(frozen=True, kw_only=True)
class SiglipTextConfig(CLIPTextConfig):
    model_type: str = "siglip_text_model"
    vocab_size: int = 32000
    hidden_size: int = 768
    intermediate_size: int = 3072
    num_attention_heads: int = 12
    max_position_embeddings: int = 64
    hidden_act: str = "gelu_pytorch_tanh"
    layer_norm_eps: float = 1e-6
    projection_size: int | None = None

    @property
    def output_size(self) -> int:
        """The width of a text's vector."""
        return self.hidden_size if self.projection_size is None else self.projection_size


@dataclass(frozen=True, kw_only=True)
class SiglipVisionConfig(CLIPVisionConfig):
    prefix_tokens: ClassVar[tuple[str, ...]] = ()
    model_type: str = "siglip_vision_model"
    patch_size: int | list[int] | tuple[int, ...] = 16
    hidden_act: str = "gelu_pytorch_tanh"
    layer_norm_eps: float = 1e-6
    vision_use_head: bool = True


@dataclass(frozen=True, kw_only=True)
class SiglipConfig(CLIPConfig):
    """`text_config` and `vision_config` are configs of their own."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": SiglipTextConfig,
        "vision_config": SiglipVisionConfig,
    }
    model_type: str = "siglip"
    text_config: SiglipTextConfig
    vision_config: SiglipVisionConfig
