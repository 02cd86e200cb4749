"""The configs of ViT and DeiT checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...config import MAX_INTEGER, Config
from ...errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class PatchesConfig(Config):
    """The sizes of images and of the patches that they are cut into.  A size may be a pair: (height, width)."""

    image_size: int | list[int] | tuple[int, ...] = 224
    patch_size: int | list[int] | tuple[int, ...] = 16

    @property
    def image(self) -> tuple[int, int]:
        """Height and width of the images that the model was trained on."""
        return self._pair("image_size")

    @property
    def patch(self) -> tuple[int, int]:
        """Height and width of a patch."""
        return self._pair("patch_size")

    def _pair(self, name: str) -> tuple[int, int]:
        value = getattr(self, name)
        sizes = (value, value) if isinstance(value, int) else tuple(value)
        if len(sizes) != 2 or not all(type(s) is int and 1 <= s <= MAX_INTEGER for s in sizes):
            raise ConfigError(f"{name} = {value!r} is neither a size in pixels nor a pair of them (height, width)")
        return sizes


@dataclass(frozen=True, kw_only=True)
class VisionConfig(PatchesConfig):
    """The fields of ViT and its descendants."""

    prefix_tokens: ClassVar[tuple[str, ...]] = ("cls_token",)  # the tokens before the patches
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    num_channels: int = 3
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0

    def __post_init__(self) -> None:
        self.positive("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "num_channels")
        self.fractions("hidden_dropout_prob", "attention_probs_dropout_prob")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("layer_norm_eps")
        if min(self.grid) < 1:
            raise ConfigError(f"patch_size = {self.patch_size} is larger than image_size = {self.image_size}")
        self.require(head_dim=self.hidden_size // self.num_attention_heads)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches in such an image."""
        return self.image[0] // self.patch[0], self.image[1] // self.patch[1]


@dataclass(frozen=True, kw_only=True)
class ViTConfig(VisionConfig):
    model_type: str = "vit"
    qkv_bias: bool = True
    encoder_stride: int = 16
    pooler_output_size: int | None = None
    pooler_act: str = "tanh"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("encoder_stride")
        if self.pooler_output_size is not None and self.pooler_output_size < 0:
            raise ConfigError(f"pooler_output_size = {self.pooler_output_size} is out of range, expected at least 1")

    @property
    def pooler_size(self) -> int:
        """The width of the pooler's output: hidden_size unless the config has another."""
        return self.pooler_output_size or self.hidden_size


@dataclass(frozen=True, kw_only=True)
class DeiTConfig(ViTConfig):
    prefix_tokens: ClassVar[tuple[str, ...]] = ("cls_token", "distillation_token")
    model_type: str = "deit"
