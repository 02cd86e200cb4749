"""The config of an RF-DETR checkpoint, and of the DINOv2 that it looks through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...config import MAX_INTEGER, Config, read_backbone
from ...errors import ConfigError
from ..dinov2.config import Dinov2Config

# What transformers takes where the file has no backbone_config.
DEFAULT_BACKBONE = {"num_attention_heads": 6, "hidden_size": 384, "image_size": 518}
DEFAULT_BACKBONE |= {"out_features": ["stage2", "stage5", "stage8", "stage11"]}


@dataclass(frozen=True, kw_only=True)
class RfDetrDinov2Config(Dinov2Config):
    model_type: str = "rf_detr_dinov2"
    num_windows: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("num_windows")
        if self.patch[0] != self.patch[1] or self.grid[0] != self.grid[1]:
            raise ConfigError(f"image_size = {self.image_size}, patch_size = {self.patch_size}: expected squares")
        self.require(use_swiglu_ffn=False, reshape_hidden_states=True)
        self.outputs  # noqa: B018  # refuses what it cannot read

    def sees_windows(self, layer: int) -> bool:
        """True if a layer's attention stays in windows: up to the last stage that is read, all but those of its number
        (not the layer that makes a stage, which is the one before).
        """
        return layer <= self.outputs[-1] and layer not in self.outputs


@dataclass(frozen=True, kw_only=True)
class RfDetrConfig(Config):
    model_type: str = "rf_detr"
    backbone_config: dict[str, Any] | None = None
    hidden_expansion: float = 0.5
    c2f_num_blocks: int = 3
    activation_function: str = "silu"
    dropout: float = 0.1
    decoder_ffn_dim: int = 2048
    decoder_n_points: int = 4
    decoder_layers: int = 3
    decoder_self_attention_heads: int = 8
    decoder_cross_attention_heads: int = 16
    decoder_activation_function: str = "relu"
    num_queries: int = 300
    attention_bias: bool = True
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    group_detr: int = 13
    d_model: int = 256
    layer_norm_eps: float = 1e-5
    num_feature_levels: int = 1
    mask_downsample_ratio: int = 4
    segmentation_head_activation_function: str = "gelu"
    intermediate_size: int = 1024

    def __post_init__(self) -> None:
        self.positive(
            "c2f_num_blocks", "decoder_ffn_dim", "decoder_n_points", "decoder_layers", "num_queries", "d_model"
        )
        self.positive(
            "decoder_self_attention_heads", "decoder_cross_attention_heads", "group_detr", "intermediate_size"
        )
        self.positive("mask_downsample_ratio")
        self.fractions("dropout", "attention_dropout", "activation_dropout")
        self.above_zero("layer_norm_eps")
        for name in ("decoder_self_attention_heads", "decoder_cross_attention_heads"):
            self.divides(name, "d_model")
        if self.d_model % 4:
            raise ConfigError(f"d_model = {self.d_model} is not a multiple of 4, which sines and cosines need")
        if not 1 <= self.d_model * self.hidden_expansion <= MAX_INTEGER:
            raise ConfigError(f"hidden_expansion = {self.hidden_expansion} of d_model = {self.d_model} is out of range")
        if self.num_queries * self.group_detr > MAX_INTEGER:
            raise ConfigError(f"num_queries = {self.num_queries} of group_detr = {self.group_detr} groups are too many")
        self.require(num_feature_levels=1, head_dim=self.d_model // self.decoder_self_attention_heads)
        self.network  # noqa: B018  # refuses what it cannot read

    @property
    def network(self) -> RfDetrDinov2Config:
        """The backbone's config."""
        return read_backbone(
            DEFAULT_BACKBONE if self.backbone_config is None else self.backbone_config, RfDetrDinov2Config
        )

    @property
    def inner(self) -> int:
        """The channels between the convolutions of the projector."""
        return int(self.d_model * self.hidden_expansion)
