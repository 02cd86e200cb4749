"""The config of a Depth Anything checkpoint, and of the DINOv2 that it looks through."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...config import Config, read_backbone
from ...errors import ConfigError, UnsupportedError, nearest
from ..dinov2.config import Dinov2Config

DINOV2: dict[str, Any] = {"image_size": 518, "hidden_size": 384, "num_attention_heads": 6}
DINOV2 |= {"out_indices": [9, 10, 11, 12], "reshape_hidden_states": False}
KINDS = {"relative": "relu", "metric": "sigmoid"}  # kind of depth -> the last activation
FACTORS = (4, 2, 1, 0.5)


@dataclass(frozen=True, kw_only=True)
class DepthAnythingConfig(Config):
    model_type: str = "depth_anything"
    backbone_config: dict[str, Any] | None = None
    patch_size: int = 14
    reassemble_hidden_size: int = 384
    reassemble_factors: list[int | float] | tuple[int | float, ...] = FACTORS
    neck_hidden_sizes: list[int] | tuple[int, ...] = (48, 96, 192, 384)
    fusion_hidden_size: int = 64
    head_in_index: int = -1
    head_hidden_size: int = 32
    depth_estimation_type: str = "relative"
    max_depth: int | float | None = 1

    def __post_init__(self) -> None:
        self.positive("patch_size", "reassemble_hidden_size", "fusion_hidden_size", "head_hidden_size")
        self.above_zero("max_depth")
        if self.depth_estimation_type not in KINDS:
            guess = nearest(self.depth_estimation_type, KINDS)
            raise ConfigError(
                f"depth_estimation_type = {self.depth_estimation_type!r}, expected {' or '.join(KINDS)}{guess}"
            )
        widths, factors, maps = self.neck_hidden_sizes, self.reassemble_factors, len(self.dinov2.outputs)
        if len(widths) != maps or not all(type(n) is int and 0 < n <= 100_000 for n in widths):
            raise ConfigError(
                f"neck_hidden_sizes = {widths!r}, expected a number above 0 for each of {maps} hidden states"
            )
        if len(factors) != maps or not all(f in FACTORS for f in factors):
            raise UnsupportedError(f"reassemble_factors = {factors!r}, expected one of {FACTORS} for each of {maps}")
        if not -maps <= self.head_in_index < maps:
            raise ConfigError(f"head_in_index = {self.head_in_index} is out of range, expected {-maps} ... {maps - 1}")

    @property
    def dinov2(self) -> Dinov2Config:
        """The backbone's config, which gives images of features."""
        found = read_backbone(DINOV2 if self.backbone_config is None else self.backbone_config, Dinov2Config)
        if found.reshape_hidden_states:
            raise UnsupportedError("backbone_config: reshape_hidden_states = True is not implemented, only False is")
        if found.hidden_size != self.reassemble_hidden_size or found.patch != (self.patch_size, self.patch_size):
            raise ConfigError(
                f"backbone_config: hidden_size = {found.hidden_size}, patch_size = {found.patch_size}, but "
                f"reassemble_hidden_size = {self.reassemble_hidden_size}, patch_size = {self.patch_size}"
            )
        return replace(found, reshape_hidden_states=True)

    @property
    def num_channels(self) -> int:
        return self.dinov2.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        """Height and width of a patch."""
        return self.dinov2.patch

    @property
    def image(self) -> tuple[int, int]:
        """Height and width of the images that the model was trained on."""
        return self.dinov2.image
