"""The configs of a UVDoc checkpoint, and of the network that it looks through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...config import Config, read_backbone
from ...errors import ConfigError
from ..vit.backbone import BackboneConfig

MAX_WIDTH, MAX_DILATION = 100_000, 100
KERNEL = 5  # pixels of a convolution of the blocks, whose padding fits no other
# Channels before and after, dilation, and whether the first convolution halves the image, of each block of each stage.
BLOCKS = (
    ((32, 32, 1, False), (32, 32, 3, False), (32, 32, 3, False)),
    ((32, 64, 1, True), *((64, 64, 3, False) for _ in range(3))),
    ((64, 128, 1, True), *((128, 128, 3, False) for _ in range(5))),
)
# Channels and dilation of each convolution of each bridge.
BRIDGES = (
    ((128, 1),),
    ((128, 2),),
    ((128, 5),),
    ((128, 8), (128, 3), (128, 2)),
    ((128, 12), (128, 7), (128, 4)),
    ((128, 18), (128, 12), (128, 6)),
)


def _check_numbers(name: str, row: Any, most: Sequence[int]) -> None:
    is_row = isinstance(row, (list, tuple)) and len(row) == len(most)
    if not is_row or not all(type(n) is int and 1 <= n <= top for n, top in zip(row, most, strict=True)):
        raise ConfigError(f"{name} has {row!r:.100}, expected {len(most)} numbers in 1 ... {list(most)}")


@dataclass(frozen=True, kw_only=True)
class UVDocBackboneConfig(BackboneConfig):
    model_type: str = "uvdoc_backbone"
    resnet_head: Sequence[Any] = ((3, 32), (32, 32))
    resnet_configs: Sequence[Any] = BLOCKS
    stage_configs: Sequence[Any] = BRIDGES
    kernel_size: int = KERNEL

    def __post_init__(self) -> None:
        self.require(kernel_size=KERNEL)
        limits = MAX_WIDTH, MAX_WIDTH, MAX_DILATION
        stages = [("resnet_head", [self.resnet_head], limits[:2])]
        stages += [("resnet_configs", self.resnet_configs, limits), ("stage_configs", self.stage_configs, limits[1:])]
        for name, value, most in stages:
            for row in (row for stage in self._lists(name, value) for row in self._lists(name, stage)):
                _check_numbers(name, row[: len(most)] if isinstance(row, (list, tuple)) else row, most)
                if name == "resnet_configs" and (len(row) != 4 or not isinstance(row[3], bool)):
                    raise ConfigError(f"{name} has {row!r:.100}, expected three numbers, and true or false")
        width = self.resnet_head[0][0]
        for d_in, d_out, *_ in (*self.resnet_head, *(row for stage in self.resnet_configs for row in stage)):
            if d_in != width:
                raise ConfigError(f"resnet_head and resnet_configs have {d_in} channels after {width}")
            width = d_out
        for row in (row for stage in self.resnet_configs for row in stage):
            if row[0] != row[1] and not row[3]:
                raise ConfigError(f"resnet_configs has {row!r:.100}, whose input cannot be added to its output")
        if any(row[0] != width for stage in self.stage_configs for row in stage):
            raise ConfigError(f"stage_configs = {self.stage_configs!r:.200}, expected {width} channels, as come before")
        self.outputs  # noqa: B018  # refuses what it cannot read

    @staticmethod
    def _lists(name: str, value: Any) -> Sequence[Any]:
        if not isinstance(value, (list, tuple)) or not value:
            raise ConfigError(f"{name} = {value!r:.100}, expected lists of lists")
        return value

    @property
    def states(self) -> int:
        return len(self.stage_configs) + 1

    @property
    def num_channels(self) -> int:
        return self.resnet_head[0][0]

    @property
    def hidden_size(self) -> int:
        """The channels of every bridge."""
        return self.stage_configs[0][0][0]

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage."""
        halved = len(self.resnet_head) + sum(row[3] for stage in self.resnet_configs for row in stage)
        return 2**halved, 2**halved


@dataclass(frozen=True, kw_only=True)
class UVDocConfig(Config):
    model_type: str = "uvdoc"
    backbone_config: dict[str, Any] | None = None
    hidden_act: str = "prelu"
    padding_mode: str = "reflect"
    kernel_size: int = 5
    bridge_connector: list[int] | tuple[int, ...] = (128, 128)
    out_point_positions2D: Sequence[Any] = ((128, 32), (32, 2))  # noqa: N815  (transformers' name)

    def __post_init__(self) -> None:
        self.positive("kernel_size")
        self.require(hidden_act="prelu", padding_mode="reflect")
        if self.kernel_size % 2 == 0 or self.kernel_size > MAX_DILATION:
            raise ConfigError(f"kernel_size = {self.kernel_size}, expected an odd number up to {MAX_DILATION - 1}")
        if not isinstance(self.out_point_positions2D, (list, tuple)) or len(self.out_point_positions2D) != 2:
            raise ConfigError(f"out_point_positions2D = {self.out_point_positions2D!r:.100}, expected two pairs")
        _check_numbers("bridge_connector", self.bridge_connector, (MAX_WIDTH, MAX_WIDTH))
        for row in self.out_point_positions2D:
            _check_numbers("out_point_positions2D", row, (MAX_WIDTH, MAX_WIDTH))
        network, (before, width), (first, last) = self.network, self.bridge_connector, self.out_point_positions2D
        if (before, first[0], last[0], last[1]) != (network.hidden_size, width, first[1], 2):
            raise ConfigError(
                f"bridge_connector = {[before, width]}, out_point_positions2D = {[first, last]}: "
                f"expected channels from the backbone's {network.hidden_size} down to 2, each as those before"
            )

    @property
    def network(self) -> UVDocBackboneConfig:
        """The backbone's config."""
        return read_backbone(self.backbone_config or {}, UVDocBackboneConfig)

    @property
    def num_channels(self) -> int:
        return self.network.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the features."""
        return self.network.patch
