"""The config of a Qwen3-VL checkpoint: of an encoder of images, and of a Qwen3 whose positions have three axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from ...config import Config
from ...errors import ConfigError, UnsupportedError
from ..qwen2_vl.config import Qwen2VLConfig, Qwen2VLTextConfig, QwenVisionConfig

C = TypeVar("C", bound="Qwen3VLConfig")


@dataclass(frozen=True, kw_only=True)
class Qwen3VLTextConfig(Qwen2VLTextConfig):
    """deepstack_layers: the number of layers after which something is added to the tokens of images; it is that of
    vision_config's deepstack_visual_indexes, and no field of files.
    """

    reads_attention_bias: ClassVar[bool] = True
    default_sections: ClassVar[tuple[int, ...]] = (24, 20, 20)
    model_type: str = "qwen3_vl_text"
    vocab_size: int = 151936
    hidden_size: int = 4096
    intermediate_size: int = 22016
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 32
    head_dim: int | None = 128
    max_position_embeddings: int = 128000
    rms_norm_eps: float = 1e-6
    rope_theta: float = 500000.0
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    deepstack_layers: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.mrope_section) != 3:
            raise ConfigError(f"mrope_section = {self.mrope_section}, expected three numbers")
        if (self.rope_scaling or self.rope_parameters or {}).get("mrope_interleaved", True) is not True:
            raise UnsupportedError("mrope_interleaved = False is not implemented, only True is")

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_dict().items() if name != "deepstack_layers"}

    @property
    def axes(self) -> list[int]:
        """Of each frequency the axis whose positions it turns by: by threes in turn, and time where these end."""
        _, high, wide = self.mrope_section
        count = self.head_size // 2
        return [1 if i % 3 == 1 and i < 3 * high else 2 if i % 3 == 2 and i < 3 * wide else 0 for i in range(count)]

    @property
    def embeds_width(self) -> int:
        """The width of inputs_embeds: a token's vector, and what is added to it after the first layers."""
        return self.hidden_size * (1 + self.deepstack_layers)

    @property
    def qkv_bias(self) -> bool:
        return self.out_bias

    def slides(self, layer: int) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class Qwen3VLVisionConfig(QwenVisionConfig):
    """num_position_embeddings: of a square of patches; deepstack_visual_indexes: layers whose states the decoder adds
    to those of its own first layers.
    """

    model_type: str = "qwen3_vl_vision"
    depth: int = 27
    hidden_size: int = 1152
    hidden_act: str = "gelu_pytorch_tanh"
    intermediate_size: int = 4304
    patch_size: int = 16
    out_hidden_size: int = 3584
    num_position_embeddings: int = 2304
    deepstack_visual_indexes: list[int] = field(default_factory=lambda: [8, 16, 24])

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("intermediate_size", "num_position_embeddings")
        if self.position_side**2 != self.num_position_embeddings:
            raise ConfigError(f"num_position_embeddings = {self.num_position_embeddings}, expected those of a square")
        of = self.deepstack_visual_indexes
        if len({*of}) != len(of) or not all(0 <= layer < self.depth for layer in of):
            raise ConfigError(f"deepstack_visual_indexes = {of}, expected some of the {self.depth} layers, each once")

    @property
    def position_side(self) -> int:
        return math.isqrt(self.num_position_embeddings)

    @property
    def width(self) -> int:
        return self.hidden_size

    @property
    def output_width(self) -> int:
        return self.out_hidden_size

    @property
    def mlp_width(self) -> int:
        return self.intermediate_size


@dataclass(frozen=True, kw_only=True)
class Qwen3VLConfig(Qwen2VLConfig):
    is_flat: ClassVar[bool] = False
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": Qwen3VLTextConfig,
        "vision_config": Qwen3VLVisionConfig,
    }
    model_type: str = "qwen3_vl"
    text_config: Qwen3VLTextConfig
    vision_config: Qwen3VLVisionConfig

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        config = super().from_dict(raw)
        count = len(config.vision_config.deepstack_visual_indexes)
        return replace(config, text_config=replace(config.text_config, deepstack_layers=count))
