"""The config of a Swin checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ..vit.backbone import BackboneConfig
from ..vit.config import PatchesConfig


@dataclass(frozen=True, kw_only=True)
class SwinConfig(BackboneConfig, PatchesConfig):
    aliases: ClassVar[Mapping[str, str]] = {"num_attention_heads": "num_heads"}
    model_type: str = "swin"
    patch_size: int | list[int] | tuple[int, ...] = 4
    num_channels: int = 3
    embed_dim: int = 96
    depths: list[int] | tuple[int, ...] = (2, 2, 6, 2)
    num_heads: list[int] | tuple[int, ...] = (3, 6, 12, 24)
    window_size: int = 7
    mlp_ratio: float = 4.0
    qkv_bias: bool = True
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    drop_path_rate: float = 0.1
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-5
    encoder_stride: int = 32

    def __post_init__(self) -> None:
        self.positive("num_channels", "embed_dim", "window_size", "encoder_stride")
        self.fractions("hidden_dropout_prob", "attention_probs_dropout_prob", "drop_path_rate")
        self.above_zero("layer_norm_eps")
        for name in ("depths", "num_heads"):
            value = getattr(self, name)
            if not value or not all(type(n) is int and 1 <= n <= 10_000 for n in value):
                raise ConfigError(f"{name} = {value!r} is not a list of numbers from 1 to 10000")
        if len(self.depths) != len(self.num_heads) or len(self.depths) > 16:
            raise ConfigError(f"depths = {self.depths!r} and num_heads = {self.num_heads!r} do not fit together")
        for i, heads in enumerate(self.num_heads):
            if self.embed_dim * 2**i % heads:
                raise ConfigError(f"num_heads[{i}] = {heads} does not divide embed_dim = {self.embed_dim} x {2**i}")
        if not 0 < self.mlp_ratio <= 100_000 or self.layer_norm_eps <= 0:
            raise ConfigError(
                f"mlp_ratio = {self.mlp_ratio}, layer_norm_eps = {self.layer_norm_eps}: expected numbers above 0, and "
                "a ratio of at most 100000"
            )
        if self.mlp_ratio * self.embed_dim < 1:
            found = f"mlp_ratio = {self.mlp_ratio} of embed_dim = {self.embed_dim}"
            raise ConfigError(f"{found} leaves no features, expected one or more")
        for name in ("image_size", "patch_size"):
            self._pair(name)
        self.require(use_absolute_embeddings=False)

    @property
    def states(self) -> int:
        return len(self.depths) + 1

    @property
    def hidden_size(self) -> int:
        """The width of the last stage."""
        return self.embed_dim * 2 ** (len(self.depths) - 1)
