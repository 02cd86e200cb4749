"""The configs of DINOv2 checkpoints, without and with registers."""

from __future__ import annotations

from dataclasses import dataclass

from ..vit.backbone import BackboneConfig
from ..vit.config import VisionConfig


@dataclass(frozen=True, kw_only=True)
class Dinov2Config(BackboneConfig, VisionConfig):
    model_type: str = "dinov2"
    mlp_ratio: int = 4
    layer_norm_eps: float = 1e-6
    patch_size: int | list[int] | tuple[int, ...] = 14
    qkv_bias: bool = True
    drop_path_rate: float = 0.0
    use_mask_token: bool = True
    use_swiglu_ffn: bool = False
    apply_layernorm: bool = True  # to a backbone's outputs
    reshape_hidden_states: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("mlp_ratio")
        self.fractions("drop_path_rate")

    @property
    def prefix(self) -> int:
        """The number of tokens before those of patches."""
        return 1

    @property
    def mlp_width(self) -> int:
        """F; of a gated MLP two thirds of it, rounded up to eights."""
        F = self.hidden_size * self.mlp_ratio
        return (F * 2 // 3 + 7) // 8 * 8 if self.use_swiglu_ffn else F


@dataclass(frozen=True, kw_only=True)
class Dinov2WithRegistersConfig(Dinov2Config):
    model_type: str = "dinov2_with_registers"
    patch_size: int | list[int] | tuple[int, ...] = 16
    num_register_tokens: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("num_register_tokens")

    @property
    def prefix(self) -> int:
        return 1 + self.num_register_tokens
