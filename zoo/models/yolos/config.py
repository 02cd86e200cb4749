"""The config of a YOLOS checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..vit.config import ViTConfig


@dataclass(frozen=True, kw_only=True)
class YolosConfig(ViTConfig):
    model_type: str = "yolos"
    image_size: int | list[int] | tuple[int, ...] = (512, 864)
    qkv_bias: bool = True
    num_detection_tokens: int = 100
    use_mid_position_embeddings: bool = True
    class_cost: int | float = 1
    bbox_cost: int | float = 5
    giou_cost: int | float = 2
    bbox_loss_coefficient: int | float = 5
    giou_loss_coefficient: int | float = 2
    eos_coefficient: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("num_detection_tokens")
        self.require(auxiliary_loss=False)
        (height, width), (y, x) = self.image, self.patch
        if self.use_mid_position_embeddings and (height % y or width % x):
            raise ConfigError(
                f"image_size = {self.image_size} is no multiple of patch_size = {self.patch_size}, as "
                "use_mid_position_embeddings needs it"
            )
