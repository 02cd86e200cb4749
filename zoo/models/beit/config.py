"""The config of a BEiT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import ConfigError
from ..vit.backbone import BackboneConfig
from ..vit.config import VisionConfig


@dataclass(frozen=True, kw_only=True)
class BeitConfig(BackboneConfig, VisionConfig):
    model_type: str = "beit"
    vocab_size: int = 8192
    use_mask_token: bool = False
    use_absolute_position_embeddings: bool = False
    use_relative_position_bias: bool = False
    use_shared_relative_position_bias: bool = False
    layer_scale_init_value: float = 0.1
    use_mean_pooling: bool = True
    pool_scales: list[int] | tuple[int, ...] = (1, 2, 3, 6)
    use_auxiliary_head: bool = True
    auxiliary_channels: int = 256
    auxiliary_num_convs: int = 1
    auxiliary_concat_input: bool = False
    add_fpn: bool = False
    reshape_hidden_states: bool = True
    drop_path_rate: float = 0.1
    auxiliary_loss_weight: float = 0.4
    semantic_loss_ignore_index: int = 255

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions("drop_path_rate")
        self.positive("vocab_size", "auxiliary_channels")
        if not 0 <= self.auxiliary_num_convs <= 100:
            raise ConfigError(f"auxiliary_num_convs = {self.auxiliary_num_convs} is out of range, expected 0 ... 100")
        if not all(type(s) is int and s >= 1 for s in self.pool_scales):
            raise ConfigError(f"pool_scales = {self.pool_scales!r} are not all sizes of 1 or more")
        if len(self.outputs) != 4 and self.add_fpn:
            raise ConfigError(f"add_fpn needs four out_indices, found {list(self.outputs)}")

    @property
    def given_indices(self) -> Any:
        return (
            self.extra.get("segmentation_indices") if self.out_indices is None else self.out_indices
        )  # its first name
