"""The config of a Qwen2.5-VL checkpoint: that of Qwen2-VL, with an encoder of images that has windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError
from ..qwen2_vl.config import Qwen2VLConfig, Qwen2VLTextConfig, QwenVisionConfig


@dataclass(frozen=True, kw_only=True)
class Qwen2_5_VLTextConfig(Qwen2VLTextConfig):  # noqa: N801
    model_type: str = "qwen2_5_vl_text"


@dataclass(frozen=True, kw_only=True)
class Qwen2_5_VLVisionConfig(QwenVisionConfig):  # noqa: N801
    """window_size: pixels along a side of a window; fullatt_block_indexes: the layers without windows."""

    model_type: str = "qwen2_5_vl_vision"
    hidden_size: int = 3584
    hidden_act: str = "silu"
    intermediate_size: int = 3420
    out_hidden_size: int = 3584
    window_size: int = 112
    fullatt_block_indexes: list[int] = field(default_factory=lambda: [7, 15, 23, 31])
    tokens_per_second: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("intermediate_size", "window_size")
        if self.window_size < self.factor:
            raise ConfigError(f"window_size = {self.window_size}, expected at least {self.factor}, a token's pixels")

    @property
    def width(self) -> int:
        return self.hidden_size

    @property
    def output_width(self) -> int:
        return self.out_hidden_size

    @property
    def mlp_width(self) -> int:
        return self.intermediate_size

    @property
    def window_patches(self) -> int:
        """Patches along a side of a window, which is one of whole tokens."""
        return self.window_size // self.spatial_merge_size // self.patch_size * self.spatial_merge_size


@dataclass(frozen=True, kw_only=True)
class Qwen2_5_VLConfig(Qwen2VLConfig):  # noqa: N801
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": Qwen2_5_VLTextConfig,
        "vision_config": Qwen2_5_VLVisionConfig,
    }
    model_type: str = "qwen2_5_vl"
    text_config: Qwen2_5_VLTextConfig
    vision_config: Qwen2_5_VLVisionConfig
