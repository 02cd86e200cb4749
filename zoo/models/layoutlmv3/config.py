"""The config of a LayoutLMv3 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..roberta.config import RobertaConfig

LARGEST_SIDE = 1023  # the longest side of a box: transformers cuts longer ones off


@dataclass(frozen=True, kw_only=True)
class LayoutLMv3Config(RobertaConfig):
    model_type: str = "layoutlmv3"
    layer_norm_eps: float = 1e-5
    max_2d_position_embeddings: int = 1024
    coordinate_size: int = 128
    shape_size: int = 128
    rel_pos_bins: int = 32
    max_rel_pos: int = 128
    rel_2d_pos_bins: int = 64
    max_rel_2d_pos: int = 256
    input_size: int = 224
    num_channels: int = 3
    patch_size: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("max_2d_position_embeddings", "coordinate_size", "shape_size", "num_channels", "patch_size")
        self.positive("input_size")
        self.require(text_embed=True, visual_embed=True, is_decoder=False, add_cross_attention=False)
        self.require(has_relative_attention_bias=True, has_spatial_attention_bias=True)
        if 4 * self.coordinate_size + 2 * self.shape_size != self.hidden_size:
            raise ConfigError(
                f"coordinate_size = {self.coordinate_size}, shape_size = {self.shape_size}: four of the first and two "
                f"of the second are not hidden_size = {self.hidden_size}"
            )
        if self.max_2d_position_embeddings > LARGEST_SIDE + 1:
            raise ConfigError(
                f"max_2d_position_embeddings = {self.max_2d_position_embeddings}, expected at most {LARGEST_SIDE + 1}"
            )
        if self.side < 1:
            raise ConfigError(f"patch_size = {self.patch_size} is larger than input_size = {self.input_size}")
        for bins, far in (("rel_pos_bins", "max_rel_pos"), ("rel_2d_pos_bins", "max_rel_2d_pos")):
            if getattr(self, bins) < 4 or getattr(self, bins) % 4 or getattr(self, far) <= getattr(self, bins) // 4:
                raise ConfigError(f"{bins} = {getattr(self, bins)}, {far} = {getattr(self, far)} make no buckets")

    @property
    def side(self) -> int:
        """Rows and columns of patches."""
        return self.input_size // self.patch_size

    @property
    def image(self) -> tuple[int, int]:
        """Height and width of a page's picture."""
        return self.input_size, self.input_size
