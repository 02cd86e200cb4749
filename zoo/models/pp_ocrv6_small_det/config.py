"""The config of a PP-OCRv6 detector of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...config import Config, read_backbone
from ...errors import ConfigError, UnsupportedError
from ..pp_lcnet_v4.config import PPLCNetV4Config

MODES = ("nearest", "bilinear")


@dataclass(frozen=True, kw_only=True)
class PPOCRV6SmallDetConfig(Config):
    model_type: str = "pp_ocrv6_small_det"
    backbone_config: dict[str, Any] | None = None
    reduction: int = 4
    neck_out_channels: int = 96
    interpolate_mode: str = "nearest"
    kernel_list: list[int] | tuple[int, ...] = (3, 2, 2)
    layer_list_out_channels: list[int] | tuple[int, ...] = (12, 18, 42, 360)
    dilated_kernel_size: int = 7

    def __post_init__(self) -> None:
        self.positive("reduction", "neck_out_channels", "dilated_kernel_size")
        if self.interpolate_mode not in MODES:
            raise UnsupportedError(f"interpolate_mode = {self.interpolate_mode!r} is not one of {MODES}")
        if self.neck_out_channels % 4 or self.dilated_kernel_size % 2 == 0:
            raise ConfigError("neck_out_channels must be a multiple of 4, and dilated_kernel_size odd")
        if len(self.kernel_list) != 3 or not all(type(n) is int and 1 <= n <= 100 for n in self.kernel_list):
            raise ConfigError(f"kernel_list = {self.kernel_list!r}, expected three sizes")
        self.network  # noqa: B018  # refuses what it cannot read

    @property
    def network(self) -> PPLCNetV4Config:
        """The backbone's config."""
        return read_backbone(self.backbone_config or {}, PPLCNetV4Config)

    @property
    def num_channels(self) -> int:
        return self.network.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage."""
        return self.network.patch
