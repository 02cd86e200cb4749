"""The config of a Deformable DETR checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import ConfigError
from ..detr.config import DetrConfig

GROUPS = 32  # channels of projected features are normalised in so many groups


@dataclass(frozen=True, kw_only=True)
class DeformableDetrConfig(DetrConfig):
    aliases: ClassVar[Mapping[str, str]] = {"hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads"}
    model_type: str = "deformable_detr"
    num_queries: int = 300
    encoder_ffn_dim: int = 1024
    decoder_ffn_dim: int = 1024
    num_feature_levels: int = 4
    encoder_n_points: int = 4
    decoder_n_points: int = 4
    two_stage: bool = False
    two_stage_num_proposals: int = 300
    with_box_refine: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("num_feature_levels", "encoder_n_points", "decoder_n_points", "two_stage_num_proposals")
        if self.d_model % GROUPS:
            raise ConfigError(f"d_model = {self.d_model} is not a multiple of {GROUPS}, the groups of a norm")
        if self.two_stage and not self.with_box_refine:
            raise ConfigError("two_stage = True needs with_box_refine = True")
        levels, read = self.num_feature_levels, len(self.resnet.outputs)
        if levels < read or levels > 64:
            raise ConfigError(
                f"num_feature_levels = {levels}, expected 64 or fewer, and the {read} of the backbone or more"
            )

    @property
    def heads_of_boxes(self) -> int:
        """The heads in the file: one for each layer of the decoder, and of two stages one for the proposals."""
        return self.decoder_layers + self.two_stage

    @property
    def max_objects(self) -> int:
        """The most objects of an image, as in transformers: pairs of a query and a label."""
        return 100

    def _timm_options(self) -> dict[str, Any]:
        stages = [2, 3, 4] if self.num_feature_levels > 1 else [4]
        return {"out_indices": stages, **super()._timm_options()}
