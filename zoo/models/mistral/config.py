"""The config of a Mistral checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..llama3.windows_config import WindowedConfig, WindowedLayersConfig


@dataclass(frozen=True, kw_only=True)
class MistralConfig(WindowedConfig):
    reads_attention_bias: ClassVar[bool] = False
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "mistral"
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 4096 * 32
    sliding_window: int | None = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(layer_types=None)


@dataclass(frozen=True, kw_only=True)
class MinistralConfig(WindowedLayersConfig):
    reads_attention_bias: ClassVar[bool] = False
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "ministral"
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 4096 * 32
    sliding_window: int | None = 4096

    def slides_by_default(self, layer: int) -> bool:
        return True
