"""The config of a PP-OCRv6 reader of lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...config import Config
from ...errors import ConfigError
from ..pp_lcnet_v4.config import PPLCNetV4Config, backbone


@dataclass(frozen=True, kw_only=True)
class PPOCRV6SmallRecConfig(Config):
    model_type: str = "pp_ocrv6_small_rec"
    backbone_config: dict[str, Any] | None = None
    hidden_size: int = 120
    num_attention_heads: int = 8
    mlp_ratio: float = 2.0
    depth: int = 2
    hidden_act: str = "silu"
    head_out_channels: int = 18714
    conv_kernel_size: list[int] | tuple[int, ...] | None = None
    qkv_bias: bool = True
    attention_dropout: float = 0.0
    layer_norm_eps: float = 1e-6

    def __post_init__(self) -> None:
        self.positive("hidden_size", "num_attention_heads", "depth", "head_out_channels")
        self.divides("num_attention_heads", "hidden_size")
        self.fractions("attention_dropout")
        self.above_zero("layer_norm_eps", "mlp_ratio")
        kernel = self.kernel
        if len(kernel) != 2 or not all(type(n) is int and 1 <= n <= 1000 and n % 2 for n in kernel):
            raise ConfigError(f"conv_kernel_size = {self.conv_kernel_size!r}, expected two odd numbers")
        self.network  # noqa: B018  # refuses what it cannot read

    @property
    def kernel(self) -> tuple[int, ...]:
        """Height and width of the depthwise convolution before the attention."""
        return tuple(self.conv_kernel_size or (1, 7))

    @property
    def network(self) -> PPLCNetV4Config:
        """The backbone's config."""
        return backbone(self.backbone_config)

    @property
    def num_hidden_layers(self) -> int:
        return self.depth

    @property
    def num_channels(self) -> int:
        return self.network.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place in the text: all of a line's height."""
        y, x = self.network.patch
        return 3 * y, 2 * x
