"""The config of a Qwen2 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..llama3.windows_config import WindowedLayersConfig


@dataclass(frozen=True, kw_only=True)
class QwenConfig(WindowedLayersConfig):
    """The fields that Qwen2 and Qwen3 share: from layer max_window_layers on attention may be within a window."""

    reads_mlp_bias: ClassVar[bool] = False
    vocab_size: int = 151936
    intermediate_size: int = 22016
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    max_window_layers: int = 28
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None

    def slides(self, layer: int) -> bool:
        return self.use_sliding_window and super().slides(layer)

    def slides_by_default(self, layer: int) -> bool:
        return layer >= self.max_window_layers


@dataclass(frozen=True, kw_only=True)
class Qwen2Config(QwenConfig):
    reads_attention_bias: ClassVar[bool] = False
    model_type: str = "qwen2"

    @property
    def qkv_bias(self) -> bool:
        return True
