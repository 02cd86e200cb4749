"""The configs of a PaddleOCR-VL checkpoint: of SigLIP's encoder with positions in the plane, and of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import Config
from ...errors import ConfigError
from ...rope import axial_rope_of
from ..ernie4_5.config import Ernie4_5Config
from ..qwen2_vl.config import AxesConfig, Qwen2VLConfig
from ..vit.config import PatchesConfig


@dataclass(frozen=True, kw_only=True)
class PaddleOCRTextConfig(Ernie4_5Config, AxesConfig):
    model_type: str = "paddleocr_vl_text"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(layer_types=None)  # which would give layers a window


@dataclass(frozen=True, kw_only=True)
class PaddleOCRVisionConfig(PatchesConfig):
    """image_size: of an image that has a patch for each trained position; images may have any."""

    model_type: str = "paddleocr_vl_vision"
    hidden_size: int = 1152
    intermediate_size: int = 4304
    num_hidden_layers: int = 27
    num_attention_heads: int = 16
    num_channels: int = 3
    hidden_act: str = "gelu_pytorch_tanh"
    layer_norm_eps: float = 1e-6
    attention_dropout: float = 0.0
    image_size: int | list[int] | tuple[int, ...] = 384
    patch_size: int | list[int] | tuple[int, ...] = 14
    spatial_merge_size: int = 2
    rope_theta: float = 10000.0
    rope_parameters: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.positive("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "num_channels")
        self.positive("spatial_merge_size")
        self.fractions("attention_dropout")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("layer_norm_eps")
        if self.image[0] != self.image[1] or self.patch[0] != self.patch[1] or not self.position_side:
            raise ConfigError(f"image_size = {self.image_size} is not a square of patches of {self.patch_size}")
        if self.head_size % 4:
            raise ConfigError(f"heads of {self.head_size} features: positions in a plane need a multiple of 4")
        self.frequencies  # noqa: B018  (whose numbers are checked)

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads

    @property
    def position_side(self) -> int:
        """Rows, and columns, of the trained positions."""
        return self.image[0] // self.patch[0]

    @property
    def factor(self) -> int:
        """Pixels along a side of the square that becomes one token."""
        return self.patch[0] * self.spatial_merge_size

    @property
    def frequencies(self) -> tuple[float, ...]:
        """Of positions in height, and of those in width."""
        given = {"rope_theta": self.rope_theta, **(self.rope_parameters or {})}
        return axial_rope_of(given, self.head_size // 2).frequencies(1)


@dataclass(frozen=True, kw_only=True)
class PaddleOCRVLConfig(Qwen2VLConfig):
    """The decoder's fields are among those of the whole, except tie_word_embeddings, which is its own."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": PaddleOCRTextConfig,
        "vision_config": PaddleOCRVisionConfig,
    }
    ties_text: ClassVar[bool] = True
    model_type: str = "paddleocr_vl"
    image_token_id: int = 100295
    video_token_id: int = 100296
    tie_word_embeddings: bool = True
    text_config: PaddleOCRTextConfig
    vision_config: PaddleOCRVisionConfig  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.check_image_token()
