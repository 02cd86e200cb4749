"""The config of a PP-OCRv5 reader of lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import Config, read_backbone
from ...errors import ConfigError
from ..hgnet_v2.config import HGNetV2Config

# What transformers takes where config.json has no backbone_config: lines lose their height faster than their width.
BACKBONE = {
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
    "stage_downsample": [True] * 4,
    "stem_strides": [2, 1, 1, 1, 1],
    "stage_downsample_strides": [[2, 1], [1, 2], [2, 1], [2, 1]],
}


@dataclass(frozen=True, kw_only=True)
class PPOCRV5ServerRecConfig(Config):
    aliases: ClassVar[Mapping[str, str]] = {"num_hidden_layers": "depth"}
    model_type: str = "pp_ocrv5_server_rec"
    backbone_config: dict[str, Any] | None = None
    hidden_size: int = 120
    num_attention_heads: int = 8
    mlp_ratio: float = 2.0
    depth: int = 2
    hidden_act: str = "silu"
    head_out_channels: int = 18385
    conv_kernel_size: list[int] | tuple[int, ...] | None = None
    qkv_bias: bool = True
    attention_dropout: float = 0.0
    layer_norm_eps: float = 1e-6

    def __post_init__(self) -> None:
        self.positive("hidden_size", "num_attention_heads", "depth", "head_out_channels")
        self.divides("num_attention_heads", "hidden_size")
        self.fractions("attention_dropout")
        self.above_zero("layer_norm_eps", "mlp_ratio")
        if self.intermediate_size < 1:
            found = f"mlp_ratio = {self.mlp_ratio} of hidden_size = {self.hidden_size}"
            raise ConfigError(f"{found} leaves no features, expected one or more")
        kernel = self.kernel
        if len(kernel) != 2 or not all(type(n) is int and 1 <= n <= 1000 and n % 2 for n in kernel):
            raise ConfigError(f"conv_kernel_size = {self.conv_kernel_size!r}, expected two odd numbers")
        self.network  # noqa: B018  # refuses what it cannot read

    @property
    def kernel(self) -> tuple[int, ...]:
        """Height and width of the convolutions around the attention."""
        return tuple(self.conv_kernel_size or (1, 3))

    @property
    def intermediate_size(self) -> int:
        return int(self.hidden_size * self.mlp_ratio)

    @property
    def network(self) -> Any:
        """The backbone's config."""
        return read_backbone(BACKBONE if self.backbone_config is None else self.backbone_config, HGNetV2Config)

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
