"""The config of a ResNet checkpoint, and of a ResNet that a detector looks through."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError, UnsupportedError, nearest
from ..vit.backbone import BackboneConfig

LAYER_TYPES = ("basic", "bottleneck")


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(BackboneConfig):
    model_type: str = "resnet"
    num_channels: int = 3
    embedding_size: int = 64
    hidden_sizes: list[int] | tuple[int, ...] = (256, 512, 1024, 2048)
    depths: list[int] | tuple[int, ...] = (3, 4, 6, 3)
    layer_type: str = "bottleneck"
    hidden_act: str = "relu"
    downsample_in_first_stage: bool = False
    downsample_in_bottleneck: bool = False

    def __post_init__(self) -> None:
        self.positive("num_channels", "embedding_size")
        for name in ("hidden_sizes", "depths"):
            value = getattr(self, name)
            if not value or not all(type(n) is int and 1 <= n <= 100_000 for n in value):
                raise ConfigError(f"{name} = {value!r} is not a list of numbers from 1 to 100000")
        if len(self.hidden_sizes) != len(self.depths) or sum(self.depths) > 10_000:
            raise ConfigError(f"hidden_sizes = {self.hidden_sizes!r} and depths = {self.depths!r} do not fit together")
        if self.layer_type not in LAYER_TYPES:
            guess = nearest(self.layer_type, LAYER_TYPES)
            raise UnsupportedError(f"layer_type = {self.layer_type!r} is not one of {LAYER_TYPES}{guess}")
        self.outputs  # noqa: B018  # refuses what it cannot read

    @property
    def states(self) -> int:
        return len(self.depths) + 1

    @property
    def hidden_size(self) -> int:
        """The width of the last stage."""
        return self.hidden_sizes[-1]

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage: each stage but the first halves rows and columns."""
        side = 4 * 2 ** (len(self.depths) - 1 + self.downsample_in_first_stage)
        return side, side
