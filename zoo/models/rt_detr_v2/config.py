"""The configs of RT-DETR checkpoints, and of the ResNet that they look through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import MAX_INTEGER, Config, read_backbone
from ...errors import ConfigError, UnsupportedError
from ..resnet.config import ResNetConfig

Numbers = list[int] | tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class RTDetrResNetConfig(ResNetConfig):
    model_type: str = "rt_detr_resnet"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.embedding_size % 2:
            raise ConfigError(
                f"embedding_size = {self.embedding_size} is odd, and the first convolutions have half of it"
            )
        if self.layer_type == "basic" and self.embedding_size != self.hidden_sizes[0]:
            raise ConfigError(f"embedding_size = {self.embedding_size} is not hidden_sizes[0] = {self.hidden_sizes[0]}")
        self.outputs  # noqa: B018  # refuses what is no stage

    @property
    def outputs(self) -> tuple[int, ...]:
        """The stages whose features are read: 1 is the first."""
        last = len(self.depths)
        if self.out_features is not None:
            named = {f"stage{i}": i for i in range(1, last + 1)}
            found = [named.get(name, 0) for name in self.out_features]
        else:
            found = [i % (last + 1) for i in self.out_indices or (last,)]
        if found != sorted(set(found)) or not found or found[0] < 1:
            raise ConfigError(f"out_features = {self.out_features}, out_indices = {self.out_indices} are not stages")
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class RTDetrV2Config(Config):
    aliases: ClassVar[Mapping[str, str]] = {"hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads"}
    model_type: str = "rt_detr_v2"
    backbone_config: dict[str, Any] | None = None
    layer_norm_eps: float = 1e-5
    batch_norm_eps: float = 1e-5
    encoder_hidden_dim: int = 256
    encoder_in_channels: Numbers = (512, 1024, 2048)
    encoder_layers: int = 1
    encoder_ffn_dim: int = 1024
    encoder_attention_heads: int = 8
    encode_proj_layers: Numbers = (2,)
    positional_encoding_temperature: int | float = 10000
    encoder_activation_function: str = "gelu"
    activation_function: str = "silu"
    hidden_expansion: float = 1.0
    d_model: int = 256
    num_queries: int = 300
    decoder_in_channels: Numbers = (256, 256, 256)
    decoder_ffn_dim: int = 1024
    num_feature_levels: int = 3
    decoder_n_points: int = 4
    decoder_layers: int = 6
    decoder_attention_heads: int = 8
    decoder_activation_function: str = "relu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    num_denoising: int = 100
    learn_initial_query: bool = False
    decoder_offset_scale: float = 0.5

    def __post_init__(self) -> None:
        self.positive("encoder_hidden_dim", "encoder_ffn_dim", "encoder_attention_heads", "d_model", "num_queries")
        self.positive("decoder_ffn_dim", "num_feature_levels", "decoder_layers", "decoder_attention_heads")
        self.check_points()
        self.fractions("dropout", "attention_dropout", "activation_dropout")
        self.above_zero("layer_norm_eps", "batch_norm_eps")
        self.divides("encoder_attention_heads", "encoder_hidden_dim")
        self.divides("decoder_attention_heads", "d_model")
        if self.encoder_hidden_dim % 4:
            raise ConfigError(
                f"encoder_hidden_dim = {self.encoder_hidden_dim} is not a multiple of 4, which the sines and cosines "
                "of two coordinates need"
            )
        if not 1 <= self.encoder_hidden_dim * self.hidden_expansion <= MAX_INTEGER:
            raise ConfigError(
                f"hidden_expansion = {self.hidden_expansion} of encoder_hidden_dim = {self.encoder_hidden_dim} is out "
                f"of range, expected 1 ... {MAX_INTEGER}"
            )
        widths = self.feature_widths
        if tuple(self.encoder_in_channels) != widths:
            raise ConfigError(f"encoder_in_channels = {self.encoder_in_channels!r}, the backbone gives {list(widths)}")
        levels = self.num_feature_levels
        if tuple(self.decoder_in_channels) != (self.encoder_hidden_dim,) * len(widths) or levels != len(widths):
            raise UnsupportedError(
                f"decoder_in_channels = {self.decoder_in_channels!r}, num_feature_levels = {levels}: only "
                f"{len(widths)} levels, as the backbone has, of encoder_hidden_dim = {self.encoder_hidden_dim}"
            )
        if not all(type(i) is int and 0 <= i < len(widths) for i in self.encode_proj_layers):
            raise ConfigError(
                f"encode_proj_layers = {self.encode_proj_layers!r} are not all in 0 ... {len(widths) - 1}"
            )
        self.require(
            hidden_size=self.d_model,
            num_attention_heads=self.encoder_attention_heads,
            decoder_n_levels=levels,
            decoder_method="default",
            eval_size=None,
            normalize_before=False,
        )

    def check_points(self) -> None:
        """Refuse numbers of points that no head can have."""
        self.positive("decoder_n_points")

    @property
    def network(self) -> Any:
        """The backbone's config."""
        return read_backbone({"out_indices": [2, 3, 4], **(self.backbone_config or {})}, RTDetrResNetConfig)

    @property
    def feature_widths(self) -> tuple[int, ...]:
        """The channels of the backbone's features of each size."""
        return tuple(self.network.hidden_sizes[i - 1] for i in self.network.outputs)

    @property
    def denoised_labels(self) -> int:
        """The rows of the table that is for training, of which one is for no object; 0 without the table."""
        return self.num_labels + 1 if self.num_denoising > 0 else 0


@dataclass(frozen=True, kw_only=True)
class RTDetrConfig(RTDetrV2Config):
    model_type: str = "rt_detr"
