"""The configs of Florence-2: of DaViT, which reads images, and of BART beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from ...config import Config, read_part
from ...errors import ConfigError, UnsupportedError
from ..bart.config import BartConfig

C = TypeVar("C", bound="Florence2Config")


@dataclass(frozen=True, kw_only=True)
class Florence2VisionConfig(Config):
    model_type: str = "florence_vision"
    in_channels: int = 3
    depths: list[int] | tuple[int, ...] = (1, 1, 9, 1)
    patch_size: list[int] | tuple[int, ...] = (7, 3, 3, 3)
    patch_stride: list[int] | tuple[int, ...] = (4, 2, 2, 2)
    patch_padding: list[int] | tuple[int, ...] = (3, 1, 1, 1)
    patch_prenorm: list[bool] | tuple[bool, ...] = (False, True, True, True)
    embed_dim: list[int] | tuple[int, ...] = (128, 256, 512, 1024)
    num_heads: list[int] | tuple[int, ...] = (4, 8, 16, 32)
    num_groups: list[int] | tuple[int, ...] = (4, 8, 16, 32)
    window_size: int = 12
    drop_path_rate: float = 0.1
    mlp_ratio: float = 4.0
    qkv_bias: bool = True
    activation_function: str = "gelu"
    projection_dim: int = 1024
    max_temporal_embeddings: int = 100
    max_position_embeddings: int = 50

    def __post_init__(self) -> None:
        self.positive("in_channels", "window_size", "projection_dim", "max_temporal_embeddings")
        self.positive("max_position_embeddings")
        self.fractions("drop_path_rate")
        self.require(in_channels=3)
        stages = len(self.embed_dim)
        for name in ("depths", "patch_size", "patch_stride", "embed_dim", "num_heads", "num_groups"):
            self._check_list(name, stages, 1)
        self._check_list("patch_padding", stages, 0)
        if len(self.patch_prenorm) != stages or not all(isinstance(one, bool) for one in self.patch_prenorm):
            raise ConfigError(f"patch_prenorm = {self.patch_prenorm!r}, expected {stages} of true and false")
        for width, heads, groups in zip(self.embed_dim, self.num_heads, self.num_groups, strict=True):
            if width % heads or width % groups:
                raise ConfigError(f"num_heads = {heads} and num_groups = {groups} do not divide embed_dim = {width}")
        if not 0 < self.mlp_ratio <= 100_000:
            raise ConfigError(f"mlp_ratio = {self.mlp_ratio}, expected a number above 0, and at most 100000")
        if self.mlp_ratio * min(self.embed_dim) < 1:
            found = f"mlp_ratio = {self.mlp_ratio} of embed_dim = {self.embed_dim}"
            raise ConfigError(f"{found} leaves no features, expected one or more")

    def _check_list(self, name: str, count: int, least: int) -> None:
        value = getattr(self, name)
        if not value or len(value) != count or not all(type(n) is int and least <= n <= 10_000 for n in value):
            raise ConfigError(f"{name} = {value!r} is not a list of {count} numbers from {least} to 10000")
        if count > 16:
            raise ConfigError(f"{name} has {count} stages, expected 16 at most")

    @property
    def num_channels(self) -> int:
        return self.in_channels

    @property
    def image(self) -> tuple[int, int]:
        """The size of images that its processor makes, which no field says."""
        return 768, 768

    @property
    def patch(self) -> tuple[int, int]:
        """Height and width in pixels of a patch of the last stage."""
        return math.prod(self.patch_stride), math.prod(self.patch_stride)

    def grid_of(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns in the last stage, of an image of a size."""
        for size, stride, padding in zip(self.patch_size, self.patch_stride, self.patch_padding, strict=True):
            height, width = ((n + 2 * padding - size) // stride + 1 for n in (height, width))
        return height, width


@dataclass(frozen=True, kw_only=True)
class Florence2Config(Config):
    """`vision_config` and `text_config` are configs."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "vision_config": Florence2VisionConfig,
        "text_config": BartConfig,
    }
    model_type: str = "florence2"
    image_token_id: int = 51289
    vision_config: Florence2VisionConfig
    text_config: BartConfig

    def __post_init__(self) -> None:
        if self.vision_config.projection_dim != self.text_config.d_model:
            raise ConfigError(
                f"vision_config.projection_dim = {self.vision_config.projection_dim}, and text_config.d_model = "
                f"{self.text_config.d_model}: expected the same"
            )
        if not 0 <= self.image_token_id < self.text_config.vocab_size:
            raise ConfigError(
                f"image_token_id = {self.image_token_id} is out of range, expected 0 ... "
                f"{self.text_config.vocab_size - 1}"
            )

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        given = {name: {} if raw.get(name) is None else raw[name] for name in cls.part_classes}
        if isinstance(text := given["text_config"], dict) and text.get("model_type", "bart") != "bart":
            raise UnsupportedError(f"text_config is of the model_type {text['model_type']!r}, expected bart")
        parts = {name: read_part(name, given[name], kind) for name, kind in cls.part_classes.items()}
        return super().from_dict({**raw, **parts})

    @property
    def vocab_size(self) -> int:
        return self.text_config.vocab_size

    @property
    def decoder(self) -> BartConfig:
        """The decoder's config, by the name that tasks know."""
        return self.text_config
