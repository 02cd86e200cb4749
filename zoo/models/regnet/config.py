"""The config of a RegNet checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import Config
from ...errors import ConfigError, UnsupportedError, nearest

LAYER_TYPES = ("x", "y")


@dataclass(frozen=True, kw_only=True)
class RegNetConfig(Config):
    model_type: str = "regnet"
    num_channels: int = 3
    embedding_size: int = 32
    hidden_sizes: list[int] | tuple[int, ...] = (128, 192, 512, 1088)
    depths: list[int] | tuple[int, ...] = (2, 6, 12, 2)
    groups_width: int = 64
    layer_type: str = "y"
    hidden_act: str = "relu"
    downsample_in_first_stage: bool = True

    def __post_init__(self) -> None:
        self.positive("num_channels", "embedding_size", "groups_width")
        for name in ("hidden_sizes", "depths"):
            value = getattr(self, name)
            if not value or not all(type(n) is int and 1 <= n <= 100_000 for n in value):
                raise ConfigError(f"{name} = {value!r:.200} is not a list of numbers from 1 to 100000")
        if len(self.hidden_sizes) != len(self.depths) or sum(self.depths) > 10_000:
            raise ConfigError(f"hidden_sizes = {self.hidden_sizes!r} and depths = {self.depths!r} do not fit together")
        for size in self.hidden_sizes:
            if size % self.groups(size):
                raise ConfigError(f"groups_width = {self.groups_width} makes {self.groups(size)} groups of {size}")
        if self.layer_type not in LAYER_TYPES:
            guess = nearest(self.layer_type, LAYER_TYPES)
            raise UnsupportedError(f"layer_type = {self.layer_type!r} is not one of {LAYER_TYPES}{guess}")

    def groups(self, width: int) -> int:
        """The groups of channels of a convolution of that width."""
        return max(1, width // self.groups_width)

    @property
    def hidden_size(self) -> int:
        """The width of the last stage."""
        return self.hidden_sizes[-1]

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage: each stage but the first halves rows and columns."""
        side = 2 ** (len(self.depths) + self.downsample_in_first_stage)
        return side, side
