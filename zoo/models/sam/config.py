"""The configs of a SAM checkpoint: of the encoder of images, of prompts, of the decoder of masks, and of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from ...config import Config, read_part
from ...errors import ConfigError, UnsupportedError
from ..vit.config import PatchesConfig

C = TypeVar("C", bound="MaskGenerationConfig")


@dataclass(frozen=True, kw_only=True)
class SamVisionConfig(PatchesConfig):
    """global_attn_indexes: the layers whose patches attend to all others; in the rest to those of their window.

    mlp_dim: None is hidden_size times mlp_ratio.
    """

    model_type: str = "sam_vision_model"
    hidden_size: int = 768
    output_channels: int = 256
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    num_channels: int = 3
    image_size: int | list[int] | tuple[int, ...] = 1024
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-6
    attention_dropout: float = 0.0
    qkv_bias: bool = True
    mlp_ratio: float = 4.0
    mlp_dim: int | None = None
    window_size: int = 14
    global_attn_indexes: list[int] | tuple[int, ...] = (2, 5, 8, 11)
    num_pos_feats: int = 128

    def __post_init__(self) -> None:
        self.positive("hidden_size", "output_channels", "num_hidden_layers", "num_attention_heads", "num_channels")
        self.positive("num_pos_feats")
        if not 1 <= self.mlp_size <= 1 << 20:
            raise ConfigError(f"mlp_dim = {self.mlp_dim} or mlp_ratio = {self.mlp_ratio} is out of range")
        self.fractions("attention_dropout")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("layer_norm_eps")
        self.require(use_abs_pos=True, use_rel_pos=True)
        if not 0 <= self.window_size <= max(self.image):
            raise ConfigError(f"window_size = {self.window_size} is out of range, expected 0 ... {max(self.image)}")
        if self.grid[0] != self.grid[1] or self.grid[0] < 1:
            rows, columns = self.grid
            raise UnsupportedError(f"{rows} x {columns} patches are not implemented, only squares are")

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches in an image."""
        return self.image[0] // self.patch[0], self.image[1] // self.patch[1]

    @property
    def mlp_size(self) -> int:
        """The width inside of an MLP."""
        return int(self.hidden_size * self.mlp_ratio) if self.mlp_dim is None else self.mlp_dim

    def window(self, layer: int) -> int:
        """The number of patches along the side of a layer's windows; 0 where all patches attend to each other."""
        return 0 if layer in self.global_attn_indexes else self.window_size


@dataclass(frozen=True, kw_only=True)
class SamPromptEncoderConfig(PatchesConfig):
    model_type: str = "sam_prompt_encoder"
    hidden_size: int = 256
    image_size: int | list[int] | tuple[int, ...] = 1024
    mask_input_channels: int = 16
    num_point_embeddings: int = 4
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-6

    def __post_init__(self) -> None:
        self.positive("hidden_size", "mask_input_channels")
        self.above_zero("layer_norm_eps")
        self.require(num_point_embeddings=4)
        if self.hidden_size % 2 or self.mask_input_channels % 4:
            sizes = f"hidden_size = {self.hidden_size}, mask_input_channels = {self.mask_input_channels}"
            raise ConfigError(f"{sizes}, expected an even number, and a multiple of 4")


@dataclass(frozen=True, kw_only=True)
class SamMaskDecoderConfig(Config):
    model_type: str = "sam_mask_decoder"
    hidden_size: int = 256
    hidden_act: str = "relu"
    mlp_dim: int = 2048
    num_hidden_layers: int = 2
    num_attention_heads: int = 8
    attention_downsample_rate: int = 2
    num_multimask_outputs: int = 3
    iou_head_depth: int = 3
    iou_head_hidden_dim: int = 256
    layer_norm_eps: float = 1e-6

    def __post_init__(self) -> None:
        self.positive("hidden_size", "mlp_dim", "num_hidden_layers", "num_attention_heads", "iou_head_hidden_dim")
        self.positive("num_multimask_outputs")
        self.require(attention_downsample_rate=2)  # transformers uses the field in the last attention alone
        self.above_zero("layer_norm_eps")
        if not 2 <= self.iou_head_depth <= 100 or self.num_multimask_outputs > 100:
            sizes = f"iou_head_depth = {self.iou_head_depth}, num_multimask_outputs = {self.num_multimask_outputs}"
            raise ConfigError(f"{sizes}, expected 2 ... 100 and 1 ... 100")
        parts = self.num_attention_heads * self.attention_downsample_rate
        if self.hidden_size % parts or self.hidden_size % 8:
            few = f"num_attention_heads * attention_downsample_rate = {parts}, and 8"
            raise ConfigError(f"hidden_size = {self.hidden_size} is not a multiple of {few}")


@dataclass(frozen=True, kw_only=True)
class MaskGenerationConfig(Config):
    """The base of configs with these three parts, each of which is that of transformers where the file has none."""

    tie_word_embeddings: bool = True

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        return super().from_dict({**raw, **{name: cls._part(name, raw.get(name)) for name in cls.part_classes}})

    @classmethod
    def _part(cls, name: str, part: Any) -> Config:
        kind = cls.part_classes[name]
        if isinstance(part, dict):
            found = part.get("model_type") or kind.model_type  # files of version 4 have ""
            if found != kind.model_type:
                raise UnsupportedError(f"{name} is of the model_type {found!r}, expected {kind.model_type!r}")
        part = {} if part is None else part
        return read_part(name, {**part, "model_type": kind.model_type} if isinstance(part, dict) else part, kind)

    # What tasks of images ask a config for.
    image = property(lambda self: self.vision_config.image)
    patch = property(lambda self: self.vision_config.patch)
    num_channels = property(lambda self: self.vision_config.num_channels)


@dataclass(frozen=True, kw_only=True)
class SamConfig(MaskGenerationConfig):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "vision_config": SamVisionConfig,
        "prompt_encoder_config": SamPromptEncoderConfig,
        "mask_decoder_config": SamMaskDecoderConfig,
    }
    model_type: str = "sam"
    vision_config: SamVisionConfig
    prompt_encoder_config: SamPromptEncoderConfig
    mask_decoder_config: SamMaskDecoderConfig

    def __post_init__(self) -> None:
        vision, prompt, decoder = self.vision_config, self.prompt_encoder_config, self.mask_decoder_config
        widths = vision.output_channels, prompt.hidden_size, decoder.hidden_size, 2 * vision.num_pos_feats
        if len(set(widths)) > 1:
            names = "output_channels, the hidden_size of prompts and of the decoder, and 2 num_pos_feats"
            raise ConfigError(f"{names} are {widths}, expected one number")
        if (prompt.image, prompt.patch) != (vision.image, vision.patch):
            found = f"{prompt.image} and {prompt.patch}, those of vision_config {vision.image} and {vision.patch}"
            raise ConfigError(f"image_size and patch_size of prompt_encoder_config are {found}")
