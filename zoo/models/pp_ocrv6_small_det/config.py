"""The config of a small PP-OCRv6 detector of text."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import read_backbone
from ...errors import ConfigError
from ..pp_lcnet_v4.config import PPLCNetV4Config
from ..pp_ocrv5_mobile_det.config import PPOCRV5MobileDetConfig
from ..pp_ocrv5_server_det.config import pyramid_widths


@dataclass(frozen=True, kw_only=True)
class PPOCRV6SmallDetConfig(PPOCRV5MobileDetConfig):
    model_type: str = "pp_ocrv6_small_det"
    dilated_kernel_size: int = 7

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("dilated_kernel_size")
        if self.dilated_kernel_size % 2 == 0:
            raise ConfigError(f"dilated_kernel_size = {self.dilated_kernel_size}, expected an odd number")

    def check_fields(self) -> None:
        """Refuse stages whose channels are not those that the neck takes."""
        widths = pyramid_widths(self.network)
        if list(self.layer_list_out_channels) != widths:
            found = f"layer_list_out_channels = {self.layer_list_out_channels!r}"
            raise ConfigError(f"{found}, the backbone gives {widths}")

    @property
    def network(self) -> PPLCNetV4Config:
        """The backbone's config."""
        return read_backbone(self.backbone_config or {}, PPLCNetV4Config)
