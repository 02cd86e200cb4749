"""The config of a DINOv3 checkpoint whose model is a ViT."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..vit.backbone import BackboneConfig
from ..vit.config import VisionConfig


@dataclass(frozen=True, kw_only=True)
class DINOv3ViTConfig(BackboneConfig, VisionConfig):
    model_type: str = "dinov3_vit"
    hidden_size: int = 384
    num_attention_heads: int = 6
    intermediate_size: int = 1536
    layer_norm_eps: float = 1e-5
    attention_dropout: float = 0.0
    drop_path_rate: float = 0.0
    rope_theta: float = 100.0
    query_bias: bool = True
    key_bias: bool = False
    value_bias: bool = True
    proj_bias: bool = True
    mlp_bias: bool = True
    use_gated_mlp: bool = False
    num_register_tokens: int = 0
    apply_layernorm: bool = True  # to a backbone's outputs; to that of the last layer always
    reshape_hidden_states: bool = True
    return_class_token: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions("attention_dropout", "drop_path_rate")
        if self.num_register_tokens < 0:
            raise ConfigError(f"num_register_tokens = {self.num_register_tokens} is out of range, expected 0 or more")
        if self.rope_theta <= 0 or self.rope_theta == 1:
            raise ConfigError(f"rope_theta = {self.rope_theta} is out of range, expected a number above 0 but 1")
        if self.head_size % 4:
            raise ConfigError(
                f"num_attention_heads = {self.num_attention_heads}: {self.head_size} features each, not a multiple of 4"
            )

    @property
    def frequencies(self) -> tuple[float, ...]:
        """The angles, as parts of a full turn, of a step of 1 in height or width: K / 4 of them."""
        return tuple(self.rope_theta ** (-4 * i / self.head_size) for i in range(self.head_size // 4))

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads
