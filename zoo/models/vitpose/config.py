"""The configs of a ViTPose checkpoint, and of the ViT that it looks through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...config import Config, read_backbone
from ...errors import ConfigError
from ..vit.backbone import BackboneConfig
from ..vit.config import VisionConfig

PADDING = 2  # pixels around an image, before it is cut into patches
BACKBONE: dict[str, Any] = {"out_indices": [4]}  # where config.json has none


@dataclass(frozen=True, kw_only=True)
class VitPoseBackboneConfig(BackboneConfig, VisionConfig):
    model_type: str = "vitpose_backbone"
    image_size: int | list[int] | tuple[int, ...] = (256, 192)
    patch_size: int | list[int] | tuple[int, ...] = (16, 16)
    mlp_ratio: int = 4
    num_experts: int = 1
    part_features: int = 256
    qkv_bias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("mlp_ratio", "num_experts", "part_features")
        (Y, X), (y, x) = self.image, self.patch
        if ((Y + 2 * PADDING) // y, (X + 2 * PADDING) // x) != self.grid:
            raise ConfigError(
                f"patch_size = {self.patch_size}: with {PADDING} pixels around them, images of image_size = "
                f"{self.image_size} have other patches than {self.grid[0]} x {self.grid[1]}"
            )
        if self.num_experts > 1 and self.part_features >= self.hidden_size:
            raise ConfigError(f"part_features = {self.part_features}, not below hidden_size = {self.hidden_size}")
        _ = self.outputs

    @property
    def mlp_width(self) -> int:
        """F."""
        return self.hidden_size * self.mlp_ratio


@dataclass(frozen=True, kw_only=True)
class VitPoseConfig(Config):
    model_type: str = "vitpose"
    backbone_config: dict[str, Any] | None = None
    scale_factor: int = 4
    use_simple_decoder: bool = True
    edges: list[Any] | None = None  # pairs of keypoints between which a drawing has a line

    def __post_init__(self) -> None:
        self.positive("scale_factor")
        _ = self.backbone
        for edge in self.edges or ():
            is_pair = isinstance(edge, list | tuple) and len(edge) == 2
            if not is_pair or not all(type(i) is int and 0 <= i < self.num_labels for i in edge):
                raise ConfigError(f"edges has {edge!r}, expected two numbers of keypoints, 0 ... {self.num_labels - 1}")

    @property
    def backbone(self) -> VitPoseBackboneConfig:
        return read_backbone(BACKBONE if self.backbone_config is None else self.backbone_config, VitPoseBackboneConfig)

    @property
    def num_channels(self) -> int:
        return self.backbone.num_channels

    @property
    def num_experts(self) -> int:
        """The data sets that the model was trained on, each with weights of its own."""
        return self.backbone.num_experts

    @property
    def patch(self) -> tuple[int, int]:
        """Height and width of a patch."""
        return self.backbone.patch

    @property
    def image(self) -> tuple[int, int]:
        """Height and width of the images of persons."""
        return self.backbone.image
