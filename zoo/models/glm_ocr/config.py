"""The configs of a GLM-OCR checkpoint: of an encoder of images, and of a GLM-4 whose positions have three axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ..qwen2_vl.config import AxesConfig, Qwen2VLConfig, QwenVisionConfig


@dataclass(frozen=True, kw_only=True)
class GlmOcrTextConfig(AxesConfig):
    default_sections: ClassVar[tuple[int, ...]] = (8, 12, 12)
    rotates_part: ClassVar[bool] = True
    reads_attention_bias: ClassVar[bool] = False
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "glm_ocr_text"
    vocab_size: int = 59392
    hidden_size: int = 1024
    intermediate_size: int = 4096
    num_hidden_layers: int = 16
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None


@dataclass(frozen=True, kw_only=True)
class GlmOcrVisionConfig(QwenVisionConfig):
    """image_size changes nothing: images may have any."""

    model_type: str = "glm_ocr_vision"
    depth: int = 24
    hidden_size: int = 1024
    hidden_act: str = "silu"
    attention_bias: bool = True
    attention_dropout: float = 0.0
    rms_norm_eps: float = 1e-5
    out_hidden_size: int = 1536
    intermediate_size: int = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("intermediate_size")
        self.above_zero("rms_norm_eps")
        self.fractions("attention_dropout")

    @property
    def width(self) -> int:
        return self.hidden_size

    @property
    def output_width(self) -> int:
        return self.out_hidden_size

    @property
    def mlp_width(self) -> int:
        return self.intermediate_size


@dataclass(frozen=True, kw_only=True)
class GlmOcrConfig(Qwen2VLConfig):
    is_flat: ClassVar[bool] = False
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": GlmOcrTextConfig,
        "vision_config": GlmOcrVisionConfig,
    }
    model_type: str = "glm_ocr"
    image_token_id: int = 59280
    video_token_id: int = 59281
    text_config: GlmOcrTextConfig
    vision_config: GlmOcrVisionConfig
