"""The configs of a PP-DocLayoutV2 checkpoint, and of its network for the order of reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...config import Config, read_backbone, read_part
from ...errors import ConfigError
from ..hgnet_v2.config import HGNetV2Config
from ..roberta.config import RobertaConfig
from ..rt_detr_v2.config import RTDetrConfig

EDGE = 1000  # corners of regions are whole numbers from 0 to it


@dataclass(frozen=True, kw_only=True)
class ReadingOrderConfig(RobertaConfig):
    model_type: str = ""
    vocab_size: int = 4
    hidden_size: int = 512
    num_hidden_layers: int = 6
    num_attention_heads: int = 8
    intermediate_size: int = 2048
    max_position_embeddings: int = 514
    type_vocab_size: int = 1
    layer_norm_eps: float = 1e-5
    max_2d_position_embeddings: int = 1024
    coordinate_size: int = 171
    shape_size: int = 170
    num_classes: int = 20
    start_token_id: int = 0
    end_token_id: int = 2
    pred_token_id: int = 3
    relation_bias_embed_dim: int = 16
    relation_bias_theta: int | float = 10000
    relation_bias_scale: int | float = 100
    rel_2d_pos_bins: int = 64
    global_pointer_head_size: int = 64
    gp_dropout_value: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("coordinate_size", "shape_size", "num_classes", "relation_bias_embed_dim", "rel_2d_pos_bins")
        self.positive("global_pointer_head_size")
        self.above_zero("relation_bias_theta")
        self.fractions("gp_dropout_value")
        self.require(has_relative_attention_bias=False, has_spatial_attention_bias=True, is_decoder=False)
        if self.relation_bias_embed_dim % 2:
            raise ConfigError(f"relation_bias_embed_dim = {self.relation_bias_embed_dim} is odd: no sines and cosines")
        for name in ("start_token_id", "end_token_id", "pred_token_id"):
            if not 0 <= getattr(self, name) < self.vocab_size:
                raise ConfigError(f"{name} = {getattr(self, name)} is not in 0 ... vocab_size - 1")
        if self.max_2d_position_embeddings <= EDGE:
            raise ConfigError(f"max_2d_position_embeddings = {self.max_2d_position_embeddings}, expected above {EDGE}")


@dataclass(frozen=True, kw_only=True)
class PPDocLayoutV2Config(RTDetrConfig):
    aliases: ClassVar[Mapping[str, str]] = RTDetrConfig.aliases
    part_classes: ClassVar[Mapping[str, type[Config]]] = {"reading_order_config": ReadingOrderConfig}
    model_type: str = "pp_doclayout_v2"
    class_thresholds: list[int | float] | tuple[int | float, ...] | None = None
    class_order: list[int] | tuple[int, ...] | None = None
    reading_order_config: ReadingOrderConfig = field(default_factory=ReadingOrderConfig)

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> PPDocLayoutV2Config:
        inner = raw.get("reading_order_config")
        part = read_part("reading_order_config", {} if inner is None else inner, ReadingOrderConfig)
        return super().from_dict({**raw, "reading_order_config": part})

    def __post_init__(self) -> None:
        super().__post_init__()
        inner, longest = self.reading_order_config, self.num_queries + 2
        for name in ("class_thresholds", "class_order"):
            if len(getattr(self, name) or ()) != self.num_labels:
                raise ConfigError(f"{name} has not a number for each of {self.num_labels} labels")
        if not all(0 <= i < inner.num_classes for i in self.class_order or ()):
            raise ConfigError(
                f"class_order has numbers out of 0 ... {inner.num_classes - 1}, the classes' of its order"
            )
        if longest + inner.pad_token_id >= inner.max_position_embeddings:
            raise ConfigError(
                f"num_queries = {self.num_queries}: reading_order_config has only max_position_embeddings = "
                f"{inner.max_position_embeddings}"
            )

    @property
    def network(self) -> HGNetV2Config:
        """The backbone's config."""
        stages = {} if self.backbone_config else {"out_features": ["stage2", "stage3", "stage4"]}
        return read_backbone({**stages, **(self.backbone_config or {})}, HGNetV2Config)

    @property
    def feature_widths(self) -> tuple[int, ...]:
        return tuple(self.network.widths[i] for i in self.network.outputs)

    @property
    def denoised_labels(self) -> int:
        return self.num_labels
