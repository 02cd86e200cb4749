"""The config of a PP-OCRv6 reader of lines."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import read_backbone
from ..pp_lcnet_v4.config import PPLCNetV4Config
from ..pp_ocrv5_server_rec.config import PPOCRV5ServerRecConfig


@dataclass(frozen=True, kw_only=True)
class PPOCRV6SmallRecConfig(PPOCRV5ServerRecConfig):
    model_type: str = "pp_ocrv6_small_rec"
    head_out_channels: int = 18714

    @property
    def kernel(self) -> tuple[int, ...]:
        """Height and width of the depthwise convolution before the attention."""
        return tuple(self.conv_kernel_size or (1, 7))

    @property
    def network(self) -> PPLCNetV4Config:
        """The backbone's config."""
        return read_backbone(self.backbone_config or {}, PPLCNetV4Config)
