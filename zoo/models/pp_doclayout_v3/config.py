"""The config of a PP-DocLayoutV3 checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import read_backbone
from ...errors import ConfigError, UnsupportedError
from ..hgnet_v2.config import HGNetV2Config
from ..rt_detr_v2.config import Numbers, RTDetrConfig

STRIDES = (8, 16, 32)  # pixels of a place of the features of each size


@dataclass(frozen=True, kw_only=True)
class PPDocLayoutV3Config(RTDetrConfig):
    aliases: ClassVar[Mapping[str, str]] = RTDetrConfig.aliases
    model_type: str = "pp_doclayout_v3"
    feat_strides: Numbers = STRIDES
    mask_feature_channels: Numbers = (64, 64)
    x4_feat_dim: int = 128
    num_prototypes: int = 32
    mask_enhanced: bool = True
    global_pointer_head_size: int = 64
    gp_dropout_value: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("num_prototypes", "global_pointer_head_size")
        self.fractions("gp_dropout_value")
        self.require(learn_initial_query=False, tie_word_embeddings=True)
        if tuple(self.feat_strides) != STRIDES:
            raise UnsupportedError(f"feat_strides = {self.feat_strides!r} is not implemented, expected {list(STRIDES)}")
        widths = self.mask_feature_channels
        if len(widths) != 2 or not all(type(n) is int and 1 <= n <= 100_000 for n in widths):
            raise ConfigError(f"mask_feature_channels = {widths!r:.100}, expected two numbers of channels")
        if self.x4_feat_dim != self.first_width:
            raise ConfigError(f"x4_feat_dim = {self.x4_feat_dim}, expected the backbone's {self.first_width}")

    @property
    def network(self) -> HGNetV2Config:
        """The backbone's config."""
        stages = {} if self.backbone_config else {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
        network = read_backbone({**stages, **(self.backbone_config or {})}, HGNetV2Config)
        if network.outputs != (1, 2, 3, 4):
            raise ConfigError(f"backbone_config: out_features = {network.out_features}, expected stage1 to stage4")
        return network

    @property
    def first_width(self) -> int:
        """The channels of the first stage, a quarter of the image: masks are made of it."""
        return self.network.widths[1]

    @property
    def feature_widths(self) -> tuple[int, ...]:
        return self.network.widths[2:]

    @property
    def denoised_labels(self) -> int:
        return self.num_labels
