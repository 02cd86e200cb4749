"""The config of a Qwen3.5 checkpoint of texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ...rope import FULL_ATTENTION, check_layer_types
from ..llama3.config import LlamaConfig

LINEAR_ATTENTION = "linear_attention"


@dataclass(frozen=True, kw_only=True)
class Qwen3_5TextConfig(LlamaConfig):  # noqa: N801 - transformers' name
    """linear_*: heads of the layers that keep a state, their sizes, and the tokens that a convolution before them sees.
    layer_types: of each layer "linear_attention" or "full_attention"; by default every full_attention_interval-th
    attends.
    """

    rotates_part: ClassVar[bool] = True
    default_rotary_factor: ClassVar[float] = 0.25
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "qwen3_5_text"
    vocab_size: int = 248_320
    intermediate_size: int = 12288
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 4
    head_dim: int | None = 256
    max_position_embeddings: int = 32768
    linear_conv_kernel_dim: int = 4
    linear_key_head_dim: int = 128
    linear_value_head_dim: int = 128
    linear_num_key_heads: int = 16
    linear_num_value_heads: int = 32
    layer_types: list[str] | None = None
    full_attention_interval: int = 4
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("linear_conv_kernel_dim", "linear_key_head_dim", "linear_value_head_dim")
        self.positive("linear_num_key_heads", "linear_num_value_heads", "full_attention_interval")
        self.divides("linear_num_key_heads", "linear_num_value_heads")
        if self.conv_width % 2:
            value = self.linear_value_head_dim
            raise ConfigError(f"linear_value_head_dim = {value} gives an odd number of features, {self.conv_width}")
        if self.layer_types is not None:
            check_layer_types(self.layer_types, self.num_hidden_layers, (LINEAR_ATTENTION, FULL_ATTENTION))

    def attends(self, layer: int) -> bool:
        """True if this layer attends to all tokens; others keep a state."""
        if self.layer_types is not None:
            return self.layer_types[layer] == FULL_ATTENTION
        return (layer + 1) % self.full_attention_interval == 0

    @property
    def state_layers(self) -> list[int]:
        """The layers that keep a state."""
        return [layer for layer in range(self.num_hidden_layers) if not self.attends(layer)]

    @property
    def key_width(self) -> int:
        """The features of all keys of a layer that keeps a state."""
        return self.linear_num_key_heads * self.linear_key_head_dim

    @property
    def value_width(self) -> int:
        """The features of all values of a layer that keeps a state."""
        return self.linear_num_value_heads * self.linear_value_head_dim

    @property
    def conv_width(self) -> int:
        """The features of queries, keys and values together."""
        return 2 * self.key_width + self.value_width
