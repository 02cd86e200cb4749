"""The config of a small PP-OCR detector of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...config import Config, read_backbone
from ...errors import ConfigError, UnsupportedError
from ..pp_lcnet_v3.config import PPLCNetV3Config
from ..pp_ocrv5_server_det.config import MODES, check_kernels, pyramid_widths

# What transformers takes where config.json has no backbone_config.
BACKBONE = {"scale": 0.75, "out_features": ["stage2", "stage3", "stage4", "stage5"], "divisor": 16}


@dataclass(frozen=True, kw_only=True)
class PPOCRV5MobileDetConfig(Config):
    model_type: str = "pp_ocrv5_mobile_det"
    backbone_config: dict[str, Any] | None = None
    reduction: int = 4
    neck_out_channels: int = 96
    interpolate_mode: str = "nearest"
    kernel_list: list[int] | tuple[int, ...] = (3, 2, 2)
    layer_list_out_channels: list[int] | tuple[int, ...] = (12, 18, 42, 360)

    def __post_init__(self) -> None:
        self.positive("reduction", "neck_out_channels")
        if self.interpolate_mode not in MODES:
            raise UnsupportedError(f"interpolate_mode = {self.interpolate_mode!r} is not one of {MODES}")
        if self.neck_out_channels % 4:
            raise ConfigError(f"neck_out_channels = {self.neck_out_channels} is not a multiple of 4")
        widths = self.layer_list_out_channels
        if len(widths) != 4 or not all(type(n) is int and 1 <= n <= 100_000 for n in widths):
            raise ConfigError(f"layer_list_out_channels = {widths!r}, expected four numbers of channels")
        check_kernels(self.kernel_list)
        self.network  # noqa: B018  # refuses what it cannot read

    def check_fields(self) -> None:
        """Refuse a backbone of which the neck can make nothing."""
        pyramid_widths(self.network)

    @property
    def network(self) -> Any:
        """The backbone's config."""
        return read_backbone(BACKBONE if self.backbone_config is None else self.backbone_config, PPLCNetV3Config)

    @property
    def num_channels(self) -> int:
        return self.network.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage."""
        return self.network.patch
