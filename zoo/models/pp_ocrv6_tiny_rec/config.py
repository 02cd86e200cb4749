"""The config of the smallest PP-OCRv6 reader of lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...config import Config, read_backbone
from ..pp_lcnet_v4.config import PPLCNetV4Config


@dataclass(frozen=True, kw_only=True)
class PPOCRV6TinyRecConfig(Config):
    model_type: str = "pp_ocrv6_tiny_rec"
    backbone_config: dict[str, Any] | None = None
    hidden_size: int = 120
    head_out_channels: int = 6625

    def __post_init__(self) -> None:
        self.positive("hidden_size", "head_out_channels")
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
        """The pixels of a place in the text: all of a line's height."""
        y, x = self.network.patch
        return 3 * y, 2 * x
