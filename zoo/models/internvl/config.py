"""The configs of an InternVL checkpoint: of the encoder of images, and of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import Config, read_part
from ...errors import ConfigError, UnsupportedError
from ...inputs.image_text_config import ImageTextConfig
from ..llama3.config import LlamaConfig
from ..qwen2.config import Qwen2Config
from ..qwen3.config import Qwen3Config
from ..vit.config import VisionConfig

TEXT_CONFIGS: dict[str, type[LlamaConfig]] = {"qwen2": Qwen2Config, "qwen3": Qwen3Config, "llama": LlamaConfig}


@dataclass(frozen=True, kw_only=True)
class InternVLVisionConfig(VisionConfig):
    model_type: str = "internvl_vision"
    hidden_size: int = 1024
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    intermediate_size: int = 4096
    layer_norm_eps: float = 1e-6
    image_size: int | list[int] | tuple[int, ...] = (448, 448)
    patch_size: int | list[int] | tuple[int, ...] = (14, 14)
    attention_bias: bool = False
    use_qk_norm: bool = False
    attention_dropout: float = 0.0
    projection_dropout: float = 0.0
    norm_type: str = "layer_norm"
    use_mask_token: bool = False
    use_absolute_position_embeddings: bool = True
    use_mean_pooling: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions("attention_dropout", "projection_dropout")
        if self.norm_type not in ("layer_norm", "rms_norm"):
            raise ConfigError(f"norm_type = {self.norm_type!r}, expected 'layer_norm' or 'rms_norm'")


@dataclass(frozen=True, kw_only=True)
class InternVLConfig(ImageTextConfig):
    """text_config may be of any of TEXT_CONFIGS.  downsample_ratio: of 0.5, a square of 2 x 2 patches is one token."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": LlamaConfig,
        "vision_config": InternVLVisionConfig,
    }
    model_type: str = "internvl"
    image_token_id: int = 151667
    downsample_ratio: float = 0.5
    projector_hidden_act: str = "gelu"
    text_config: LlamaConfig
    vision_config: InternVLVisionConfig

    def __post_init__(self) -> None:
        self.check_image_token()
        self.require(vision_feature_layer=-1, vision_feature_select_strategy="default")
        if not 0 < self.downsample_ratio <= 1 or not (1 / self.downsample_ratio).is_integer():
            raise ConfigError(f"downsample_ratio = {self.downsample_ratio}, expected 1, 1/2, 1/3 or another such part")
        rows, columns = self.vision_config.grid
        if rows != columns:  # transformers puts the patches together as if they had been a square
            raise UnsupportedError(f"vision_config: {rows} x {columns} patches are not implemented, only squares are")
        if rows % self.factor:
            raise ConfigError(
                f"downsample_ratio = {self.downsample_ratio} needs a number of patches along the side of an image that "
                f"{self.factor} divides, and there are {rows}"
            )

    @classmethod
    def _part(cls, name: str, part: Any) -> Config:
        if name != "text_config" or not isinstance(part, dict):
            return super()._part(name, part)
        kind = part.get("model_type", Qwen2Config.model_type)
        if not isinstance(kind, str) or kind not in TEXT_CONFIGS:
            raise UnsupportedError(
                f"text_config is of the model_type {kind!r}, expected one of {', '.join(TEXT_CONFIGS)}"
            )
        return read_part(name, {**part, "model_type": kind}, TEXT_CONFIGS[kind])

    @property
    def factor(self) -> int:
        """The number of patches along the side of a square that becomes one token."""
        return round(1 / self.downsample_ratio)
