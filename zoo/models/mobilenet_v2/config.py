"""The config of a MobileNetV2 checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...config import Config

CHANNELS = (
    16,
    24,
    24,
    32,
    32,
    32,
    64,
    64,
    64,
    64,
    96,
    96,
    96,
    160,
    160,
    160,
    320,
)  # after the stem and after each block
STRIDES = (2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1)


class BlockSizes(NamedTuple):
    """inner: the channels between the two pointwise convolutions."""

    d_in: int
    inner: int
    d_out: int
    stride: int
    dilation: int


@dataclass(frozen=True, kw_only=True)
class MobileNetV2Config(Config):
    model_type: str = "mobilenet_v2"
    num_channels: int = 3
    depth_multiplier: float = 1.0
    depth_divisible_by: int = 8
    min_depth: int = 8
    expand_ratio: float = 6.0
    output_stride: int = 32
    first_layer_is_expansion: bool = True
    finegrained_output: bool = True
    hidden_act: str = "relu6"
    tf_padding: bool = True
    classifier_dropout_prob: float = 0.8
    layer_norm_eps: float = 0.001
    semantic_loss_ignore_index: int = 255

    def __post_init__(self) -> None:
        self.positive("num_channels", "depth_divisible_by", "min_depth", "output_stride")
        self.above_zero("depth_multiplier", "expand_ratio", "layer_norm_eps")
        self.fractions("classifier_dropout_prob")

    def round_width(self, channels: float) -> int:
        """The nearest multiple of `depth_divisible_by`, and not below nine tenths of the channels."""
        step, exact = self.depth_divisible_by, round(channels)
        found = max(self.min_depth, int(exact + step / 2) // step * step)
        return found + step if found < 0.9 * exact else found

    def scale_width(self, channels: int) -> int:
        return self.round_width(channels * self.depth_multiplier)

    def blocks(self) -> Iterator[BlockSizes]:
        """Yield the sizes of each block; from `output_stride` on dilations take the place of strides."""
        at, dilation = 2, 1
        for i, stride in enumerate(STRIDES):
            d_in, d_out = self.scale_width(CHANNELS[i]), self.scale_width(CHANNELS[i + 1])
            inner = self.round_width(d_in * self.expand_ratio)
            if at == self.output_stride:
                yield BlockSizes(d_in, inner, d_out, 1, dilation)
                dilation *= stride
            else:
                yield BlockSizes(d_in, inner, d_out, stride, 1)
                at *= stride

    @property
    def last_width(self) -> int:
        """The channels of the last block."""
        return self.scale_width(CHANNELS[-1])

    @property
    def hidden_size(self) -> int:
        """The width of the last convolution."""
        return 1280 if self.finegrained_output and self.depth_multiplier < 1 else self.scale_width(1280)

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last block."""
        side = 2
        for block in self.blocks():
            side *= block.stride
        return side, side
