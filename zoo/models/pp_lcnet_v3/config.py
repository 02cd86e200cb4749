"""The config of a PP-LCNetV3, and of one that a reader or a detector of text looks through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..pp_lcnet.config import BLOCKS as BLOCKS_V1
from ..pp_lcnet.config import PPLCNetConfig

BLOCKS = (
    *BLOCKS_V1[:3],
    BLOCKS_V1[3][:5],
    ((5, 256, 512, 2, True), (5, 512, 512, 1, True), (5, 512, 512, 1, False), (5, 512, 512, 1, False)),
)


@dataclass(frozen=True, kw_only=True)
class PPLCNetV3Config(PPLCNetConfig):
    model_type: str = "pp_lcnet_v3"
    conv_symmetric_num: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("conv_symmetric_num")

    @property
    def default_blocks(self) -> tuple[Any, ...]:
        return BLOCKS
