"""The config of a ConvNeXt checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ..vit.backbone import BackboneConfig

Numbers = list[int] | tuple[int, ...]  # one for each stage


@dataclass(frozen=True, kw_only=True)
class ConvNextConfig(BackboneConfig):
    aliases: ClassVar[Mapping[str, str]] = {"num_hidden_layers": "num_stages"}
    model_type: str = "convnext"
    num_channels: int = 3
    patch_size: int = 4
    num_stages: int = 4
    hidden_sizes: Numbers = (96, 192, 384, 768)
    depths: Numbers = (3, 3, 9, 3)
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    layer_scale_init_value: float = 1e-6
    drop_path_rate: float = 0.0

    def __post_init__(self) -> None:
        self.positive("num_channels", "patch_size", "num_stages")
        self.fractions("drop_path_rate")
        self.above_zero("layer_norm_eps")
        for name in ("hidden_sizes", "depths"):
            value = getattr(self, name)
            if len(value) != self.num_stages or not all(type(n) is int and 0 < n <= 100_000 for n in value):
                raise ConfigError(f"{name} = {value!r}, expected {self.num_stages} numbers in 1 ... 100000")

    @property
    def states(self) -> int:
        return self.num_stages + 1

    @property
    def hidden_size(self) -> int:
        """The width of the last stage."""
        return self.hidden_sizes[-1]

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage: each stage but the first halves rows and columns."""
        side = self.patch_size * 2 ** (self.num_stages - 1)
        return side, side
