"""The config of a Mask2Former checkpoint, and of the Swin or ResNet that it looks through."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import Config, errors_of, read_backbone
from ...errors import ConfigError, UnsupportedError, nearest
from ..deformable_detr.config import GROUPS, DeformableDetrConfig
from ..detr.config import DetrConfig
from ..resnet.config import ResNetConfig
from ..swin.config import SwinConfig

LEVELS, POINTS = 3, 4  # sizes of features that attention reads, and points of a head in each, whatever a config says
BACKBONES: dict[str, type[SwinConfig] | type[ResNetConfig]] = {"swin": SwinConfig, "resnet": ResNetConfig}
# What transformers takes where the file has no backbone_config.
DEFAULT_BACKBONE: dict[str, Any] = {"model_type": "swin", "depths": [2, 2, 18, 2], "drop_path_rate": 0.3}
DEFAULT_BACKBONE |= {"out_features": ["stage1", "stage2", "stage3", "stage4"]}


@dataclass(frozen=True, kw_only=True)
class Mask2FormerConfig(Config):
    aliases: ClassVar[Mapping[str, str]] = {"hidden_size": "hidden_dim", "num_hidden_layers": "decoder_layers"}
    model_type: str = "mask2former"
    backbone_config: dict[str, Any] | None = None
    feature_size: int = 256
    mask_feature_size: int = 256
    hidden_dim: int = 256
    encoder_feedforward_dim: int = 1024
    activation_function: str = "relu"
    encoder_layers: int = 6
    decoder_layers: int = 10
    num_attention_heads: int = 8
    dropout: int | float = 0.0
    dim_feedforward: int = 2048
    pre_norm: bool = False
    enforce_input_projection: bool = False
    common_stride: int = 4
    num_queries: int = 100
    feature_strides: list[int] | tuple[int, ...] = (4, 8, 16, 32)

    def __post_init__(self) -> None:
        self.positive("feature_size", "mask_feature_size", "hidden_dim", "encoder_feedforward_dim", "dim_feedforward")
        self.positive("encoder_layers", "decoder_layers", "num_attention_heads", "num_queries", "common_stride")
        self.fractions("dropout")
        self.divides("num_attention_heads", "hidden_dim")
        self.divides("num_attention_heads", "feature_size")
        if self.feature_size % GROUPS:
            raise ConfigError(f"feature_size = {self.feature_size} is not a multiple of {GROUPS}, the groups of a norm")
        if self.hidden_dim % 4:
            raise ConfigError(f"hidden_dim = {self.hidden_dim} is not a multiple of 4, which sines and cosines need")
        strides = self.feature_strides
        if not strides or not all(type(n) is int and 1 <= n <= 1 << 16 for n in strides):
            raise ConfigError(f"feature_strides = {strides!r} is not a list of numbers from 1 to {1 << 16}")
        if self.common_stride > min(strides[-LEVELS:]):
            raise ConfigError(
                f"common_stride = {self.common_stride} is above the strides {list(strides[-LEVELS:])} of the features "
                "that attention reads"
            )
        self.require(backbone=None)
        if len(self.network.outputs) < LEVELS:
            raise ConfigError(
                f"backbone_config names {len(self.network.outputs)} states, out_features = "
                f"{self.network.out_features!r}: expected {LEVELS} or more"
            )

    @property
    def network(self) -> SwinConfig | ResNetConfig:
        """The backbone's config."""
        raw = DEFAULT_BACKBONE if self.backbone_config is None else self.backbone_config
        kind = raw.get("model_type", "swin")
        if kind not in BACKBONES:
            with errors_of("backbone_config"):
                known = f"only {' and '.join(BACKBONES)} are{nearest(str(kind), BACKBONES)}"
                raise UnsupportedError(f"model_type = {kind!r} is not implemented, {known}")
        return read_backbone(raw, BACKBONES[kind])

    @property
    def widths(self) -> list[int]:
        """The channels of each of the backbone's features."""
        net = self.network
        if isinstance(net, ResNetConfig):
            return [[net.embedding_size, *net.hidden_sizes][i] for i in net.outputs]
        return [net.embed_dim * 2 ** max(i - 1, 0) for i in net.outputs]

    @property
    def larger_levels(self) -> int:
        """The number of features, the largest, that masks read and attention does not."""
        return int(math.log2(min(self.feature_strides[-LEVELS:])) - math.log2(self.common_stride))

    @property
    def pixel_encoder(self) -> DeformableDetrConfig:
        """The layers that features of several sizes go through, as those of Deformable DETR."""
        return DeformableDetrConfig(
            d_model=self.feature_size,
            encoder_layers=self.encoder_layers,
            encoder_ffn_dim=self.encoder_feedforward_dim,
            encoder_attention_heads=self.num_attention_heads,
            decoder_attention_heads=self.num_attention_heads,
            encoder_n_points=POINTS,
            num_feature_levels=LEVELS,
            dropout=self.dropout,
            activation_dropout=self.dropout,
        )

    @property
    def attention(self) -> DetrConfig:
        """What attention of queries to each other, and positions of features, read of a config, as those of DETR."""
        heads = self.num_attention_heads
        return DetrConfig(
            d_model=self.hidden_dim,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            dropout=self.dropout,
            attention_dropout=self.dropout,
        )
