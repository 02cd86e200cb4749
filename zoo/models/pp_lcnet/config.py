"""The config of a PP-LCNet, and of one that another model looks through."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...errors import ConfigError
from ...ops import pair
from ..vit.backbone import BackboneConfig

# transformers' default: (kernel, inputs, outputs, stride, squeezes) of each block of each stage.
BLOCKS = (
    ((3, 16, 32, 1, False),),
    ((3, 32, 64, 2, False), (3, 64, 64, 1, False)),
    ((3, 64, 128, 2, False), (3, 128, 128, 1, False)),
    ((3, 128, 256, 2, False), *((5, 256, 256, 1, False),) * 5),
    ((5, 256, 512, 2, True), (5, 512, 512, 1, True)),
)


class BlockSizes(NamedTuple):
    """stride: a number or a pair, and which of them matters: transformers takes (1, 1) for another than 1."""

    kernel: int
    d_in: int
    d_out: int
    stride: int | tuple[int, int]
    squeezes: bool

    @property
    def keeps_shape(self) -> bool:
        """True if the output has the shape of the input."""
        return self.stride == 1 and self.d_in == self.d_out


def read_blocks(raw: Any, stages: int) -> tuple[tuple[BlockSizes, ...], ...]:
    """The sizes of each stage's blocks, from `block_configs`."""
    if (
        not isinstance(raw, (list, tuple))
        or len(raw) != stages
        or not all(isinstance(stage, (list, tuple)) and stage for stage in raw)
    ):
        raise ConfigError(f"block_configs = {raw!r:.200}, expected {stages} lists of blocks")
    return tuple(tuple(map(_block, stage)) for stage in raw)


def _block(raw: Any) -> BlockSizes:
    kernel, d_in, d_out, stride, squeezes = raw if isinstance(raw, (list, tuple)) and len(raw) == 5 else (0,) * 5
    strides = (stride, stride) if isinstance(stride, int) else stride
    numbers = (kernel, d_in, d_out, *strides) if isinstance(strides, (list, tuple)) and len(strides) == 2 else (0,)
    if not all(type(n) is int and 1 <= n <= 100_000 for n in numbers) or not kernel % 2 or squeezes not in (0, 1):
        raise ConfigError(f"block_configs has {raw!r:.200}, expected [odd kernel, inputs, outputs, stride, squeezes]")
    return BlockSizes(kernel, d_in, d_out, stride if isinstance(stride, int) else tuple(stride), bool(squeezes))


def check_widths(d: int, stages: tuple[tuple[BlockSizes, ...], ...]) -> None:
    """Refuse blocks of which one takes other channels than are before it; d: those before the first."""
    for block in (block for stage in stages for block in stage):
        if block.d_in != d:
            raise ConfigError(f"block_configs: a block takes {block.d_in} channels after one of {d}")
        d = block.d_out


def multiply_strides(stage: tuple[BlockSizes, ...]) -> tuple[int, int]:
    """The stride of a stage, vertical and horizontal."""
    y, x = (math.prod(pair(block.stride)[i] for block in stage) for i in (0, 1))
    return y, x


@dataclass(frozen=True, kw_only=True)
class PPLCNetConfig(BackboneConfig):
    model_type: str = "pp_lcnet"
    scale: float = 1.0
    block_configs: list[Any] | tuple[Any, ...] | None = None
    stem_channels: int = 16
    stem_stride: int = 2
    reduction: int = 4
    class_expand: int = 1280
    divisor: int = 8
    hidden_act: str = "hardswish"
    hidden_dropout_prob: float = 0.2

    def __post_init__(self) -> None:
        self.positive("stem_channels", "stem_stride", "reduction", "class_expand", "divisor")
        self.above_zero("scale")
        self.fractions("hidden_dropout_prob")
        self.require(num_channels=3)  # which transformers has, whatever the file says
        check_widths(self.widths[0], self.stages)
        self.outputs  # noqa: B018  # refuses what it cannot read

    @property
    def num_channels(self) -> int:
        return 3

    @property
    def default_blocks(self) -> tuple[Any, ...]:
        return BLOCKS

    @property
    def stages(self) -> tuple[tuple[BlockSizes, ...], ...]:
        """The sizes of each stage's blocks, with widths as `scale_width` has them."""
        found = read_blocks(self.default_blocks if self.block_configs is None else self.block_configs, 5)
        return tuple(
            tuple(b._replace(d_in=self.scale_width(b.d_in), d_out=self.scale_width(b.d_out)) for b in stage)
            for stage in found
        )

    def scale_width(self, channels: int) -> int:
        """`channels` times the scale, rounded to multiples of the divisor, and not below nine tenths of it."""
        exact = channels * self.scale
        found = max(self.divisor, int(exact + self.divisor / 2) // self.divisor * self.divisor)
        return int(found + self.divisor if found < 0.9 * exact else found)

    @property
    def states(self) -> int:
        return 6

    @property
    def widths(self) -> tuple[int, ...]:
        """The channels of the stem and of each stage."""
        return self.scale_width(self.stem_channels), *(stage[-1].d_out for stage in self.stages)

    @property
    def hidden_size(self) -> int:
        """The width of the last stage."""
        return self.widths[-1]

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage."""
        strides = self.stage_strides
        y, x = (self.stem_stride * math.prod(stride[i] for stride in strides) for i in (0, 1))
        return y, x

    @property
    def stage_strides(self) -> list[tuple[int, int]]:
        """The stride of each stage, vertical and horizontal."""
        return [multiply_strides(stage) for stage in self.stages]
