"""The config of a Grounding DINO checkpoint, and of the Swin and the BERT that it looks and reads through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from ...config import Config, errors_of, read_backbone, read_part
from ...errors import ConfigError, UnsupportedError, nearest
from ..bert.config import BertConfig
from ..deformable_detr.config import GROUPS
from ..swin.config import SwinConfig

C = TypeVar("C", bound="GroundingDinoConfig")
DEFAULT_BACKBONE = {"out_indices": [2, 3, 4]}
POSITIONS = ("sine", "learned")


@dataclass(frozen=True, kw_only=True)
class GroundingDinoConfig(Config):
    aliases: ClassVar[Mapping[str, str]] = {"hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads"}
    part_classes: ClassVar[Mapping[str, type[Config]]] = {"text_config": BertConfig}
    model_type: str = "grounding-dino"
    backbone_config: dict[str, Any] | None = None
    text_config: BertConfig = field(default_factory=BertConfig)
    num_queries: int = 900
    encoder_layers: int = 6
    encoder_ffn_dim: int = 2048
    encoder_attention_heads: int = 8
    decoder_layers: int = 6
    decoder_ffn_dim: int = 2048
    decoder_attention_heads: int = 8
    activation_function: str = "relu"
    d_model: int = 256
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    position_embedding_type: str = "sine"
    num_feature_levels: int = 4
    encoder_n_points: int = 4
    decoder_n_points: int = 4
    max_text_len: int = 256
    text_enhancer_dropout: float = 0.0
    fusion_droppath: float = 0.1
    fusion_dropout: float = 0.0
    decoder_bbox_embed_share: bool = True
    positional_embedding_temperature: int | float = 20
    layer_norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        sizes = ("num_queries", "encoder_layers", "encoder_ffn_dim", "decoder_layers", "decoder_ffn_dim", "d_model")
        heads = ("encoder_attention_heads", "decoder_attention_heads")
        self.positive(*sizes, *heads, "num_feature_levels", "encoder_n_points", "decoder_n_points", "max_text_len")
        self.fractions("dropout", "attention_dropout", "activation_dropout")
        self.fractions("text_enhancer_dropout", "fusion_droppath", "fusion_dropout")
        self.above_zero("layer_norm_eps", "positional_embedding_temperature")
        for name in heads:
            self.divides(name, "d_model")
        half = self.encoder_attention_heads // 2
        if not half or self.d_model % half or self.encoder_ffn_dim // 2 % half or self.encoder_ffn_dim < 2:
            raise ConfigError(
                f"encoder_attention_heads = {self.encoder_attention_heads}: half of them do not divide d_model = "
                f"{self.d_model} and half of encoder_ffn_dim = {self.encoder_ffn_dim}"
            )
        if self.d_model % GROUPS:
            raise ConfigError(f"d_model = {self.d_model} is not a multiple of {GROUPS}, the groups of a norm")
        if (kind := self.position_embedding_type) not in POSITIONS:
            raise UnsupportedError(
                f"position_embedding_type = {kind!r}, zoo has {', '.join(POSITIONS)}{nearest(kind, POSITIONS)}"
            )
        levels, read = self.num_feature_levels, len(self.swin.outputs)
        if levels < read or levels > 64:
            raise ConfigError(
                f"num_feature_levels = {levels}, expected 64 or fewer, and the {read} of the backbone or more"
            )
        # transformers has no other code for these, but for query_dim = 5, which is the same as 4.
        self.require(embedding_init_target=True, two_stage=True, query_dim=4, two_stage_bbox_embed_share=False)
        with errors_of("text_config"):
            self.text_config.require(is_decoder=False, add_cross_attention=False, model_type="bert")

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        text = raw.get("text_config")
        return super().from_dict(
            {**raw, "text_config": read_part("text_config", {} if text is None else text, BertConfig)}
        )

    @property
    def swin(self) -> SwinConfig:
        """The backbone's config."""
        return read_backbone(DEFAULT_BACKBONE if self.backbone_config is None else self.backbone_config, SwinConfig)
