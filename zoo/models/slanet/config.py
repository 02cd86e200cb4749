"""The config of a SLANet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...config import Config, read_backbone
from ...errors import ConfigError, UnsupportedError
from ..pp_lcnet.config import PPLCNetConfig

MAX_TOKENS = 10_000  # the most that max_text_length may say, which bounds time
# What transformers takes where config.json has no backbone_config.
BACKBONE = {"scale": 1.0, "out_features": ["stage2", "stage3", "stage4", "stage5"], "divisor": 16}


@dataclass(frozen=True, kw_only=True)
class SLANetConfig(Config):
    """loc_reg_num: the numbers of a cell's place, or 0 without; a field of PaddleOCR, which transformers has not."""

    model_type: str = "slanet"
    post_conv_out_channels: int = 96
    out_channels: int = 50
    hidden_size: int = 256
    max_text_length: int = 500
    backbone_config: dict[str, Any] | None = None
    hidden_act: str = "hardswish"
    csp_kernel_size: int = 5
    csp_num_blocks: int = 1
    loc_reg_num: int = 0

    def __post_init__(self) -> None:
        self.positive("post_conv_out_channels", "out_channels", "hidden_size", "max_text_length")
        self.positive("csp_kernel_size", "csp_num_blocks")
        if self.post_conv_out_channels % 2 or self.csp_kernel_size % 2 == 0:
            raise ConfigError("post_conv_out_channels must be even, and csp_kernel_size odd")
        if self.loc_reg_num not in (0, 4):
            raise UnsupportedError(f"loc_reg_num = {self.loc_reg_num} is not implemented, only 0 and 4 are")
        if self.max_text_length > MAX_TOKENS:
            raise ConfigError(f"max_text_length = {self.max_text_length} is out of range, expected 1 ... {MAX_TOKENS}")
        if list(self.network.outputs) != [2, 3, 4, 5]:
            raise ConfigError(f"backbone_config: its outputs are {self.network.outputs}, expected stages 2 ... 5")

    @property
    def network(self) -> PPLCNetConfig:
        """The backbone's config."""
        return read_backbone(BACKBONE if self.backbone_config is None else self.backbone_config, PPLCNetConfig)

    @property
    def num_channels(self) -> int:
        return self.network.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage."""
        return self.network.patch
