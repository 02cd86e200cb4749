"""The config of a Qwen2 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...rope import SLIDING, check_layer_types
from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class QwenConfig(LlamaConfig):
    """The fields that Qwen2 and Qwen3 share: from layer max_window_layers on attention may be within a window."""

    vocab_size: int = 151936
    intermediate_size: int = 22016
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    max_window_layers: int = 28
    layer_types: list[str] | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sliding_window is not None:
            self.positive("sliding_window")
        if self.layer_types is not None:
            check_layer_types(self.layer_types, self.num_hidden_layers)

    def window(self, layer: int) -> int | None:
        if not self.use_sliding_window or self.sliding_window is None:
            return None
        of_config = self.layer_types[layer] == SLIDING if self.layer_types else layer >= self.max_window_layers
        return self.sliding_window - 1 if of_config else None


@dataclass(frozen=True, kw_only=True)
class Qwen2Config(QwenConfig):
    model_type: str = "qwen2"

    @property
    def qkv_bias(self) -> bool:
        return True
