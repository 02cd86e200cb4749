"""The config of an EfficientNet checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from ...config import MAX_LAYERS, Config
from ...errors import ConfigError

LISTS = ("kernel_sizes", "in_channels", "out_channels", "strides", "num_block_repeats", "expand_ratios")


class BlockSizes(NamedTuple):
    """pads_last: a stride of 2 adds one row and one column more at the bottom and on the right than at the other sides.
    is_added: the block's input is added to its output.
    """

    kernel: int
    d_in: int
    d_out: int
    stride: int
    expansion: int
    pads_last: bool
    is_added: bool


@dataclass(frozen=True, kw_only=True)
class EfficientNetBlocks(Config):
    """What EfficientNet's stem and blocks are made of."""

    num_channels: int = 3
    width_coefficient: float = 2.0
    depth_coefficient: float = 3.1
    depth_divisor: int = 8
    kernel_sizes: list[int] | tuple[int, ...] = (3, 3, 5, 3, 5, 5, 3)
    in_channels: list[int] | tuple[int, ...] = (32, 16, 24, 40, 80, 112, 192)
    out_channels: list[int] | tuple[int, ...] = (16, 24, 40, 80, 112, 192, 320)
    depthwise_padding: list[int] | tuple[int, ...] = ()
    strides: list[int] | tuple[int, ...] = (1, 2, 2, 2, 1, 2, 1)
    num_block_repeats: list[int] | tuple[int, ...] = (1, 2, 2, 3, 3, 4, 1)
    expand_ratios: list[int] | tuple[int, ...] = (1, 6, 6, 6, 6, 6, 6)
    squeeze_expansion_ratio: float = 0.25
    hidden_act: str = "swish"
    hidden_dim: int = 2560
    pooling_type: str = "mean"
    batch_norm_eps: float = 0.001
    drop_connect_rate: float = 0.2

    def __post_init__(self) -> None:
        self.positive("num_channels", "depth_divisor", "hidden_dim")
        self.above_zero("width_coefficient", "depth_coefficient", "squeeze_expansion_ratio", "batch_norm_eps")
        self.fractions("drop_connect_rate")
        self.require(pooling_type="mean")
        for name in LISTS:
            value = getattr(self, name)
            if len(value) != len(self.in_channels) or not all(type(n) is int and 1 <= n <= 100_000 for n in value):
                wanted = f"{len(self.in_channels)} numbers from 1 to 100000, as in_channels"
                raise ConfigError(f"{name} = {value!r:.200}, expected {wanted}")
        if not self.in_channels or not all(n % 2 for n in self.kernel_sizes) or not set(self.strides) <= {1, 2}:
            raise ConfigError(f"kernel_sizes = {self.kernel_sizes!r:.200} are not odd, or strides neither 1 nor 2")
        if self.depth_coefficient * sum(self.num_block_repeats) > MAX_LAYERS:
            raise ConfigError(f"depth_coefficient = {self.depth_coefficient} makes more than {MAX_LAYERS} blocks")
        if self.in_channels[0] != 32 or tuple(self.in_channels[1:]) != tuple(self.out_channels[:-1]):
            raise ConfigError("in_channels are not 32 and the out_channels of the stages before")

    def scale_width(self, channels: int) -> int:
        """`channels` times the coefficient, rounded to multiples of the divisor, and not below nine tenths of it."""
        exact, step = channels * self.width_coefficient, self.depth_divisor
        found = max(step, int(exact + step / 2) // step * step)
        return found + step if found < 0.9 * exact else found

    @property
    def blocks(self) -> list[BlockSizes]:
        """The sizes of each block."""
        found: list[BlockSizes] = []
        for i, repeats in enumerate(self.num_block_repeats):
            d_in, d_out = self.scale_width(self.in_channels[i]), self.scale_width(self.out_channels[i])
            for j in range(math.ceil(self.depth_coefficient * repeats)):
                size = self.kernel_sizes[i], d_out if j else d_in, d_out, 1 if j else self.strides[i]
                pads_last = len(found) not in self.depthwise_padding
                is_added = j > 0
                found.append(BlockSizes(*size, self.expand_ratios[i], pads_last, is_added))
        return found

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last block."""
        side = 2 * math.prod(self.strides)
        return side, side


@dataclass(frozen=True, kw_only=True)
class EfficientNetConfig(EfficientNetBlocks):
    model_type: str = "efficientnet"
    dropout_rate: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions("dropout_rate")
        if self.scale_width(1280) != self.hidden_dim:
            found = self.scale_width(1280)
            raise ConfigError(f"hidden_dim = {self.hidden_dim}, but width_coefficient makes {found} of 1280")

    @property
    def hidden_size(self) -> int:
        """The width of the last convolution."""
        return self.hidden_dim
