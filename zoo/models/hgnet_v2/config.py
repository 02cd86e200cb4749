"""The config of an HGNetV2, and of one that another model looks through."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...errors import ConfigError
from ...ops import pair
from ..vit.backbone import BackboneConfig

# The fields that have a number, or True, for each stage.
STAGE_FIELDS = (
    "stage_in_channels",
    "stage_mid_channels",
    "stage_out_channels",
    "stage_num_blocks",
    "stage_kernel_size",
    "stage_numb_of_layers",
)
STAGE_FLAGS = ("stage_downsample", "stage_light_block")


class StageSizes(NamedTuple):
    """stride: of the convolution before the blocks, or None if there is none.  is_light: of depthwise convolutions."""

    d_in: int
    d_mid: int
    d_out: int
    blocks: int
    kernel: int
    layers: int
    stride: tuple[int, int] | None
    is_light: bool


@dataclass(frozen=True, kw_only=True)
class HGNetV2Config(BackboneConfig):
    model_type: str = "hgnet_v2"
    num_channels: int = 3
    depths: list[int] | tuple[int, ...] = (3, 4, 6, 3)
    hidden_sizes: list[int] | tuple[int, ...] = (256, 512, 1024, 2048)
    hidden_act: str = "relu"
    stem_channels: list[int] | tuple[int, ...] = (3, 32, 48)
    stem_strides: list[Any] | tuple[Any, ...] = (2, 1, 1, 2, 1)
    stage_in_channels: list[int] | tuple[int, ...] = (48, 128, 512, 1024)
    stage_mid_channels: list[int] | tuple[int, ...] = (48, 96, 192, 384)
    stage_out_channels: list[int] | tuple[int, ...] = (128, 512, 1024, 2048)
    stage_num_blocks: list[int] | tuple[int, ...] = (1, 1, 3, 1)
    stage_downsample: list[bool] | tuple[bool, ...] = (False, True, True, True)
    stage_downsample_strides: list[Any] | tuple[Any, ...] = (2, 2, 2, 2)
    stage_light_block: list[bool] | tuple[bool, ...] = (False, False, True, True)
    stage_kernel_size: list[int] | tuple[int, ...] = (3, 3, 5, 5)
    stage_numb_of_layers: list[int] | tuple[int, ...] = (6, 6, 6, 6)
    use_learnable_affine_block: bool = False

    def __post_init__(self) -> None:
        self.positive("num_channels")
        count = len(self.stage_in_channels)
        for name in STAGE_FIELDS:
            value = getattr(self, name)
            if len(value) != count or not all(type(n) is int and 1 <= n <= 100_000 for n in value):
                raise ConfigError(f"{name} = {value!r:.200}, expected {count} numbers, one of each stage")
        for name in STAGE_FLAGS:
            value = getattr(self, name)
            if len(value) != count or not all(isinstance(one, bool) for one in value):
                raise ConfigError(f"{name} = {value!r:.200}, expected {count} times true or false, one of each stage")
        if not count or len(self.depths) != count:
            raise ConfigError(f"depths = {self.depths!r} is not of {count} stages, as stage_in_channels is")
        if any(n % 2 == 0 for n in self.stage_kernel_size) or any(n % 2 for n in self.stage_out_channels):
            raise ConfigError("stage_kernel_size must be odd, and stage_out_channels even")
        if len(self.stem_channels) != 3 or self.stem_channels[0] != self.num_channels or self.stem_channels[1] % 2:
            raise ConfigError(f"stem_channels = {self.stem_channels!r}, expected {self.num_channels}, an even one, one")
        if tuple(self.stage_in_channels) != (self.stem_channels[2], *self.stage_out_channels[:-1]):
            raise ConfigError(f"stage_in_channels = {self.stage_in_channels!r} are not those that come before")
        self._strides("stem_strides", 5)
        if self.stem_strides[1] != 1 or self.stem_strides[2] != 1:
            raise ConfigError(f"stem_strides = {self.stem_strides!r}, expected 1 for the second and the third")
        self._strides("stage_downsample_strides", count)
        self.outputs  # noqa: B018  # refuses what it cannot read

    def _strides(self, name: str, count: int) -> list[tuple[int, int]]:
        """The strides of a field, as pairs."""
        raw = getattr(self, name)
        found = [tuple(one) if isinstance(one, (list, tuple)) else (one, one) for one in raw]
        if len(raw) != count or not all(
            len(one) == 2 and all(type(n) is int and 1 <= n <= 8 for n in one) for one in found
        ):
            raise ConfigError(f"{name} = {raw!r:.200}, expected {count} times a number or a pair, in 1 ... 8")
        return [(y, x) for y, x in found]

    @property
    def stages(self) -> tuple[StageSizes, ...]:
        """The sizes of each stage."""
        strides = self._strides("stage_downsample_strides", len(self.stage_in_channels))
        strides = [stride if has else None for stride, has in zip(strides, self.stage_downsample, strict=True)]
        columns: list[Any] = [getattr(self, name) for name in STAGE_FIELDS]
        return tuple(map(StageSizes, *columns, strides, self.stage_light_block))

    @property
    def states(self) -> int:
        return len(self.depths) + 1

    @property
    def widths(self) -> tuple[int, ...]:
        """The channels of the stem and of each stage."""
        return self.stem_channels[2], *self.stage_out_channels

    @property
    def hidden_size(self) -> int:
        """The width of the last stage."""
        return self.stage_out_channels[-1]

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage."""
        strides = [pair(one) for one in self._strides("stem_strides", 5)]
        strides += self.stage_strides
        return math.prod(y for y, _ in strides), math.prod(x for _, x in strides)

    @property
    def stage_strides(self) -> list[tuple[int, int]]:
        """The stride of each stage, vertical and horizontal."""
        return [stage.stride or (1, 1) for stage in self.stages]
