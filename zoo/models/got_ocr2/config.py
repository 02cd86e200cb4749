"""The configs of a GOT-OCR 2.0 checkpoint: of the encoder of images, and of the whole, whose decoder is a Qwen2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError, UnsupportedError
from ...inputs.image_text_config import ImageIndexConfig
from ..qwen2.config import Qwen2Config
from ..vit.config import PatchesConfig


@dataclass(frozen=True, kw_only=True)
class GotOcr2VisionConfig(PatchesConfig):
    """global_attn_indexes: the layers whose patches attend to all others; in the rest to those of their window."""

    model_type: str = "got_ocr2_vision"
    hidden_size: int = 768
    output_channels: int = 256
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    num_channels: int = 3
    image_size: int | list[int] | tuple[int, ...] = 1024
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-6
    attention_dropout: float = 0.0
    qkv_bias: bool = True
    window_size: int = 14
    global_attn_indexes: list[int] | tuple[int, ...] = (2, 5, 8, 11)
    mlp_dim: int = 3072

    def __post_init__(self) -> None:
        self.positive("hidden_size", "output_channels", "num_hidden_layers", "num_attention_heads", "num_channels")
        self.positive("mlp_dim")
        self.fractions("attention_dropout")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("layer_norm_eps")
        self.require(use_abs_pos=True, use_rel_pos=True)
        if not 0 <= self.window_size <= max(self.image):
            raise ConfigError(f"window_size = {self.window_size} is out of range, expected 0 ... {max(self.image)}")
        if self.grid[0] != self.grid[1] or self.grid[0] < 1:
            rows, columns = self.grid
            raise UnsupportedError(f"{rows} x {columns} patches are not implemented, only squares are")

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches in an image."""
        return self.image[0] // self.patch[0], self.image[1] // self.patch[1]

    def window(self, layer: int) -> int:
        """The number of patches along the side of a layer's windows; 0 where all patches attend to each other."""
        return 0 if layer in self.global_attn_indexes else self.window_size


@dataclass(frozen=True, kw_only=True)
class GotOcr2Config(ImageIndexConfig):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": Qwen2Config,
        "vision_config": GotOcr2VisionConfig,
    }
    model_type: str = "got_ocr2"
    image_token_index: int = 151859
    tie_word_embeddings: bool = True
    text_config: Qwen2Config
    vision_config: GotOcr2VisionConfig

    def __post_init__(self) -> None:
        self.check_image_token()
