"""The configs of a SAM 2 checkpoint: of Hiera, of the encoder of images around it, of prompts and masks, and of the
whole, for pictures alone or, with parts that pictures do not need, for videos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

from ...config import Config, read_part
from ...errors import ConfigError
from ..sam.config import MaskGenerationConfig, SamMaskDecoderConfig, SamPromptEncoderConfig

Sizes = list[int] | tuple[int, ...]
MAX_STAGES = 16


@dataclass(frozen=True, kw_only=True)
class Sam2HieraDetConfig(Config):
    model_type: str = "sam2_hiera_det_model"
    hidden_size: int = 96
    num_channels: int = 3
    image_size: int | Sizes = (1024, 1024)
    patch_kernel_size: int | Sizes = (7, 7)
    patch_stride: int | Sizes = (4, 4)
    patch_padding: int | Sizes = (3, 3)
    query_stride: int | Sizes = (2, 2)
    window_positional_embedding_background_size: Sizes = (7, 7)
    num_query_pool_stages: int = 3
    blocks_per_stage: Sizes = (1, 2, 7, 2)
    embed_dim_per_stage: Sizes = (96, 192, 384, 768)
    num_attention_heads_per_stage: Sizes = (1, 2, 4, 8)
    window_size_per_stage: Sizes = (8, 4, 14, 7)
    global_attention_blocks: Sizes = (5, 7, 9)
    mlp_ratio: float = 4.0
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-6

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> Sam2HieraDetConfig:
        return super().from_dict({name: value for name, value in raw.items() if value is not None})

    def __post_init__(self) -> None:
        self.positive("hidden_size", "num_channels", "num_query_pool_stages")
        self.above_zero("layer_norm_eps", "mlp_ratio")
        lists = "blocks_per_stage", "embed_dim_per_stage", "num_attention_heads_per_stage", "window_size_per_stage"
        stages = {len(getattr(self, name)) for name in lists}
        if stages != {self.num_query_pool_stages + 1} or not stages <= {*range(3, MAX_STAGES)}:
            raise ConfigError(
                f"{', '.join(lists)} have lengths {stages}, expected num_query_pool_stages + 1, 3 or more"
            )
        for name in lists:
            if not all(1 <= n <= 1 << 20 for n in getattr(self, name)) or sum(self.blocks_per_stage) > 1000:
                raise ConfigError(f"{name} = {getattr(self, name)} is out of range, expected numbers of at least 1")
        if any(D % H for D, H in zip(self.embed_dim_per_stage, self.num_attention_heads_per_stage, strict=True)):
            raise ConfigError("num_attention_heads_per_stage do not divide embed_dim_per_stage")
        if self.embed_dim_per_stage[0] != self.hidden_size:
            raise ConfigError(f"embed_dim_per_stage[0] = {self.embed_dim_per_stage[0]}, expected {self.hidden_size}")
        for name, wanted in (("patch_kernel_size", (7, 7)), ("patch_stride", (4, 4)), ("patch_padding", (3, 3))):
            if self.pair(name) != wanted:
                self.require(**{name: [*wanted]})
        if self.pair("query_stride") != (2, 2):
            self.require(query_stride=[2, 2])
        step = self.window_size_per_stage[0]
        if any(side % (4 << self.num_query_pool_stages) or side // 4 % step for side in self.image):
            sides = f"{4 << self.num_query_pool_stages} and of 4 window_size_per_stage[0] = {4 * step}"
            raise ConfigError(f"image_size = {self.image_size} is not a multiple of {sides}")
        if not all(1 <= n <= 1 << 12 for n in self.pair("window_positional_embedding_background_size")):
            raise ConfigError("window_positional_embedding_background_size is out of range, expected 1 ... 4096")

    def pair(self, name: str) -> tuple[int, int]:
        """A size for both directions, or (vertical, horizontal)."""
        value = getattr(self, name)
        sizes = (value, value) if isinstance(value, int) else tuple(value)
        if len(sizes) != 2 or not all(type(n) is int and 0 <= n < 1 << 20 for n in sizes):
            raise ConfigError(f"{name} = {value!r} is neither a number nor a pair of them")
        return sizes

    @property
    def image(self) -> tuple[int, int]:
        return self.pair("image_size")

    @property
    def blocks(self) -> list[tuple[int, bool]]:
        """For each block its stage, and whether it is the first of it."""
        return [(stage, i == 0) for stage, count in enumerate(self.blocks_per_stage) for i in range(count)]

    @property
    def stage_ends(self) -> list[int]:
        """The last block of each stage."""
        return [n - 1 for n in accumulate(self.blocks_per_stage)]


@dataclass(frozen=True, kw_only=True)
class Sam2VisionConfig(Config):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {"backbone_config": Sam2HieraDetConfig}
    model_type: str = "sam2_vision_model"
    backbone_config: Sam2HieraDetConfig
    backbone_channel_list: Sizes = (768, 384, 192, 96)
    backbone_feature_sizes: Sequence[Any] = ((256, 256), (128, 128), (64, 64))
    fpn_hidden_size: int = 256
    fpn_top_down_levels: Sizes = (2, 3)

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> Sam2VisionConfig:
        raw = {name: value for name, value in raw.items() if value is not None}
        return super().from_dict(
            {**raw, "backbone_config": read_part("backbone_config", raw.get("backbone_config", {}), Sam2HieraDetConfig)}
        )

    def __post_init__(self) -> None:
        self.positive("fpn_hidden_size")
        self.require(num_feature_levels=3, fpn_kernel_size=1, fpn_stride=1, fpn_padding=0)
        backbone = self.backbone_config
        if [*self.backbone_channel_list] != [*backbone.embed_dim_per_stage][::-1]:
            wanted = [*backbone.embed_dim_per_stage][::-1]
            raise ConfigError(f"backbone_channel_list = {self.backbone_channel_list}, expected {wanted}")
        sizes = [[side // step for side in backbone.image] for step in (4, 8, 16)]
        if [[*one] if isinstance(one, list | tuple) else one for one in self.backbone_feature_sizes] != sizes:
            raise ConfigError(f"backbone_feature_sizes = {self.backbone_feature_sizes}, expected {sizes}")

    image = property(lambda self: self.backbone_config.image)
    num_channels = property(lambda self: self.backbone_config.num_channels)

    @property
    def patch(self) -> tuple[int, int]:
        """Height and width that a vector of the smallest map stands for."""
        return 16, 16

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the smallest map."""
        return self.image[0] // 16, self.image[1] // 16


@dataclass(frozen=True, kw_only=True)
class Sam2PromptEncoderConfig(SamPromptEncoderConfig):
    model_type: str = "sam2_prompt_encoder"


@dataclass(frozen=True, kw_only=True)
class Sam2MaskDecoderConfig(SamMaskDecoderConfig):
    """hidden_act is that of no layer, as in transformers, whose MLPs have ReLU."""

    model_type: str = "sam2_mask_decoder"
    hidden_act: str = "gelu"
    dynamic_multimask_via_stability: bool = True
    dynamic_multimask_stability_delta: float = 0.05
    dynamic_multimask_stability_thresh: float = 0.98

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(num_hidden_layers=2)  # transformers takes it for the depth of MLPs, too


@dataclass(frozen=True, kw_only=True)
class Sam2Config(MaskGenerationConfig):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "vision_config": Sam2VisionConfig,
        "prompt_encoder_config": Sam2PromptEncoderConfig,
        "mask_decoder_config": Sam2MaskDecoderConfig,
    }
    model_type: str = "sam2"
    vision_config: Sam2VisionConfig
    prompt_encoder_config: Sam2PromptEncoderConfig
    mask_decoder_config: Sam2MaskDecoderConfig

    def __post_init__(self) -> None:
        vision, prompt, decoder = self.vision_config, self.prompt_encoder_config, self.mask_decoder_config
        if len(widths := {vision.fpn_hidden_size, prompt.hidden_size, decoder.hidden_size}) > 1:
            raise ConfigError(
                f"fpn_hidden_size and the hidden_size of the other parts are {widths}, expected one number"
            )
        if (prompt.image, prompt.patch) != (vision.image, vision.patch):
            found = f"{prompt.image} and {prompt.patch}, expected {vision.image} and {vision.patch}"
            raise ConfigError(f"image_size and patch_size of prompt_encoder_config are {found}")


@dataclass(frozen=True, kw_only=True)
class Sam2VideoConfig(Sam2Config):
    """The config of a checkpoint for videos, as those of the Hub are, whose pictures alone zoo computes."""

    model_type: str = "sam2_video"

    @classmethod
    def _part(cls, name: str, part: Any) -> Config:
        if isinstance(part, dict) and isinstance(kind := part.get("model_type"), str):
            part = {**part, "model_type": kind.replace("sam2_video_", "sam2_")}
        return super()._part(name, part)
