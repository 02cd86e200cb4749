"""The config of a Swin v2 checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ..swin.config import SwinConfig


@dataclass(frozen=True, kw_only=True)
class Swinv2Config(SwinConfig):
    """pretrained_window_sizes: of each stage the window that its distances are scaled by, 0 for its own."""

    aliases: ClassVar[Mapping[str, str]] = {"num_attention_heads": "num_heads"}
    model_type: str = "swinv2"
    pretrained_window_sizes: list[int] | tuple[int, ...] = (0, 0, 0, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = self.pretrained_window_sizes
        if len(sizes) < len(self.depths) or not all(type(n) is int and (n == 0 or 2 <= n <= 4096) for n in sizes):
            raise ConfigError(
                f"pretrained_window_sizes = {sizes!r}, expected for each of {len(self.depths)} stages 0, or a window "
                "of at least 2 patches"
            )
        if self.image[0] // self.patch[0] >> (len(self.depths) - 1) < 1:
            raise ConfigError(
                f"image_size = {self.image_size} leaves no patch for the last of depths = {self.depths!r}"
            )

    def window(self, stage: int, shift: int) -> tuple[int, int]:
        """The size of a stage's windows and how far they are shifted: by the rows of the config's own images, whatever
        size an image has.
        """
        rows = self.image[0] // self.patch[0] // 2**stage
        size = min(rows, self.window_size)
        return size, 0 if rows <= size else shift
