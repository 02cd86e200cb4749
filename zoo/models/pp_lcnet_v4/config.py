"""The config of a PP-LCNetV4, and of one that a reader or a detector of text looks through."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...errors import ConfigError, UnsupportedError, nearest
from ..pp_lcnet.config import BlockSizes, check_widths, multiply_strides, read_blocks
from ..vit.backbone import BackboneConfig

STEMS = ("large", "small")
_REPEAT_BLOCK = (3, 192, 192, 1)
# transformers' default: (kernel, inputs, outputs, stride, squeezes) of each block of each stage.
BLOCKS = (
    ((3, 96, 96, 1, True),),
    ((3, 96, 96, 1, False), (3, 96, 96, 1, False)),
    ((3, 96, 192, (2, 1), False), *((*_REPEAT_BLOCK, i % 2 == 0) for i in range(6))),
    ((3, 192, 384, (2, 1), False), (3, 384, 384, 1, True), (3, 384, 384, 1, False)),
)


@dataclass(frozen=True, kw_only=True)
class PPLCNetV4Config(BackboneConfig):
    model_type: str = "pp_lcnet_v4"
    num_channels: int = 3
    scale: float = 1.0
    block_configs: list[Any] | tuple[Any, ...] | None = None
    stem_channels: list[int] | tuple[int, ...] = (3, 48, 96)
    stem_strides: list[int] | tuple[int, ...] = (2, 1, 1, 2, 1)
    stem_type: str = "large"
    reduction: int = 4
    hidden_act: str = "relu"
    use_learnable_affine_block: bool = False

    def __post_init__(self) -> None:
        self.positive("num_channels", "reduction")
        # The stem's zeros below and on the right of its pixels are the least values of a relu, and of no other.
        self.require(use_learnable_affine_block=False, scale=1.0, hidden_act="relu")
        if self.stem_type not in STEMS:
            guess = nearest(self.stem_type, STEMS)
            raise UnsupportedError(f"stem_type = {self.stem_type!r} is not one of {STEMS}{guess}")
        if len(self.stem_channels) != 3 or self.stem_channels[0] != self.num_channels or self.stem_channels[1] % 2:
            raise ConfigError(f"stem_channels = {self.stem_channels!r}, expected {self.num_channels}, an even one, one")
        if len(self.stem_strides) != 5 or not all(type(n) is int and 1 <= n <= 4 for n in self.stem_strides):
            raise ConfigError(f"stem_strides = {self.stem_strides!r}, expected five numbers in 1 ... 4")
        if tuple(self.stem_strides[1:3]) != (1, 1):
            raise UnsupportedError(f"stem_strides = {self.stem_strides!r}: only 1 is implemented for the second, third")
        check_widths(self.stem_channels[2], self.stages)
        self.outputs  # noqa: B018  # refuses what it cannot read

    @property
    def stages(self) -> tuple[tuple[BlockSizes, ...], ...]:
        """The sizes of each stage's blocks."""
        return read_blocks(BLOCKS if self.block_configs is None else self.block_configs, 4)

    @property
    def states(self) -> int:
        return 5

    @property
    def widths(self) -> tuple[int, ...]:
        """The channels of the stem and of each stage."""
        return self.stem_channels[2], *(stage[-1].d_out for stage in self.stages)

    @property
    def hidden_size(self) -> int:
        """The width of the last stage."""
        return self.widths[-1]

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage."""
        stem, strides = math.prod(self.stem_strides) if self.stem_type == "large" else 4, self.stage_strides
        return stem * math.prod(y for y, _ in strides), stem * math.prod(x for _, x in strides)

    @property
    def stage_strides(self) -> list[tuple[int, int]]:
        """The stride of each stage, vertical and horizontal."""
        return [multiply_strides(stage) for stage in self.stages]
