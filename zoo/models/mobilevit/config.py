"""The config of a MobileViT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import Config
from ...errors import ConfigError
from ..vit.config import ViTConfig

STEP = 8  # the channels inside a block are a multiple of it


@dataclass(frozen=True, kw_only=True)
class MobileViTConfig(Config):
    model_type: str = "mobilevit"
    num_channels: int = 3
    image_size: int | list[int] | tuple[int, int] = 256  # changes nothing: images may have any size
    patch_size: int = 2
    hidden_sizes: list[int] | tuple[int, ...] = (144, 192, 240)
    neck_hidden_sizes: list[int] | tuple[int, ...] = (16, 32, 64, 96, 128, 160, 640)
    num_attention_heads: int = 4
    mlp_ratio: float = 2.0
    expand_ratio: float = 4.0
    hidden_act: str = "silu"
    conv_kernel_size: int = 3
    output_stride: int = 32
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float = 0.1
    layer_norm_eps: float = 1e-5
    qkv_bias: bool = True
    aspp_out_channels: int = 256
    atrous_rates: list[int] | tuple[int, ...] = (6, 12, 18)
    aspp_dropout_prob: float = 0.1
    semantic_loss_ignore_index: int = 255

    def __post_init__(self) -> None:
        self.positive("num_channels", "patch_size", "num_attention_heads", "conv_kernel_size", "output_stride")
        self.positive("aspp_out_channels")
        self.above_zero("mlp_ratio", "expand_ratio", "layer_norm_eps")
        self.fractions("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob")
        self.fractions("aspp_dropout_prob")
        for name, count in (("hidden_sizes", 3), ("neck_hidden_sizes", 7), ("atrous_rates", 3)):
            value = getattr(self, name)
            if len(value) != count or not all(type(n) is int and 1 <= n <= 100_000 for n in value):
                raise ConfigError(f"{name} = {value!r:.200}, expected {count} numbers from 1 to 100000")
        if self.conv_kernel_size % 2 == 0:
            raise ConfigError(f"conv_kernel_size = {self.conv_kernel_size}, expected an odd number")
        for width in self.hidden_sizes:
            if width % self.num_attention_heads or width * self.mlp_ratio < 1:
                raise ConfigError(
                    f"hidden_sizes = {self.hidden_sizes} do not fit num_attention_heads = {self.num_attention_heads} "
                    f"and mlp_ratio = {self.mlp_ratio}"
                )

    def widen(self, channels: int) -> int:
        """The channels inside a block: the nearest multiple of 8, and not below nine tenths of the exact number."""
        exact = round(channels * self.expand_ratio)
        found = max(STEP, int(exact + STEP / 2) // STEP * STEP)
        return found + STEP if found < 0.9 * exact else found

    def strides(self) -> list[tuple[int, int]]:
        """The stride and the dilation of the first block of the last three stages."""
        return {8: [(2, 1), (1, 1), (1, 2)], 16: [(2, 1), (2, 1), (1, 1)]}.get(self.output_stride, [(2, 1)] * 3)

    def layer_config(self, stage: int) -> ViTConfig:
        """The config of the Transformer layers of one of the last three stages."""
        D = self.hidden_sizes[stage]
        return ViTConfig(
            hidden_size=D,
            intermediate_size=int(D * self.mlp_ratio),
            num_attention_heads=self.num_attention_heads,
            hidden_act=self.hidden_act,
            hidden_dropout_prob=self.hidden_dropout_prob,
            attention_probs_dropout_prob=self.attention_probs_dropout_prob,
            layer_norm_eps=self.layer_norm_eps,
            qkv_bias=self.qkv_bias,
        )

    @property
    def hidden_size(self) -> int:
        """The width of the last convolution."""
        return self.neck_hidden_sizes[-1]

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage."""
        side = 4
        for stride, _ in self.strides():
            side *= stride
        return side, side
